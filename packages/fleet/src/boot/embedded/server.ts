/**
 * `--api embedded`: the simulation's API server, in this process for the nodes and over HTTPS on loopback for kubectl, with a small
 * scheduler. There are no controllers and nothing is kept on disk.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { selfSignedCertificate } from '@actorlet/kubelet/boot/process/selfSigned.ts';
import {
  type KubeFailure,
  type KubeObject,
  type KubeRequest,
  type KubeVerb,
  PATCH_TYPES,
  type PatchType,
  TOO_LARGE,
} from '@actorlet/kubelet/machines/kube/request.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import { DEPTH_MAX, isDeeper } from '@actorlet/world/src/kube/kubePatch.ts';
import { failureOf, route } from '@actorlet/world/src/kube/kubeRoutes.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { chosenNode, hasNode, isMine, placeOf, wishesOf } from '../../scheduler.ts';
import { deleteOptionsOf } from './deleteOptions.ts';
import { discovery, withDiscovery } from './discovery.ts';
import { NO_SCHEMAS, openapi } from './openapi.ts';
import { Sending } from './sending.ts';
import { tableOf } from './table.ts';

/** As of a kube-apiserver. */
const BODY_BYTES_MAX = 3 * 1024 * 1024;
/** Pods that found no node are looked at again. */
const RETRY_MS = 1_000;
const BOUND_AT_ONCE = 50;
/** As of a kube-apiserver by default, and how often events that are older are looked for. */
const EVENT_TTL_MS = 3_600_000;
const EXPIRE_EVERY_MS = 60_000;
const VERBS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];
/** What an API server asks a node for. */
const OF_A_NODE = /^\/api\/v1\/(?:namespaces\/[^/]+\/pods\/[^/]+\/(?:log|exec|attach|portforward|proxy)|nodes\/[^/]+\/proxy)(?:\/|$)/;
const NO_NODE_ASKED =
  'the embedded API server asks no nodes: no logs, exec, attach, port-forward or proxy. With a cluster all but port-forward work';
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const JSON_TYPE = /^application\/(?:[a-z0-9.-]+\+)?json\b/;
const notTaken = (type: string): string =>
  `the body of the request is ${type}: this API server reads application/json alone. Use kubectl create -f FILE or apply -f FILE`;
const NAMESPACES = ['default', 'kube-system', 'kube-node-lease'];

export interface EmbeddedApi {
  /** A kubeconfig in YAML: where it is, and its token. */
  kubeconfig: string;
  connect(node: string): KubeApi;
  /** With all rights, and with discovery. */
  admin: KubeApi;
  close(): Promise<void>;
}

export async function startEmbeddedApi(clock: Clock, seed: number): Promise<EmbeddedApi> {
  const kube = simKube({ clock, rng: simRng(`embedded-${seed}`), latencyMs: () => 0, forPeople: true });
  const connect = (node: string): KubeApi => kube.connect({ power: { on: true }, clock, node });
  for (const namespace of NAMESPACES) {
    kube.handle({ verb: 'POST', path: `/api/v1/namespaces/${namespace}/serviceaccounts`, body: { metadata: { name: 'default' } } });
  }
  const stopScheduling = schedule(kube, clock);
  const stopExpiring = expireEvents(kube, clock);
  const token = randomBytes(16).toString('hex');
  const api = connect('');
  const { cert, key } = await selfSignedCertificate('127.0.0.1', clock.wallMs());
  const sending = new Sending();
  const http = createServer({ cert, key }, (req, res) => {
    const to: To = { res, sending };
    const served = req.headers.authorization === `Bearer ${token}` ? answer(req, to, { kube, api, clock }) : refuse(to);
    served
      .catch((error: unknown) => {
        if (!res.headersSent) return send(to, 500, status(500, 'InternalError', messageOf(error)));
        res.destroy();
        return undefined;
      })
      .catch(() => res.destroy());
  });
  await new Promise<void>((resolve, reject) => {
    http.once('error', reject);
    http.listen(0, '127.0.0.1', resolve);
  });
  const { port } = http.address() as AddressInfo;
  const server = `https://127.0.0.1:${port}`;
  // Nodes are in this process; what they say of their API server is what people can reach.
  const reachable = (node: string): KubeApi => ({ ...connect(node), server });
  return {
    kubeconfig: kubeconfigOf(server, token),
    connect: reachable,
    admin: withDiscovery(reachable('')),
    close: () => {
      stopScheduling();
      stopExpiring();
      http.closeAllConnections();
      return new Promise((resolve) => http.close(() => resolve()));
    },
  };
}

function kubeconfigOf(server: string, token: string): string {
  const config = {
    ...{
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'fleet',
      contexts: [{ name: 'fleet', context: { cluster: 'fleet', user: 'fleet' } }],
    },
    // Its certificate is made anew at each start; the token is what counts, and the way is loopback.
    clusters: [{ name: 'fleet', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'fleet', user: { token } }],
  };
  return `${JSON.stringify(config, null, 2)}\n`;
}

type Kube = ReturnType<typeof simKube>;

/** Binds pods as they come, and those that found no node when there may be one. */
function schedule(kube: Kube, clock: Clock): () => void {
  const podsOn = new Map<string, number>();
  /** By path. */
  const waiting = new Map<string, KubeObject>();
  let timer: unknown;
  let soon: NodeJS.Immediate | undefined;
  const count = (node: string | undefined, by: number): void => {
    if (node === undefined) return;
    const pods = (podsOn.get(node) ?? 0) + by;
    if (pods > 0) podsOn.set(node, pods);
    else podsOn.delete(node);
  };
  const round = (): void => {
    soon = undefined;
    const nodes = kube.store.list('nodes');
    const refused = new Set<string>();
    let bound = 0;
    for (const [path, pod] of waiting) {
      const wishes = wishesOf(pod);
      if (!isMine(pod) || refused.has(wishes)) continue;
      const node = chosenNode(pod, nodes, podsOn);
      if (node === undefined) refused.add(wishes);
      else if (kube.handle({ verb: 'POST', path: `${path}/binding`, body: { target: { name: node } } }).ok) bound += 1;
      // The nodes of the fleet have the thread in between.
      if (bound < BOUND_AT_ONCE) continue;
      atOnce();
      return;
    }
  };
  const atOnce = (): void => {
    soon ??= setImmediate(round);
  };
  const stop = kube.store.onEvent(({ resource, type, object, before }) => {
    if (resource !== 'pods') return;
    const { namespace = 'default', name, deletionTimestamp } = object.metadata;
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const [was, is] = [placeOf(before), type === 'DELETED' ? undefined : placeOf(object)];
    if (was !== is) {
      count(was, -1);
      count(is, 1);
    }
    if (type === 'DELETED' || deletionTimestamp || hasNode(object)) waiting.delete(path);
    else {
      waiting.set(path, object);
      if (type === 'ADDED') atOnce();
    }
  });
  const again = (): void => {
    timer = clock.setTimeout(() => {
      if (waiting.size > 0) round();
      again();
    }, RETRY_MS);
  };
  again();
  return () => {
    stop();
    clearImmediate(soon);
    clock.clearTimeout(timer);
  };
}

/** Events go an hour after their last change. */
function expireEvents(kube: Kube, clock: Clock): () => void {
  let timer: unknown;
  const look = (): void => {
    const beforeMs = clock.wallMs() - EVENT_TTL_MS;
    for (const { metadata, lastTimestamp } of kube.store.list('events') as (KubeObject & { lastTimestamp?: unknown })[]) {
      const atMs = Date.parse(String(lastTimestamp ?? metadata.creationTimestamp));
      if (atMs < beforeMs) kube.handle({ verb: 'DELETE', path: `/api/v1/namespaces/${metadata.namespace}/events/${metadata.name}` });
    }
    timer = clock.setTimeout(look, EXPIRE_EVERY_MS);
  };
  timer = clock.setTimeout(look, EXPIRE_EVERY_MS);
  return () => clock.clearTimeout(timer);
}

interface To {
  res: ServerResponse;
  sending: Sending;
}
const send = ({ res, sending }: To, code: number, body: unknown): Promise<void> => sending.answer(res, code, body);
const status = (code: number, reason: string, message: string, details: object = {}): object => ({
  ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code, reason, message, details },
});

function fail(to: To, { code, reason, message }: KubeFailure, path: string): Promise<void> {
  // In a Status it is a cause.
  const tooLarge = reason === TOO_LARGE ? { causes: [{ reason, message: 'Too large resource version' }], retryAfterSeconds: 1 } : undefined;
  return send(to, code || 500, status(code, tooLarge === undefined ? reason : 'Timeout', message, tooLarge ?? named(path)));
}

/** What a path is about, as clients look for it in a Status. */
function named(path: string): object {
  if (missingAt(path) !== undefined) return {};
  const { resource, name } = route(path);
  return name === null ? { kind: resource.name } : { name, kind: resource.name };
}

/** A parameter as the real server reads it: only these say no. */
function isTrue(parameter: string | undefined): boolean {
  return parameter !== undefined && !['0', 'false'].includes(parameter.toLowerCase());
}

function isCollection(path: string): boolean {
  return missingAt(path) !== undefined || route(path).name === null;
}

async function refuse(to: To): Promise<void> {
  await send(to, 401, status(401, 'Unauthorized', 'the token is that of the kubeconfig that the fleet wrote'));
}

async function answer(req: IncomingMessage, to: To, { kube, api, clock }: { kube: Kube; api: KubeApi; clock: Clock }): Promise<void> {
  const { res, sending } = to;
  if (sending.isFull) {
    res.setHeader('retry-after', '1');
    return send(to, 429, status(429, 'TooManyRequests', 'too much waits for clients that do not read their answers: ask again later'));
  }
  const url = URL.parse((req.url ?? '/').replace(/^\/+/, '/'), 'http://h');
  if (url === null) return send(to, 400, status(400, 'BadRequest', 'the target of the request is no path'));
  const path = url.pathname;
  const query = Object.fromEntries(url.searchParams);
  const found = req.method === 'GET' ? (discovery(path) ?? openapi(path)) : undefined;
  if (found !== undefined) return send(to, 200, found);
  if (req.method === 'GET' && path === NO_SCHEMAS.path) {
    res.writeHead(200, { 'content-type': NO_SCHEMAS.type }).end();
    return;
  }
  if (OF_A_NODE.test(path)) return send(to, 501, status(501, 'NotImplemented', NO_NODE_ASKED));
  if (req.method === 'GET' && isTrue(query.watch) && isCollection(path)) {
    const gone = new AbortController();
    res.once('close', () => gone.abort());
    const watch = await api.watch({ path, query }, { timeoutMs: null, signal: gone.signal });
    if (!watch.ok) return fail(to, watch.failure, path);
    res.writeHead(200, { 'content-type': 'application/json' });
    res.flushHeaders();
    // A reader that is slow is waited for: what it does not read would fill the memory.
    for await (const line of watch.lines) await sending.write(res, `${line}\n`);
    res.end();
    return;
  }
  if (!VERBS.includes(req.method ?? '')) return send(to, 405, status(405, 'MethodNotAllowed', `${req.method} is not known here`));
  const type = req.headers['content-type'] ?? '';
  const isProtobuf = type.startsWith(PROTOBUF);
  if (type !== '' && !JSON_TYPE.test(type) && !(isProtobuf && req.method === 'DELETE')) {
    // A resource that is not there matters more than how its object is written.
    const missing = missingAt(path);
    if (missing !== undefined) return fail(to, missing, path);
    return send(to, 415, status(415, 'UnsupportedMediaType', notTaken(type)));
  }
  let body: unknown;
  try {
    const bytes = await bytesOf(req);
    body = bytes.length === 0 ? undefined : isProtobuf ? deleteOptionsOf(bytes) : parsed(bytes);
  } catch (error) {
    return send(to, 400, status(400, 'BadRequest', `the body: ${messageOf(error)}`));
  }
  const patchType = (Object.keys(PATCH_TYPES) as PatchType[]).find((t) => type.startsWith(PATCH_TYPES[t]));
  if (req.method === 'PATCH' && patchType === undefined) return send(to, 415, status(415, 'UnsupportedMediaType', `no patch of ${type}`));
  const request: KubeRequest = {
    verb: req.method as KubeVerb,
    path,
    query,
    ...(body === undefined ? {} : { body }),
    ...(patchType === undefined ? {} : { patchType }),
  };
  const result = kube.handle(request);
  if (!result.ok) return fail(to, result.failure, path);
  const table =
    req.method === 'GET' && req.headers.accept?.includes('as=Table') === true ? tableOf(result.body, clock.wallMs()) : undefined;
  return send(to, result.code, table ?? result.body);
}

async function bytesOf(req: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    length += chunk.length;
    // What is too long is read to its end, else the client gets no answer.
    if (length <= BODY_BYTES_MAX) chunks.push(chunk);
  }
  if (length > BODY_BYTES_MAX) throw new Error(`is longer than ${BODY_BYTES_MAX} bytes`);
  return Buffer.concat(chunks);
}

function parsed(bytes: Buffer): unknown {
  const body: unknown = JSON.parse(bytes.toString('utf8'));
  if (isDeeper(body, DEPTH_MAX)) throw new Error(`nests deeper than ${DEPTH_MAX}`);
  return body;
}

function missingAt(path: string): KubeFailure | undefined {
  try {
    route(path);
    return undefined;
  } catch (error) {
    return failureOf(error);
  }
}
