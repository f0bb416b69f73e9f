/** The files of a secret, config map, downward or projected volume (resources and volumes 8.13). Pure. */

import { type ObjectQuery, type Objects, queryKey } from '../../kube/objects.ts';
import type { Pod } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import type { DownwardItem, Files, ProjectionSource } from '../../pod/volumes/kinds/files/files.ts';
import { fieldValue, resourceValue } from '../../pods/workers/config/env.ts';
import { type Built, built, refused } from '../../result.ts';
import { ErrorList, quoted } from '../../text/errorList.ts';
import { pathProblem } from './atomic.ts';

interface PayloadFile {
  data: Uint8Array;
  mode: number;
  /** Owner, where it is not root. */
  uid: number | null;
}
export type Payload = ReadonlyMap<string, PayloadFile>;

export interface PayloadInput {
  pod: Pod;
  source: Files;
  objects: Objects;
  facts: Pick<NodeFacts, 'nodeName' | 'hostIPs' | 'ipv6First' | 'allocatable'>;
  /** The one user of all containers, for token files. */
  user: number | null;
}

/** A token that only one user or group reads is hidden from the others. */
const TOKEN_PRIVATE_MODE = 0o600;
/**
 * Files and directories of one volume, and bytes of its files. The API server takes objects of 1 MiB, and of these fewer keys;
 * a projected volume may name many objects, or the annotations of its pod many times.
 */
const ENTRIES_MAX = 100_000;
const VOLUME_BYTES_MAX = 64 << 20;
const encoder = new TextEncoder();
/** An object may have tens of thousands of empty values. */
const EMPTY = new Uint8Array();
const encoded = (text: string): Uint8Array => (text === '' ? EMPTY : encoder.encode(text));

/** What must be asked before the payload can be built; each question once. */
export function objectsNeeded(sources: readonly ProjectionSource[]): ObjectQuery[] {
  const queries = new Map<string, ObjectQuery>();
  for (const s of sources) {
    if (s.kind === 'downwardAPI') continue;
    const query = queryOf(s);
    queries.set(queryKey(query), query);
  }
  return [...queries.values()];
}

function queryOf(s: Exclude<ProjectionSource, { kind: 'downwardAPI' }>): ObjectQuery {
  switch (s.kind) {
    case 'token':
      return { kind: 'token', audience: s.audience, expirationSeconds: s.expirationSeconds };
    case 'trustAnchors':
      return { kind: 'trustAnchors', ...s.query };
    case 'podCertificate':
      return { kind: 'podCertificate', ...s.query };
    default:
      return { kind: s.kind, name: s.name };
  }
}

/** Later sources win on equal paths; the errors of all are told together, and nothing is built with one. */
export function buildPayload(input: PayloadInput): Built<Payload> {
  const files = new Map<string, PayloadFile>();
  const errors = new ErrorList();
  let entries = 0;
  let bytes = 0;
  for (const source of input.source.sources) {
    const part = ofSource(source, input);
    if (!part.ok) errors.add(part.message);
    else {
      for (const [path, file] of part.value) {
        files.delete(path);
        files.set(path, file);
        entries += path.split('/').length;
        bytes += file.data.length;
      }
      // Counted with what later sources overwrite: the same object may be named a thousand times.
      if (entries > ENTRIES_MAX) return refused(`the volume has more than ${ENTRIES_MAX} files and directories`);
      if (bytes > VOLUME_BYTES_MAX) return refused(`the files of the volume have more than ${VOLUME_BYTES_MAX} bytes together`);
    }
  }
  for (const path of files.keys()) {
    const problem = pathProblem(path);
    if (problem !== null) errors.add(`invalid path ${quoted(path)}: ${problem}`);
  }
  const clash = errors.count === 0 ? fileAndDirectory(files.keys()) : undefined;
  if (clash !== undefined) errors.add(`${quoted(clash)} is a file and a directory at once`);
  if (errors.count === 0) return built(files);
  const found = errors.list();
  return refused(found.length === 1 ? (found[0] ?? '') : `[${found.join(', ')}]`);
}

/** A path that another one leads through. Sorted with a separator below all other characters, the two are neighbours. */
function fileAndDirectory(paths: Iterable<string>): string | undefined {
  const sorted = [...paths].map((path) => path.replaceAll('/', '\0')).sort();
  return sorted.find((path, i) => sorted[i + 1]?.startsWith(`${path}\0`) === true)?.replaceAll('\0', '/');
}

function ofSource(source: ProjectionSource, input: PayloadInput): Built<Payload> {
  switch (source.kind) {
    case 'secret':
    case 'configMap':
      return ofObject(source, input);
    case 'downwardAPI':
      return ofDownward(source.items, input);
    case 'token':
      return ofToken(source, input);
    case 'trustAnchors':
      return ofAnchors(source, input);
    case 'podCertificate':
      return ofCertificate(source, input);
  }
}

function ofObject(source: Extract<ProjectionSource, { kind: 'secret' | 'configMap' }>, input: PayloadInput): Built<Payload> {
  const { namespace } = input.pod.metadata;
  const word = source.kind === 'secret' ? 'secret' : 'configmap';
  const answer = input.objects.get(queryKey({ kind: source.kind, name: source.name }));
  if (answer?.kind !== 'secret' && answer?.kind !== 'configMap')
    return refused(`${word} "${namespace}/${source.name}": no API to ask for it`);
  const { result } = answer;
  if (result.kind === 'failed') return refused(result.message);
  if (result.kind === 'absent') {
    if (source.optional) return built(new Map());
    return refused(result.message ?? `${word} "${source.name}" not found`);
  }
  const data = new Map<string, Uint8Array>();
  if ('binaryData' in result.value) {
    for (const [key, value] of Object.entries(result.value.data)) data.set(key, encoded(value));
    for (const [key, value] of Object.entries(result.value.binaryData)) data.set(key, value);
  } else for (const [key, value] of Object.entries(result.value.data)) data.set(key, value);
  const files = new Map<string, PayloadFile>();
  const add = (path: string, bytes: Uint8Array, mode: number | null) =>
    files.set(cleanPath(path), { data: bytes, mode: mode ?? input.source.defaultMode, uid: null });
  if (source.items === null) for (const [key, bytes] of data) add(key, bytes, null);
  for (const item of source.items ?? []) {
    const bytes = data.get(item.key);
    if (bytes !== undefined) add(item.path, bytes, item.mode);
    else if (!source.optional) {
      return refused(
        `${source.kind === 'secret' ? 'references non-existent secret' : 'configmap references non-existent config'} key: ${item.key}`,
      );
    }
  }
  return built(files);
}

/** Fields a volume can hold; the others (addresses, say) are not known when it is made. */
const VOLUME_FIELD = /^metadata\.(name|namespace|uid|labels|annotations|(labels|annotations)\['.+'\])$/;

function ofDownward(items: readonly DownwardItem[], input: PayloadInput): Built<Payload> {
  const files = new Map<string, PayloadFile>();
  const errors = new ErrorList();
  const [first] = input.pod.spec.containers;
  const env = { pod: input.pod, container: first ?? { name: '' }, podIPs: [], facts: input.facts };
  // All annotations may have 256 KiB, and be asked for by each of thousands of items.
  const fields = new Map<string, Built<Uint8Array>>();
  const field = (path: string): Built<Uint8Array> => {
    const known = fields.get(path);
    if (known !== undefined) return known;
    const text = VOLUME_FIELD.test(path) ? fieldValue(path, env) : refused(`fieldRef.fieldPath ${quoted(path)} cannot stand in a volume`);
    const value = text.ok ? built(encoder.encode(text.value)) : text;
    fields.set(path, value);
    return value;
  };
  for (const item of items) {
    let value: Built<string | Uint8Array>;
    if (item.fieldPath !== null) {
      value = field(item.fieldPath);
    } else if (item.resource !== null) {
      value =
        item.resource.containerName === ''
          ? refused(`${item.path}: resourceFieldRef.containerName is required in a volume`)
          : resourceValue(item.resource, env);
    } else value = refused(`${item.path}: neither fieldRef nor resourceFieldRef is given`);
    if (!value.ok) {
      errors.add(value.message);
      continue;
    }
    const data = typeof value.value === 'string' ? encoder.encode(value.value) : value.value;
    files.set(cleanPath(item.path), { data, mode: item.mode ?? input.source.defaultMode, uid: null });
  }
  return errors.count === 0 ? built(files) : refused(errors.list().join(', '));
}

function ofToken(source: Extract<ProjectionSource, { kind: 'token' }>, input: PayloadInput): Built<Payload> {
  const answer = input.objects.get(queryKey({ kind: 'token', audience: source.audience, expirationSeconds: source.expirationSeconds }));
  if (answer?.kind !== 'token') return refused('service account token: no API to ask for it');
  const { result } = answer;
  if (result.kind === 'absent') return refused(`serviceaccount "${input.pod.spec.serviceAccountName ?? ''}" not found`);
  if (result.kind === 'failed') return refused(result.message);
  return built(new Map([[cleanPath(source.path), privateFile(result.value.token, input)]]));
}

/** A file for one user or group alone, where the pod has one. */
function privateFile(text: string, { user, pod, source }: PayloadInput): PayloadFile {
  const hidden = user !== null || pod.spec.securityContext?.fsGroup !== undefined;
  return { data: encoded(text), mode: hidden ? TOKEN_PRIVATE_MODE : source.defaultMode, uid: user };
}

function ofAnchors({ path, optional, query }: Extract<ProjectionSource, { kind: 'trustAnchors' }>, input: PayloadInput): Built<Payload> {
  const answer = input.objects.get(queryKey({ kind: 'trustAnchors', ...query }));
  if (answer?.kind !== 'trustAnchors') return refused('ClusterTrustBundle: no API to ask for it');
  const { result } = answer;
  if (result.kind !== 'found' && !(result.kind === 'absent' && optional)) return refused(result.message ?? 'ClusterTrustBundle not found');
  return built(new Map([[cleanPath(path), privateFile(result.kind === 'found' ? result.value : '', input)]]));
}

function ofCertificate({ paths, query }: Extract<ProjectionSource, { kind: 'podCertificate' }>, input: PayloadInput): Built<Payload> {
  const answer = input.objects.get(queryKey({ kind: 'podCertificate', ...query }));
  if (answer?.kind !== 'podCertificate') return refused('pod certificate: no API to ask for it');
  const { result } = answer;
  if (result.kind !== 'found') return refused(result.message ?? 'there is no such certificate');
  const { key, chain } = result.value;
  const files = new Map<string, PayloadFile>();
  for (const [path, text] of [
    [paths.bundle, `${key}${chain}`],
    [paths.key, key],
    [paths.chain, chain],
  ] as const) {
    if (path !== '') files.set(cleanPath(path), privateFile(text, input));
  }
  return built(files);
}

/** `a//b/./c/` is `a/b/c`; `..` stays, to be refused. */
function cleanPath(path: string): string {
  const parts = path.split('/').filter((p) => p !== '' && p !== '.');
  return path.startsWith('/') ? `/${parts.join('/')}` : parts.join('/');
}
