/**
 * How the API server applies patches: JSON patches, JSON merge patches, and strategic merge patches of pods and nodes.
 * Written apart from `machines/api/statusPatch.ts`, which makes them, so that each is a check of the other.
 */
import { copyData } from '@actorlet/kubelet/machines/data/copyData.ts';
import { own, replacing } from '@actorlet/kubelet/machines/data/own.ts';
import { sameData } from '@actorlet/kubelet/machines/data/sameData.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';

/** Lists merged by a key, by the name of their field; every other list is replaced as a whole. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  conditions: 'type',
  addresses: 'type',
  podIPs: 'ip',
  hostIPs: 'ip',
  ownerReferences: 'uid',
  containers: 'name',
  initContainers: 'name',
  ephemeralContainers: 'name',
  volumes: 'name',
  env: 'name',
  volumeMounts: 'mountPath',
  volumeDevices: 'devicePath',
  imagePullSecrets: 'name',
  schedulingGates: 'name',
  hostAliases: 'ip',
  topologySpreadConstraints: 'topologyKey',
};
/** Lists of texts that are merged: what the patch has comes first. */
const MERGED_TEXTS: readonly string[] = ['finalizers'];
const DELETED_TEXTS = '$deleteFromPrimitiveList/';

export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const before: Readonly<Record<string, unknown>> = isRecord(target) ? target : {};
  const changed = new Map<string, unknown>();
  for (const [key, value] of Object.entries(patch)) changed.set(key, value === null ? undefined : applyMergePatch(own(before, key), value));
  return replacing(before, changed);
}

/** @throws Error when the patch is malformed: the server answers 400. */
export function applyStrategicPatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  if (patch.$patch === 'delete') return undefined;
  const replace = patch.$patch === 'replace';
  const before: Readonly<Record<string, unknown>> = isRecord(target) && !replace ? target : {};
  const changed = new Map<string, unknown>();
  const now = (key: string): unknown => (changed.has(key) ? changed.get(key) : own(before, key));
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(DELETED_TEXTS)) {
      const field = key.slice(DELETED_TEXTS.length);
      const kept = now(field);
      const gone = new Set<unknown>(Array.isArray(value) ? value : []);
      if (Array.isArray(kept))
        changed.set(
          field,
          kept.filter((text) => !gone.has(text)),
        );
    }
    // The order of a merged list is told apart from its members.
    if (key.startsWith('$')) continue;
    if (MERGED_TEXTS.includes(key) && Array.isArray(value) && !replace) {
      changed.set(key, [...new Set<unknown>([...value, ...listOf(now(key))])]);
      continue;
    }
    if (value === null) {
      changed.set(key, undefined);
      continue;
    }
    const mergeKey = Array.isArray(value) ? MERGE_KEYS[key] : undefined;
    const was = now(key);
    changed.set(key, mergeKey === undefined ? applyStrategicPatch(was, value) : mergeList(was, value as unknown[], { key, mergeKey }));
  }
  return replacing(before, changed);
}

function mergeList(target: unknown, patch: readonly unknown[], by: { key: string; mergeKey: string }): unknown[] {
  const members = patch.map((m) => {
    if (!isRecord(m)) throw new Error(`${by.key}: members must be objects`);
    return m;
  });
  if (members.some((m) => m.$patch === 'replace' && Object.keys(m).length === 1)) return members.filter((m) => m.$patch !== 'replace');
  // By merge key, where there is one; in the order of the list.
  const out = new Map<unknown, unknown>();
  for (const m of listOf(target)) {
    const id = isRecord(m) ? m[by.mergeKey] : undefined;
    out.set(id === undefined || out.has(id) ? Symbol() : id, m);
  }
  for (const member of members) {
    const id = member[by.mergeKey];
    if (id === undefined) throw new Error(`${by.key}: a member without its merge key ${by.mergeKey}`);
    if (member.$patch === 'delete') out.delete(id);
    else out.set(id, applyStrategicPatch(out.get(id), member));
  }
  return [...out.values()];
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? [...value] : [];
}

/** An operation of a JSON patch cannot be carried out: the server answers 422. */
export class PatchFailed extends Error {}

/** RFC 6902. @throws PatchFailed, and Error when the patch is malformed: the server answers 400. */
export function applyJsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw new Error('a JSON patch is a list of operations');
  if (patch.length > OPERATIONS_MAX) throw new Error(`a JSON patch has at most ${OPERATIONS_MAX} operations`);
  const root = { '': copyData(target) };
  let copied = 0;
  for (const operation of patch) {
    if (!isRecord(operation)) throw new Error('an operation of a JSON patch is an object');
    const { op, path, from, value } = operation;
    const to = placeAt(root, path);
    if (op === 'add') to.add(value);
    else if (op === 'replace') to.replace(value);
    else if (op === 'remove') to.remove();
    else if (op === 'move') {
      const moved = placeAt(root, from);
      const it = moved.value();
      moved.remove();
      placeAt(root, path).add(it);
    } else if (op === 'copy') {
      const text = JSON.stringify(placeAt(root, from).value());
      copied += text.length;
      // Copies of copies would double the object each time.
      if (copied > COPIED_CHARS_MAX) throw new PatchFailed(`copies of a JSON patch have at most ${COPIED_CHARS_MAX} characters`);
      to.add(JSON.parse(text));
    } else if (op !== 'test') throw new Error(`a JSON patch has no operation ${JSON.stringify(op)}`);
    else if (!sameData(to.value(), value)) throw new PatchFailed(`the test of ${String(path)} failed`);
  }
  if (isDeeper(root[''], DEPTH_MAX)) throw new PatchFailed(`the patched object nests deeper than ${DEPTH_MAX}`);
  return root[''];
}

/** Objects of Kubernetes nest some twenty deep. What goes through them recurses. */
export const DEPTH_MAX = 200;

export function isDeeper(value: unknown, than: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return than === 0 || Object.values(value).some((part) => isDeeper(part, than - 1));
}

/** As of a kube-apiserver. */
const OPERATIONS_MAX = 10_000;
const COPIED_CHARS_MAX = 3 * 1024 * 1024;

interface Place {
  value(): unknown;
  add(value: unknown): void;
  replace(value: unknown): void;
  remove(): void;
}

/** @throws PatchFailed where there is nothing that has it, Error where the pointer is none. */
function placeAt(root: Record<string, unknown>, pointer: unknown): Place {
  if (typeof pointer !== 'string' || !/^(?:\/|$)/.test(pointer)) throw new Error(`${JSON.stringify(pointer)} is no JSON pointer`);
  const keys = pointer.split('/').map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  const key = keys.pop() ?? '';
  const none = new PatchFailed(`there is no ${pointer}`);
  const child = (parent: unknown, of: string): unknown => {
    if (Array.isArray(parent)) return parent[indexOf(of, parent.length - 1, none)];
    if (isRecord(parent) && Object.hasOwn(parent, of)) return parent[of];
    throw none;
  };
  const parent = keys.reduce<unknown>(child, root);
  if (Array.isArray(parent)) {
    const at = (): number => indexOf(key, parent.length - 1, none);
    return {
      value: () => parent[at()],
      add: (value) => void parent.splice(key === '-' ? parent.length : indexOf(key, parent.length, none), 0, value),
      replace: (value) => void parent.splice(at(), 1, value),
      remove: () => void parent.splice(at(), 1),
    };
  }
  if (!isRecord(parent) || key === '__proto__') throw none;
  const there = (): unknown => child(parent, key);
  return {
    value: there,
    add: (value) => {
      parent[key] = value;
    },
    replace: (value) => {
      there();
      parent[key] = value;
    },
    remove: () => {
      there();
      delete parent[key];
    },
  };
}

function indexOf(key: string, max: number, none: Error): number {
  if (!/^(?:0|[1-9]\d{0,8})$/.test(key) || Number(key) > max) throw none;
  return Number(key);
}
