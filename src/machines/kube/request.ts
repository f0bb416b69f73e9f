/** Requests to the Kubernetes API and what they come to, as plain data. Pure. */

import { SHARED_CHARS_MIN, shareWithin } from '../data/sharedData.ts';
import { isRecord } from '../shape/conform.ts';

/** `kube`: everything else; `event`: events only; `heartbeat`: node status and lease, never throttled (boot-and-node 6.1). */
export type KubeClass = 'kube' | 'event' | 'heartbeat';
export const KUBE_CLASSES: readonly KubeClass[] = ['kube', 'event', 'heartbeat'];

export type KubeVerb = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export const PATCH_TYPES = {
  strategic: 'application/strategic-merge-patch+json',
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
} as const;
export type PatchType = keyof typeof PATCH_TYPES;

export interface KubeRequest {
  verb: KubeVerb;
  /** From the root of the API: `/api/v1/namespaces/default/pods/web`. Its parts are escaped already. */
  path: string;
  query?: Readonly<Record<string, string>>;
  /** Plain JSON. */
  body?: unknown;
  /** Required with PATCH. */
  patchType?: PatchType;
}

/**
 * Why there is no good answer. `code` is the HTTP status, 0 when the API server did not answer. `outcome: 'unknown'`
 * means that a write may or may not have had its effect.
 */
export interface KubeFailure {
  code: number;
  /** Reason of the Status object (`NotFound`, `Conflict`, `Expired`, ...), or of the transport (`ECONNREFUSED`, `Timeout`). */
  reason: string;
  message: string;
  outcome: 'failed' | 'unknown';
  /** The server asked to wait this long before the next try; at most {@link RETRY_AFTER_MAX_MS}. */
  retryAfterMs?: number;
}
export type KubeResult = { ok: true; code: number; body: unknown } | { ok: false; failure: KubeFailure };

/** One decoded line of a watch. */
export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: KubeObject;
  /** True in a bookmark at the end of the initial events that were asked for. */
  initialEventsEnd?: true;
}
/** Under it an object that cannot be read says why; nothing that a server sends has it. */
export const UNREADABLE: unique symbol = Symbol('unreadable');

/** Any object of the API: what list-watch needs of it. */
export interface KubeObject {
  [UNREADABLE]?: string;
  apiVersion?: string;
  kind?: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    [field: string]: unknown;
  };
  [field: string]: unknown;
}

export function isKubeObject(value: unknown): value is KubeObject {
  return isRecord(value) && isRecord(value.metadata) && typeof value.metadata.name === 'string';
}

/**
 * Without what nobody here reads: who wrote which field is often more than the object itself, and objects are kept for as
 * long as they live.
 */
export function slim(object: KubeObject): KubeObject {
  if (object.metadata.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

const WATCH_TYPES: readonly string[] = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'];

/** Annotation of the bookmark that ends the initial events of a watch; its value is `true`. */
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

export type ReadItem = (item: unknown) => KubeObject | null;
const readNamed: ReadItem = (item) => (isKubeObject(item) ? slim(item) : null);

/** One line of a watch stream, or the failure that it carries or is. `event` null: it is about an object that cannot even be named. */
export function decodeWatchLine(
  line: string,
  read: ReadItem = readNamed,
): { ok: true; event: WatchEvent | null } | { ok: false; failure: KubeFailure } {
  const malformed = (what: string): { ok: false; failure: KubeFailure } => ({
    ok: false,
    failure: { code: 0, reason: 'MalformedWatchEvent', message: `a line of the watch ${what}`, outcome: 'failed' },
  });
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return malformed('is not JSON');
  }
  if (!isRecord(value) || typeof value.type !== 'string' || !WATCH_TYPES.includes(value.type)) return malformed('has no known type');
  if (value.type === 'ERROR') return { ok: false, failure: statusFailure(value.object, 500) };
  // A bookmark carries a resource version, and may end the initial events.
  if (value.type === 'BOOKMARK') {
    const metadata = isRecord(value.object) && isRecord(value.object.metadata) ? value.object.metadata : {};
    const { resourceVersion, annotations } = metadata;
    if (typeof resourceVersion !== 'string') return { ok: true, event: null };
    const ends = isRecord(annotations) && annotations[INITIAL_EVENTS_END] === 'true';
    const object: KubeObject = { metadata: { name: '', resourceVersion } };
    return { ok: true, event: { type: 'BOOKMARK', object, ...(ends ? { initialEventsEnd: true as const } : {}) } };
  }
  const object = read(value.object);
  if (object === null) return { ok: true, event: null };
  return {
    ok: true,
    event: { type: value.type as WatchEvent['type'], object: line.length < SHARED_CHARS_MIN ? object : shareWithin(object) },
  };
}

/** Reasons for codes of servers and proxies that say none. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Gone',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** No server keeps this node away for longer: one asked for 34 days, and the node was deaf while it said that it is Ready. */
const RETRY_AFTER_MAX_MS = 60_000;

/** From a Status object, or from whatever a proxy in between answered. */
export function statusFailure(body: unknown, code: number, retryAfterMs?: number): KubeFailure {
  const status = isRecord(body) && body.kind === 'Status' ? body : {};
  const actual = typeof status.code === 'number' && status.code >= 400 ? status.code : code;
  const details = isRecord(status.details) ? status.details : {};
  const asked = retryAfterMs ?? (typeof details.retryAfterSeconds === 'number' ? details.retryAfterSeconds * 1000 : undefined);
  const said = typeof status.reason === 'string' && status.reason !== '' ? status.reason : (REASONS[actual] ?? 'Unknown');
  const reason = isTooLarge(details.causes) ? TOO_LARGE : said;
  return {
    code: actual,
    reason,
    message: typeof status.message === 'string' && status.message !== '' ? status.message : `HTTP status ${actual}`,
    // A gateway that gave up waiting does not know; a server that answered does.
    outcome: actual === 504 || reason === 'Timeout' || reason === 'ServerTimeout' ? 'unknown' : 'failed',
    ...(asked === undefined ? {} : { retryAfterMs: Math.min(RETRY_AFTER_MAX_MS, Math.max(0, asked)) }),
  };
}

/** The server does not know of the version that was asked for: its history is another one, or it lags behind another server. */
export const TOO_LARGE = 'ResourceVersionTooLarge';

/** The server's own reason is `Timeout`, as it waits for the version first. */
function isTooLarge(causes: unknown): boolean {
  return Array.isArray(causes) && causes.some((c) => isRecord(c) && c.reason === TOO_LARGE);
}

/** `GET /api/v1/nodes/n1: 403 Forbidden: ...`, for logs. */
export function failureText(request: { verb: string; path: string }, f: KubeFailure): string {
  const kind = f.code === 0 ? f.reason : `${f.code} ${f.reason}`;
  return `${request.verb} ${request.path}: ${kind}: ${f.message}${f.outcome === 'unknown' && request.verb !== 'GET' ? ' (it may have taken effect)' : ''}`;
}

/** The resource version is gone from the server's history, or was never in it: ask for the newest state. */
export function isExpired(f: KubeFailure): boolean {
  return f.code === 410 || f.reason === 'Expired' || f.reason === 'Gone' || f.reason === TOO_LARGE;
}

/** The server is there but will not do this, now or later; trying again soon is no use. */
export function isRefusal(f: KubeFailure): boolean {
  return f.code >= 400 && f.code < 500 && f.code !== 408 && f.code !== 409 && f.code !== 429;
}

/** True for failures that say nothing about the API server being away: it answered. */
export function wasAnswered(f: KubeFailure): boolean {
  return f.code > 0 && f.code !== 502 && f.code !== 503 && f.code !== 504;
}

// ---- paths -------------------------------------------------------------------------------------------------------

const CORE = '/api/v1';

export const kubePath = {
  pods: `${CORE}/pods`,
  pod: (namespace: string, name: string): string => `${CORE}/namespaces/${esc(namespace)}/pods/${esc(name)}`,
  podStatus: (namespace: string, name: string): string => `${kubePath.pod(namespace, name)}/status`,
  podsIn: (namespace: string): string => `${CORE}/namespaces/${esc(namespace)}/pods`,
  nodes: `${CORE}/nodes`,
  node: (name: string): string => `${CORE}/nodes/${esc(name)}`,
  nodeStatus: (name: string): string => `${kubePath.node(name)}/status`,
  services: `${CORE}/services`,
  claim: (namespace: string, name: string): string => `${CORE}/namespaces/${esc(namespace)}/persistentvolumeclaims/${esc(name)}`,
  persistentVolume: (name: string): string => `${CORE}/persistentvolumes/${esc(name)}`,
  eventsIn: (namespace: string): string => `${CORE}/namespaces/${esc(namespace)}/events`,
  event: (namespace: string, name: string): string => `${kubePath.eventsIn(namespace)}/${esc(name)}`,
  secret: (namespace: string, name: string): string => `${CORE}/namespaces/${esc(namespace)}/secrets/${esc(name)}`,
  configMap: (namespace: string, name: string): string => `${CORE}/namespaces/${esc(namespace)}/configmaps/${esc(name)}`,
  serviceAccount: (namespace: string, name: string): string => `${CORE}/namespaces/${esc(namespace)}/serviceaccounts/${esc(name)}`,
  token: (namespace: string, account: string): string => `${CORE}/namespaces/${esc(namespace)}/serviceaccounts/${esc(account)}/token`,
  leasesIn: (namespace: string): string => `/apis/coordination.k8s.io/v1/namespaces/${esc(namespace)}/leases`,
  lease: (namespace: string, name: string): string => `${kubePath.leasesIn(namespace)}/${esc(name)}`,
  runtimeClass: (name: string): string => `/apis/node.k8s.io/v1/runtimeclasses/${esc(name)}`,
  csiDrivers: '/apis/storage.k8s.io/v1/csidrivers',
  csiDriver: (name: string): string => `/apis/storage.k8s.io/v1/csidrivers/${esc(name)}`,
  csiNodes: '/apis/storage.k8s.io/v1/csinodes',
  csiNode: (name: string): string => `${kubePath.csiNodes}/${esc(name)}`,
  volumeAttachment: (name: string): string => `/apis/storage.k8s.io/v1/volumeattachments/${esc(name)}`,
  resourceClaim: (namespace: string, name: string): string =>
    `/apis/resource.k8s.io/v1/namespaces/${esc(namespace)}/resourceclaims/${esc(name)}`,
  resourceSlices: '/apis/resource.k8s.io/v1/resourceslices',
  version: '/version',
} as const;

/** JSON can have half of a surrogate pair, of which no URL can be made. */
const esc = (part: string): string => encodeURIComponent(part.toWellFormed());

export function objectKey(o: KubeObject): string {
  return `${o.metadata.namespace ?? ''}/${o.metadata.name}`;
}

/** Versions of one server grow; only whether an answer is older than what is known already is ever asked. */
export function isOlder(version: string, than: string): boolean {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(than)) return false;
  return BigInt(version) < BigInt(than);
}
