/** Paths and verbs of the simulated API server: from a request to the store and back. */

import { copyData } from '@actorlet/kubelet/machines/data/copyData.ts';
import {
  type KubeFailure,
  type KubeObject,
  type KubeRequest,
  type KubeResult,
  type KubeVerb,
  TOO_LARGE,
} from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { review } from '../identity/accounts.ts';
import { SECRET } from '../identity/certificates.ts';
import { ApiFault } from './apiFault.ts';
import { applyJsonPatch, applyMergePatch, applyStrategicPatch, PatchFailed } from './kubePatch.ts';
import { selectorOf } from './kubeSelectors.ts';
import type { KubeStore } from './kubeStore.ts';
import type { Resource } from './resource.ts';
import { timestamp } from './timestamp.ts';

export const RESOURCES: readonly (Resource & { group: string })[] = [
  core('pods', 'Pod', true),
  core('nodes', 'Node', false),
  core('events', 'Event', true),
  core('services', 'Service', true),
  core('secrets', 'Secret', true),
  core('configmaps', 'ConfigMap', true),
  core('serviceaccounts', 'ServiceAccount', true),
  core('persistentvolumeclaims', 'PersistentVolumeClaim', true),
  core('persistentvolumes', 'PersistentVolume', false),
  {
    name: 'certificatesigningrequests',
    kind: 'CertificateSigningRequest',
    apiVersion: 'certificates.k8s.io/v1',
    namespaced: false,
    group: '/apis/certificates.k8s.io/v1',
  },
  // In versions of 1.36.
  ofCertificates('clustertrustbundles', 'ClusterTrustBundle', false),
  ofCertificates('podcertificaterequests', 'PodCertificateRequest', true),
  { name: 'runtimeclasses', kind: 'RuntimeClass', apiVersion: 'node.k8s.io/v1', namespaced: false, group: '/apis/node.k8s.io/v1' },
  storage('csidrivers', 'CSIDriver'),
  storage('csinodes', 'CSINode'),
  storage('volumeattachments', 'VolumeAttachment'),
  ...(['resourceclaims', 'resourceslices'] as const).map((name) => ({
    name,
    kind: name === 'resourceclaims' ? 'ResourceClaim' : 'ResourceSlice',
    apiVersion: 'resource.k8s.io/v1',
    namespaced: name === 'resourceclaims',
    group: '/apis/resource.k8s.io/v1',
  })),
  { name: 'leases', kind: 'Lease', apiVersion: 'coordination.k8s.io/v1', namespaced: true, group: '/apis/coordination.k8s.io/v1' },
];
function core(name: string, kind: string, namespaced: boolean): Resource & { group: string } {
  return { name, kind, apiVersion: 'v1', namespaced, group: '/api/v1' };
}

function ofCertificates(name: string, kind: string, namespaced: boolean): Resource & { group: string } {
  return { name, kind, apiVersion: 'certificates.k8s.io/v1beta1', namespaced, group: '/apis/certificates.k8s.io/v1beta1' };
}

function storage(name: string, kind: string): Resource & { group: string } {
  return { name, kind, apiVersion: 'storage.k8s.io/v1', namespaced: false, group: '/apis/storage.k8s.io/v1' };
}

const GROUPS = [...new Set(RESOURCES.map((r) => r.group))];
const WITH_STATUS = ['pods', 'nodes', 'services', 'persistentvolumes', 'persistentvolumeclaims', 'volumeattachments', 'resourceclaims'];
const OF_REQUESTS = { certificatesigningrequests: ['status', 'approval'], podcertificaterequests: ['status'] };
/** By resource. */
const SUBRESOURCES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(WITH_STATUS.map((name) => [name, ['status']])),
  ...OF_REQUESTS,
  pods: ['status', 'ephemeralcontainers', 'resize', 'binding'],
  serviceaccounts: ['token'],
};
/** What is only made, and never read. */
const ONLY_MADE: readonly string[] = ['binding', 'token'];

export interface Route {
  resource: Resource;
  namespace: string;
  name: string | null;
  sub: string | null;
}

export function route(path: string): Route {
  const none = (): ApiFault => new ApiFault(404, 'NotFound', `the server could not find the requested resource: ${path}`);
  const group = GROUPS.find((of) => path.startsWith(`${of}/`));
  if (group === undefined) throw none();
  const parts = partsOf(path.slice(group.length + 1));
  const namespace = parts[0] === 'namespaces' && parts.length > 2 ? (parts[1] ?? '') : '';
  const rest = namespace === '' ? parts : parts.slice(2);
  const resource = RESOURCES.find((r) => r.name === rest[0] && r.group === group);
  const [, name = null, sub = null, ...more] = rest;
  if (resource === undefined || more.length > 0) throw none();
  if (sub !== null && SUBRESOURCES[resource.name]?.includes(sub) !== true) throw none();
  return { resource, namespace, name, sub };
}

function partsOf(path: string): string[] {
  try {
    return path.split('/').map(decodeURIComponent);
  } catch {
    throw new ApiFault(400, 'BadRequest', `${path}: an escape that is none`);
  }
}

export function statusOf(code: number, reason: string, message: string): object {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message };
}
export function failureOf(error: unknown): KubeFailure {
  if (error instanceof ApiFault) return { code: error.code, reason: error.reason, message: error.message, outcome: 'failed' };
  throw error;
}

/** `tokenSecondsMax`: no token lives for longer, whatever is asked for. */
export function carryOut(store: KubeStore, clock: Clock, request: KubeRequest, tokenSecondsMax = Number.POSITIVE_INFINITY): KubeResult {
  try {
    if (request.path === '/version') return { ok: true, code: 200, body: { major: '1', minor: '36', gitVersion: 'v1.36.0' } };
    const reviewed = request.verb === 'POST' ? review(request.path, request.body, SECRET) : undefined;
    if (reviewed !== undefined) return { ok: true, code: 201, body: reviewed };
    const at = route(request.path);
    const answered = () => answer(store, clock, { request, at, tokenSecondsMax });
    return { ok: true, ...(isDryRun(request) ? store.dryRun(answered) : answered()) };
  } catch (error) {
    return { ok: false, failure: failureOf(error) };
  }
}

/** As the query of a write says, or the options of a deletion. */
function isDryRun({ verb, query, body }: KubeRequest): boolean {
  const options = verb === 'DELETE' && isRecord(body) && Array.isArray(body.dryRun) ? body.dryRun : [];
  const asked: unknown[] = [...(query?.dryRun === undefined ? [] : [query.dryRun]), ...options];
  const wrong = asked.find((value) => value !== 'All');
  if (wrong !== undefined)
    throw new ApiFault(422, 'Invalid', `dryRun: Unsupported value: ${JSON.stringify(wrong)}: supported values: "All"`);
  return verb !== 'GET' && asked.length > 0;
}

interface Question {
  request: KubeRequest;
  at: Route;
  tokenSecondsMax: number;
}

function answer(store: KubeStore, clock: Clock, o: Question): { code: number; body: unknown } {
  const { request, at } = o;
  const { resource, namespace, name, sub } = at;
  const where = { namespace, name: name ?? '', status: sub === 'status', sub };
  const done = (object: KubeObject, code = 200): { code: number; body: unknown } => ({ code, body: copyData(object) });
  if (!mayAsk(request.verb, at))
    throw new ApiFault(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource');
  if (sub === 'token') return token(store, clock, o);
  if (sub === 'binding') return bind(store, at, request.body);
  switch (request.verb) {
    case 'GET':
      return name === null ? list(store, request, at) : done(store.get(resource, namespace, name));
    case 'POST':
      return done(store.create(resource, namespace, request.body), 201);
    case 'PUT':
      return done(store.update(resource, where, request.body));
    case 'PATCH': {
      const before = store.get(resource, namespace, where.name);
      const { metadata } = before;
      // The patched object is checked against the stored one, except where the patch itself names a version.
      const base: KubeObject = { ...before, metadata: { ...metadata } };
      delete base.metadata.resourceVersion;
      let patched: unknown;
      try {
        patched = PATCHES[request.patchType ?? 'merge'](base, request.body);
      } catch (error) {
        if (error instanceof PatchFailed) throw new ApiFault(422, 'Invalid', messageOf(error));
        throw new ApiFault(400, 'BadRequest', messageOf(error));
      }
      return done(store.update(resource, where, patched));
    }
    case 'DELETE': {
      const body = isRecord(request.body) ? request.body : {};
      const pre = isRecord(body.preconditions) ? body.preconditions : {};
      const seconds = wholeNumber(body.gracePeriodSeconds, 'gracePeriodSeconds') ?? integerOf(request.query?.gracePeriodSeconds);
      const options = {
        ...(seconds === undefined ? {} : { gracePeriodSeconds: seconds }),
        ...(typeof pre.uid === 'string' ? { uid: pre.uid } : {}),
        ...(typeof pre.resourceVersion === 'string' ? { resourceVersion: pre.resourceVersion } : {}),
      };
      if (name !== null) return done(store.delete(resource, where, options));
      const listed = list(store, request, at);
      const { matches, pin } = selectorOf(resource, request.query, namespace);
      for (const { metadata } of store.list(resource.name, pin).filter(matches))
        store.delete(resource, { namespace: metadata.namespace ?? '', name: metadata.name }, options);
      return listed;
    }
  }
}

const PATCHES = { merge: applyMergePatch, strategic: applyStrategicPatch, json: applyJsonPatch } as const;

/** Of a collection, of an object, of its subresource. */
function mayAsk(verb: KubeVerb, { resource, namespace, name, sub }: Route): boolean {
  if (sub !== null) return ONLY_MADE.includes(sub) ? verb === 'POST' : verb !== 'POST' && verb !== 'DELETE';
  if (name !== null) return verb !== 'POST';
  return verb === 'GET' || ((verb === 'POST' || verb === 'DELETE') && (!resource.namespaced || namespace !== ''));
}

/** As a scheduler gives a pod its node. */
function bind(store: KubeStore, { resource, namespace, name }: Route, body: unknown): { code: number; body: unknown } {
  const pod = store.get(resource, namespace, name ?? '');
  const spec = isRecord(pod.spec) ? pod.spec : {};
  const node = isRecord(body) && isRecord(body.target) ? body.target.name : undefined;
  if (typeof node !== 'string' || node === '') throw new ApiFault(422, 'Invalid', 'Binding is invalid: target.name: required');
  const refused = pod.metadata.deletionTimestamp
    ? 'is being deleted'
    : spec.nodeName
      ? `is already assigned to node "${spec.nodeName}"`
      : '';
  if (refused !== '')
    throw new ApiFault(409, 'Conflict', `Operation cannot be fulfilled on pods/binding "${name}": pod ${name} ${refused}`);
  store.update(resource, { namespace, name: name ?? '', status: false, sub: 'binding' }, { ...pod, spec: { ...spec, nodeName: node } });
  return { code: 201, body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 } };
}

function token(store: KubeStore, clock: Clock, o: Question): { code: number; body: unknown } {
  const account = store.get(o.at.resource, o.at.namespace, o.at.name ?? '');
  const spec = isRecord(o.request.body) && isRecord(o.request.body.spec) ? o.request.body.spec : {};
  const asked = wholeNumber(spec.expirationSeconds, 'spec.expirationSeconds') ?? 3600;
  if (store.forgets) checkTokenSeconds(asked);
  const seconds = Math.min(asked, o.tokenSecondsMax);
  const expirationTimestamp = timestamp(clock.wallMs() + seconds * 1000);
  const status = { token: `token.${account.metadata.uid ?? ''}.${expirationTimestamp}`, expirationTimestamp };
  return {
    code: 201,
    body: { kind: 'TokenRequest', apiVersion: 'authentication.k8s.io/v1', spec: { ...spec, expirationSeconds: seconds }, status },
  };
}

/** What the real server lets a token live. @throws ApiFault 422 */
function checkTokenSeconds(seconds: number): void {
  const why =
    seconds < TOKEN_SECONDS_MIN
      ? 'may not specify a duration less than 10 minutes'
      : seconds > TOKEN_SECONDS_MAX
        ? 'may not specify a duration larger than 2^32 seconds'
        : null;
  if (why !== null)
    throw new ApiFault(422, 'Invalid', `TokenRequest is invalid: spec.expirationSeconds: Invalid value: ${seconds}: ${why}`);
}
const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX = 2 ** 32;

/** Of a field that is an int64; undefined: it is not there. @throws ApiFault 400 */
function wholeNumber(value: unknown, field: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  throw new ApiFault(400, 'BadRequest', `${field}: ${JSON.stringify(value)} is no whole number of 64 bits`);
}

/** 0: any. @throws ApiFault 400 */
export function versionOf(resourceVersion: string): number {
  if (/^\d*$/.test(resourceVersion)) return Number(resourceVersion);
  throw new ApiFault(400, 'BadRequest', `invalid resource version: ${JSON.stringify(resourceVersion)}`);
}

/** Of a parameter; undefined: it is not there. @throws ApiFault 400 */
export function integerOf(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  if (/^-?\d{1,15}$/.test(text)) return Number(text);
  throw new ApiFault(400, 'BadRequest', `${JSON.stringify(text)} is no whole number`);
}

/** Pages are named `VERSION:COUNT`: so many were given of what there was at that version. */
const PAGE = /^(\d+):(\d+)$/;

function list(store: KubeStore, request: KubeRequest, at: Route): { code: number; body: unknown } {
  const { query } = request;
  const { matches, pin } = selectorOf(at.resource, query, at.namespace);
  const { continue: next = '', resourceVersion = '', resourceVersionMatch = '' } = query ?? {};
  const asked = versionOf(resourceVersion);
  if (asked > store.resourceVersion)
    throw new ApiFault(504, TOO_LARGE, `Timeout: Too large resource version: ${asked}, current: ${store.resourceVersion}`);
  const first = resourceVersionMatch === 'Exact' ? asked : store.resourceVersion;
  const [, version, given] = PAGE.exec(next === '' ? `${first}:0` : next)?.map(Number) ?? [];
  if (version === undefined || given === undefined) throw new ApiFault(400, 'BadRequest', 'invalid continue token');
  if (next !== '' && version < store.compactedTo) throw new ApiFault(410, 'Expired', 'The provided continue parameter is too old');
  const { name } = at.resource;
  const all = (version === store.resourceVersion ? store.list(name, pin) : store.listAt(name, version)).filter(matches);
  const limit = integerOf(query?.limit) ?? 0;
  const page = limit > 0 ? all.slice(given, given + limit) : all.slice(given);
  const more = given + page.length < all.length;
  // Members of a list do not say what they are.
  const items = page.map((object) => {
    const { kind: _kind, apiVersion: _version, ...rest } = object;
    return copyData(rest);
  });
  return {
    code: 200,
    body: {
      kind: `${at.resource.kind}List`,
      apiVersion: at.resource.apiVersion,
      metadata: { resourceVersion: String(version), ...(more ? { continue: `${version}:${given + page.length}` } : {}) },
      items,
    },
  };
}
