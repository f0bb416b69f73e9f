/** The simulation's API server on a loopback port: for a real daemon that is to see more pods than a real server makes at once. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { type KubeRequest, type KubeVerb, PATCH_TYPES, type PatchType } from '../../../../src/machines/kube/request.ts';
import type { Clock } from '../../../../src/ports/ports.ts';
import type { KeyPair } from '../pki.ts';

export interface KubeServer {
  /** `https://127.0.0.1:PORT` */
  readonly server: string;
  /** As a user of the cluster. */
  handle(request: KubeRequest): unknown;
  close(): Promise<void>;
}

/** Writes a kubeconfig for a node of this server into `dir`, and returns its path. */
export function writeKubeconfig(dir: string, server: string, caFile: string): string {
  const path = join(dir, 'kubeconfig');
  const context = { cluster: 'cluster', user: 'node' };
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'node', contexts: [{ name: 'node', context }] },
    ...{ clusters: [{ name: 'cluster', cluster: { server, 'certificate-authority': caFile } }] },
    ...{ users: [{ name: 'node', user: { token: 'node' } }] },
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

const clock: Clock = {
  wallMs: () => Date.now(),
  monoMs: () => performance.now(),
  setTimeout: (fn, ms) => setTimeout(fn, ms),
  clearTimeout: (id) => clearTimeout(id as NodeJS.Timeout),
};
/** A token that this server knows. */
export const GOOD_TOKEN = 'good-';

function patchTypeOf(contentType: string | undefined): PatchType | undefined {
  return (Object.keys(PATCH_TYPES) as PatchType[]).find((t) => contentType?.startsWith(PATCH_TYPES[t]));
}
async function bodyOf(req: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of req.setEncoding('utf8')) text += chunk;
  return text === '' ? undefined : JSON.parse(text);
}

/** Whose requests are let in: one that this server knows may do anything. */
function review(path: string, body: unknown): unknown {
  const { spec } = body as { spec: { token?: string } };
  if (path.endsWith('/subjectaccessreviews')) return { ...(body as object), status: { allowed: true } };
  if (!path.endsWith('/tokenreviews')) return null;
  const authenticated = spec.token?.startsWith(GOOD_TOKEN) === true;
  return { ...(body as object), status: authenticated ? { authenticated, user: { username: spec.token, groups: [] } } : { authenticated } };
}

/** @param o.heard Called with each step that a client takes, when it is over or, of a request, when it has come. */
export async function startKubeServer(pair: KeyPair, o: { heard?: (what: string) => void } = {}): Promise<KubeServer> {
  const kube = simKube({ clock, rng: simRng('flood'), latencyMs: () => 1 });
  const api = kube.connect({ power: { on: true } as never, clock });

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url ?? '/', 'http://h');
    const query = Object.fromEntries(url.searchParams);
    const send = (code: number, body: unknown): void => {
      res.writeHead(code, { 'content-type': 'application/json' });
      res.end(JSON.stringify(body));
    };
    if (query.watch === 'true') {
      const gone = new AbortController();
      res.once('close', () => gone.abort());
      const watch = await api.watch({ path: url.pathname, query }, { timeoutMs: null, signal: gone.signal });
      if (!watch.ok) return send(watch.failure.code || 500, { kind: 'Status', code: watch.failure.code, message: watch.failure.message });
      res.writeHead(200, { 'content-type': 'application/json' });
      res.flushHeaders();
      for await (const line of watch.lines) res.write(`${line}\n`);
      res.end();
      return;
    }
    const body = await bodyOf(req);
    const reviewed = req.method === 'POST' ? review(url.pathname, body) : null;
    if (reviewed !== null) return send(201, reviewed);
    const patchType = patchTypeOf(req.headers['content-type']);
    const request: KubeRequest = {
      verb: (req.method ?? 'GET') as KubeVerb,
      path: url.pathname,
      query,
      ...(body === undefined ? {} : { body }),
      ...(req.method === 'PATCH' && patchType !== undefined ? { patchType } : {}),
    };
    const result = kube.handle(request);
    if (result.ok) send(result.code, result.body);
    else
      send(result.failure.code || 500, {
        kind: 'Status',
        status: 'Failure',
        code: result.failure.code,
        reason: result.failure.reason,
        message: result.failure.message,
      });
  }

  const http = createServer({ cert: readFileSync(pair.certFile), key: readFileSync(pair.keyFile) }, (req, res) => {
    o.heard?.(`${req.method ?? 'GET'} ${(req.url ?? '/').split('?')[0]}${req.url?.includes('watch=true') ? ' watch' : ''}`);
    answer(req, res).catch(() => res.destroy());
  });
  http.on('connection', () => o.heard?.('connection'));
  http.on('secureConnection', () => o.heard?.('handshake'));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    server: `https://127.0.0.1:${(http.address() as AddressInfo).port}`,
    handle: (request) => kube.handle(request),
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
}
