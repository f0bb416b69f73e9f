/**
 * From a parsed document (YAML or JSON, already plain data) to pods ready for podConfig: kind check, type check, API
 * defaults, the static defaulting steps and full validation (spec: pod lifecycle 1.5 and 1.6). Pure.
 */

import { podShape } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { VOLUME_SOURCES } from '../../kube/volumeTable.ts';
import { ANNOTATION_HASH, canonicalJson } from '../../pod/names.ts';
import { ASSUMED_FIELD } from '../../pod/volumes/kinds.ts';
import { conform, isRecord } from '../../shape/conform.ts';
import { partOf } from '../../shape/lenient.ts';
import type { Shape } from '../../shape/shape.ts';
import { cut, ErrorList } from '../../text/errorList.ts';
import { nearestName } from '../../text/nearest.ts';
import { apiReferences } from './apiReferences.ts';
import { applyApiDefaults } from './defaults.ts';
import { validatePod } from './validate.ts';

export interface DecodeOptions {
  source: 'file' | 'http';
  /** Path of the manifest file, or the URL: part of the UID. */
  where: string;
  nodeName: string;
  /** Lower-case hexadecimal MD5. */
  md5Hex(text: string): string;
  /** Refuses manifests that refer to API objects (gate PreventStaticPodAPIReferences). */
  preventApiReferences: boolean;
  /** What was read leniently so far. */
  notes?: readonly string[];
}
/** Pods of one document; a node runs 110 by default. */
const PODS_MAX = 1_000;
const KIND_CHARS_MAX = 100;

export type Decoded =
  /** `notes`: what was read leniently, or is left out. */
  | { ok: true; pods: Pod[]; notes: string[] }
  /** `holds`: full name of the pod that it would have been. */
  | { ok: false; errors: string[]; holds?: string };

/**
 * UID of a static pod: the content first, then the place it came from, so that equal manifests in two places are two
 * pods. The content is taken before defaults are filled in: a later version with one more default must not give
 * every static pod of the node a new UID, which would replace them all.
 */
function staticUid(pod: Pod, opts: DecodeOptions): string {
  const { status: _, ...content } = pod;
  const place = opts.source === 'file' ? `host:${opts.nodeName}file:${opts.where}` : `url:${opts.where}`;
  return opts.md5Hex(canonicalJson(content) + place);
}

function applyStaticDefaults(pod: Pod, uid: string, opts: DecodeOptions): void {
  const { metadata, spec } = pod;
  metadata.uid = uid;
  metadata.name = `${metadata.name}-${opts.nodeName.toLowerCase()}`;
  metadata.namespace = metadata.namespace || 'default';
  spec.nodeName = opts.nodeName;
  metadata.annotations = { ...metadata.annotations, [ANNOTATION_HASH]: uid };
  if (opts.source === 'file') {
    const same = (t: { key?: string; operator?: string; effect?: string }) => !t.key && t.operator === 'Exists' && t.effect === 'NoExecute';
    spec.tolerations = [...(spec.tolerations ?? []).filter((t) => !same(t)), { operator: 'Exists', effect: 'NoExecute' }];
  }
  pod.status = { phase: 'Pending' };
}

interface Decoding {
  opts: DecodeOptions;
  errors: ErrorList;
  notes: ErrorList;
}

function asPod(doc: Record<string, unknown>, prefix: string, { errors, notes }: Decoding): Pod | undefined {
  const found = new ErrorList();
  const isNamed = (path: string) => found.list().some((e) => e.startsWith(`${path}:`));
  const pod = conform(doc, { schema: podShape, path: '', note: (what) => notes.add(prefix + what) }, found);
  if (isRecord(pod)) {
    for (const part of ['metadata', 'spec']) if (!isRecord(pod[part]) && !isNamed(part)) found.add(`${part}: required`);
    if (isRecord(pod.spec) && pod.spec.containers === undefined) {
      if (!isNamed('spec.containers')) found.add('spec.containers: required, at least one container');
    }
    if (isRecord(pod.metadata) && !pod.metadata.name && !isNamed('metadata.name')) found.add('metadata.name: required');
  }
  if (found.count > 0) {
    errors.addAll(found, (error) => prefix + withMeant(error, pod));
    return undefined;
  }
  // Every field the Pod type names has just been checked against the schema.
  return pod as Pod;
}

/** Unknown fields of one object that are looked at. */
const SLIPS_MAX = 100;

/** Names the unknown field that was meant to be the one that is missing. */
function withMeant(error: string, pod: unknown): string {
  const [, path = '', missing] = /^(?:(\S+)\.)?(\w+): required/.exec(error) ?? [];
  if (missing === undefined) return error;
  let [at, shape]: [unknown, Shape | undefined] = [pod, podShape];
  for (const part of path.match(/\w+/g) ?? []) {
    at = isRecord(at) || Array.isArray(at) ? Reflect.get(at, part) : undefined;
    shape = shape?.t === 'object' ? shape.fields[part] : shape?.t === 'list' ? shape.of : undefined;
  }
  if (!isRecord(at) || shape?.t !== 'object') return error;
  const { fields } = shape;
  const unknown = Object.keys(at).filter((key) => !Object.hasOwn(fields, key));
  const slip = nearestName(missing, unknown.slice(0, SLIPS_MAX));
  return slip === undefined ? error : `${error} (${cut(slip, KIND_CHARS_MAX)} is no field: did you mean ${missing}?)`;
}

function decodeOne(doc: Record<string, unknown>, prefix: string, { opts, errors, notes }: Decoding): Pod | undefined {
  const pod = asPod(doc, prefix, { opts, errors, notes });
  if (pod === undefined) return undefined;
  const note = (what: string): void => notes.add(prefix + what);
  const uid = pod.metadata.uid || staticUid(pod, opts);
  applyApiDefaults(pod);
  readLeniently(pod, note);
  applyStaticDefaults(pod, uid, opts);
  const invalid = validatePod(pod);
  if (opts.preventApiReferences) {
    for (const path of apiReferences(pod))
      invalid.add(`${path}: a static pod cannot refer to API objects (gate PreventStaticPodAPIReferences)`);
  }
  errors.addAll(invalid, (error) => prefix + withMeant(error, pod));
  return invalid.count === 0 ? pod : undefined;
}

/** What the kubelet takes for something else than it says. */
function readLeniently({ spec }: Pod, note: (what: string) => void): void {
  spec.volumes?.forEach((volume, i) => {
    if (VOLUME_SOURCES.some((kind) => volume[kind] !== undefined)) return;
    note(`spec.volumes[${i}]: names no kind of volume that is known; it is taken for an emptyDir`);
    volume[ASSUMED_FIELD] = {};
  });
  const seconds = spec.terminationGracePeriodSeconds ?? 0;
  if (seconds >= 0) return;
  note(`spec.terminationGracePeriodSeconds: ${seconds} is taken for 1`);
  spec.terminationGracePeriodSeconds = 1;
}

/** The kubelet finds `kind` and `apiVersion` in whatever case they are written. Of several the last one counts, then that of the right case. */
function headerField(doc: Record<string, unknown>, name: string): unknown {
  const spellings = Object.keys(doc).filter((key) => key.toLowerCase() === name.toLowerCase() && doc[key] !== null);
  const found = spellings.includes(name) ? name : spellings.at(-1);
  return found === undefined ? undefined : doc[found];
}

function kindOf(doc: Record<string, unknown>): { kind: string; error?: string } {
  const [apiVersion, kind] = [headerField(doc, 'apiVersion'), headerField(doc, 'kind')];
  if (kind === undefined || kind === '') return { kind: '', error: 'kind: required; a manifest holds a Pod of apiVersion v1' };
  if (typeof kind !== 'string') return { kind: '', error: 'kind: must be a string' };
  if (apiVersion === undefined || apiVersion === '') return { kind, error: 'apiVersion: required; a Pod has apiVersion v1' };
  if (typeof apiVersion !== 'string') return { kind, error: 'apiVersion: must be a string' };
  if (apiVersion !== 'v1')
    return {
      kind,
      error: `apiVersion ${cut(apiVersion, KIND_CHARS_MAX)}, kind ${cut(kind, KIND_CHARS_MAX)}: not supported here; a manifest holds a Pod of apiVersion v1`,
    };
  return { kind };
}

/** The name of a pod that cannot be used as it is, where it says one. */
function holds(doc: Record<string, unknown>, { nodeName }: DecodeOptions): { holds?: string } {
  const { name, namespace } = partOf(doc, 'metadata');
  if (typeof name !== 'string' || name === '') return {};
  const space = typeof namespace === 'string' && namespace !== '' ? namespace : 'default';
  return { holds: `${name}-${nodeName.toLowerCase()}_${space}` };
}

function decodeList(items: unknown, decoding: Decoding): Pod[] | string {
  if (!Array.isArray(items)) return 'items: must be a list of pods';
  if (items.length > PODS_MAX) return `items: has ${items.length} pods, at most ${PODS_MAX} are taken`;
  return items.flatMap((item: unknown, i) => {
    if (item !== null && !isRecord(item)) decoding.errors.add(`items[${i}]: must be a Pod`);
    else return decodeOne({ ...item, apiVersion: 'v1', kind: 'Pod' }, `items[${i}].`, decoding) ?? [];
    return [];
  });
}

/** Decodes one document. A document with any error gives no pods at all. Errors read `path: what is wrong`. */
export function decodeManifest(doc: unknown, opts: DecodeOptions): Decoded {
  if (doc === null || doc === undefined) return { ok: false, errors: ['the document is empty'] };
  if (!isRecord(doc))
    return { ok: false, errors: [`the document is ${Array.isArray(doc) ? 'a list' : `a bare ${typeof doc}`}, not a Pod`] };
  const { kind, error } = kindOf(doc);
  if (error !== undefined) return { ok: false, errors: [error] };
  const decoding: Decoding = { opts, errors: new ErrorList(), notes: new ErrorList() };
  for (const note of opts.notes ?? []) decoding.notes.add(note);
  let pods: Pod[] | string;
  if (kind === 'Pod') {
    const pod = decodeOne({ ...doc, apiVersion: 'v1', kind }, '', decoding);
    pods = pod === undefined ? [] : [pod];
  } else if (kind === 'PodList' && opts.source === 'http') {
    pods = decodeList(doc.items ?? [], decoding);
  } else if (kind === 'PodList' || kind === 'List') {
    const what = opts.source === 'file' ? 'one file holds one Pod; put each pod in a file of its own' : 'use a PodList';
    pods = `kind ${kind}: not accepted here; ${what}`;
  } else {
    pods = `kind ${cut(kind, KIND_CHARS_MAX)}: not accepted here; a manifest holds a Pod of apiVersion v1`;
  }
  if (typeof pods === 'string') return { ok: false, errors: [pods] };
  if (decoding.errors.count > 0) return { ok: false, errors: decoding.errors.list(), ...holds(doc, opts) };
  return { ok: true, pods, notes: decoding.notes.list() };
}
