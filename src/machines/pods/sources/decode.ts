/**
 * From a parsed document (YAML or JSON, already plain data) to pods ready for podConfig: kind check, type check, API
 * defaults, the static defaulting steps and full validation (spec: pod lifecycle 1.5 and 1.6). Pure.
 */
import type { Pod } from '../../k8s.ts';
import { cut, ErrorList } from '../../text/errorList.ts';
import { apiReferences } from './apiReferences.ts';
import { applyApiDefaults } from './defaults.ts';
import { podShape } from './podTable.ts';
import { conform, isRecord } from './schema.ts';
import { validatePod } from './validate.ts';

export const ANNOTATION_SOURCE = 'kubernetes.io/config.source';
export const ANNOTATION_SEEN = 'kubernetes.io/config.seen';
export const ANNOTATION_HASH = 'kubernetes.io/config.hash';
export const ANNOTATION_MIRROR = 'kubernetes.io/config.mirror';

export interface DecodeOptions {
  source: 'file' | 'http';
  /** Path of the manifest file, or the URL: part of the UID. */
  where: string;
  nodeName: string;
  /** Lower-case hexadecimal MD5. */
  md5Hex(text: string): string;
  /** Refuses manifests that refer to API objects (gate PreventStaticPodAPIReferences). */
  preventApiReferences: boolean;
}
/** Pods of one document; a node runs 110 by default. */
const PODS_MAX = 1_000;
const KIND_CHARS_MAX = 100;

export type Decoded = { ok: true; pods: Pod[] } | { ok: false; errors: string[] };

/** `{name}_{namespace}`: the identity of a pod within one source. */
export function fullName(pod: Pod): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}`;
}

/** JSON with sorted keys: equal for equal data, whatever order it was written in. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (isRecord(value)) {
    const fields = Object.keys(value)
      .filter((k) => value[k] !== undefined)
      .sort()
      .map((k) => `${JSON.stringify(k)}:${canonicalJson(value[k])}`);
    return `{${fields.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
}

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

function asPod(doc: Record<string, unknown>, prefix: string, errors: ErrorList): Pod | undefined {
  const found = new ErrorList();
  const isNamed = (path: string) => found.list().some((e) => e.startsWith(`${path}:`));
  const pod = conform(doc, { schema: podShape, path: '' }, found);
  if (isRecord(pod)) {
    for (const part of ['metadata', 'spec']) if (!isRecord(pod[part]) && !isNamed(part)) found.add(`${part}: required`);
    if (isRecord(pod.spec) && pod.spec.containers === undefined) {
      if (!isNamed('spec.containers')) found.add('spec.containers: required, at least one container');
    }
    if (isRecord(pod.metadata) && !pod.metadata.name && !isNamed('metadata.name')) found.add('metadata.name: required');
  }
  if (found.count > 0) {
    errors.addAll(found, prefix);
    return undefined;
  }
  // Every field the Pod type names has just been checked against the schema.
  return pod as Pod;
}

function decodeOne(doc: Record<string, unknown>, at: { prefix: string; opts: DecodeOptions }, errors: ErrorList): Pod | undefined {
  const { prefix, opts } = at;
  const pod = asPod(doc, prefix, errors);
  if (pod === undefined) return undefined;
  const uid = pod.metadata.uid || staticUid(pod, opts);
  applyApiDefaults(pod);
  applyStaticDefaults(pod, uid, opts);
  const invalid = validatePod(pod);
  if (opts.preventApiReferences) {
    for (const path of apiReferences(pod))
      invalid.add(`${path}: a static pod cannot refer to API objects (gate PreventStaticPodAPIReferences)`);
  }
  errors.addAll(invalid, prefix);
  return invalid.count === 0 ? pod : undefined;
}

function kindOf(doc: Record<string, unknown>): { kind: string; error?: string } {
  const { apiVersion, kind } = doc;
  if (kind === undefined || kind === null || kind === '')
    return { kind: '', error: 'kind: required; a manifest holds a Pod of apiVersion v1' };
  if (typeof kind !== 'string') return { kind: '', error: 'kind: must be a string' };
  if (apiVersion === undefined || apiVersion === null || apiVersion === '')
    return { kind, error: 'apiVersion: required; a Pod has apiVersion v1' };
  if (typeof apiVersion !== 'string') return { kind, error: 'apiVersion: must be a string' };
  if (apiVersion !== 'v1')
    return {
      kind,
      error: `apiVersion ${cut(apiVersion, KIND_CHARS_MAX)}, kind ${cut(kind, KIND_CHARS_MAX)}: not supported here; a manifest holds a Pod of apiVersion v1`,
    };
  return { kind };
}

/** Decodes one document. A document with any error gives no pods at all. Errors read `path: what is wrong`. */
export function decodeManifest(doc: unknown, opts: DecodeOptions): Decoded {
  if (doc === null || doc === undefined) return { ok: false, errors: ['the document is empty'] };
  if (!isRecord(doc))
    return { ok: false, errors: [`the document is ${Array.isArray(doc) ? 'a list' : `a bare ${typeof doc}`}, not a Pod`] };
  const { kind, error } = kindOf(doc);
  if (error !== undefined) return { ok: false, errors: [error] };
  const errors = new ErrorList();
  const pods: Pod[] = [];
  if (kind === 'Pod') {
    const pod = decodeOne(doc, { prefix: '', opts }, errors);
    if (pod !== undefined) pods.push(pod);
  } else if (kind === 'PodList' && opts.source === 'http') {
    const items = doc.items ?? [];
    if (!Array.isArray(items)) return { ok: false, errors: ['items: must be a list of pods'] };
    if (items.length > PODS_MAX) return { ok: false, errors: [`items: has ${items.length} pods, at most ${PODS_MAX} are taken`] };
    items.forEach((item: unknown, i) => {
      const prefix = `items[${i}].`;
      if (!isRecord(item)) errors.add(`items[${i}]: must be a Pod`);
      else if ((item.kind ?? 'Pod') !== 'Pod' || (item.apiVersion ?? 'v1') !== 'v1')
        errors.add(`${prefix}kind: must be a Pod of apiVersion v1`);
      else {
        const pod = decodeOne({ apiVersion: 'v1', kind: 'Pod', ...item }, { prefix, opts }, errors);
        if (pod !== undefined) pods.push(pod);
      }
    });
  } else if (kind === 'PodList' || kind === 'List') {
    const what = opts.source === 'file' ? 'one file holds one Pod; put each pod in a file of its own' : 'use a PodList';
    return { ok: false, errors: [`kind ${kind}: not accepted here; ${what}`] };
  } else {
    return { ok: false, errors: [`kind ${cut(kind, KIND_CHARS_MAX)}: not accepted here; a manifest holds a Pod of apiVersion v1`] };
  }
  return errors.count > 0 ? { ok: false, errors: errors.list() } : { ok: true, pods };
}
