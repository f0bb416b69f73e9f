/** Lists of the API server, page by page. */
import type { KubeFailure, KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';

export interface Asking {
  /** With the kubeconfig's own rights. */
  kube: KubeApi;
  signal: AbortSignal;
}

const PAGE_MAX = 500;
const TOO_LARGE = 'EFBIG';
const NOT_FOUND = 404;
const ASKED_MS = 30_000;

/** With the code of the answer (0: there was none) and its reason. */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;

  constructor({ verb, path }: KubeRequest, { code, reason, message }: KubeFailure) {
    super(`${verb} ${path}: ${reason === '' ? message : `${reason}: ${message}`}`);
    this.code = code;
    this.reason = reason;
  }
}

/** Of all pages, which are smaller where objects are large. Empty where the API server has no such list. @throws ApiError */
export async function* items(of: { path: string; query?: Record<string, string> }, o: Asking): AsyncGenerator<Record<string, unknown>> {
  let next = '';
  let limit = PAGE_MAX;
  for (;;) {
    const query = { ...of.query, limit: String(limit), ...(next === '' ? {} : { continue: next }) };
    const page = await asked({ verb: 'GET', path: of.path, query }, o).catch((error: unknown) => {
      if (!(error instanceof ApiError) || error.reason !== TOO_LARGE || limit === 1) throw error;
      return TOO_LARGE;
    });
    if (page === TOO_LARGE) {
      limit = Math.ceil(limit / 4);
      continue;
    }
    const { items: some, metadata } = isRecord(page) ? page : {};
    for (const item of Array.isArray(some) ? some : []) if (isRecord(item)) yield item;
    next = isRecord(metadata) && typeof metadata.continue === 'string' ? metadata.continue : '';
    if (next === '') return;
  }
}

/** Null: there is no such object. @throws ApiError */
export async function asked(request: KubeRequest, { kube, signal }: Asking, timeoutMs = ASKED_MS): Promise<unknown> {
  const answer = await kube.request(request, { timeoutMs, signal });
  if (answer.ok) return answer.body;
  if (answer.failure.code === NOT_FOUND) return null;
  throw new ApiError(request, answer.failure);
}
