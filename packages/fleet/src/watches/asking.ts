/** One question to the API server. */
import { failureText, type KubeFailure, type KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';

const ASKED_MS = 30_000;
export const NOT_FOUND = 404;
export const CONFLICT = 409;

export interface Asking {
  /** With the kubeconfig's own rights. */
  kube: KubeApi;
  signal: AbortSignal;
}

/** With the code of the answer (0: there was none) and its reason. */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;

  constructor(request: KubeRequest, failure: KubeFailure) {
    super(failureText(request, failure));
    this.code = failure.code;
    this.reason = failure.reason;
  }
}

/** `none`: of such a code, by default that there is no such object, the answer is null. @throws ApiError with the words of the API server. */
export async function asked(
  request: KubeRequest,
  { kube, signal }: Asking,
  { none = [NOT_FOUND], timeoutMs = ASKED_MS }: { none?: readonly number[]; timeoutMs?: number } = {},
): Promise<unknown> {
  const answer = await kube.request(request, { timeoutMs, signal });
  if (answer.ok) return answer.body;
  if (none.includes(answer.failure.code)) return null;
  throw new ApiError(request, answer.failure);
}
