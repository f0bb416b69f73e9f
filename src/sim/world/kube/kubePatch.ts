/**
 * How the API server applies patches: JSON merge patches, and strategic merge patches as far as node agents use them.
 * Written apart from `machines/api/statusPatch.ts`, which makes them, so that each is a check of the other.
 */
import { isRecord } from '../../../machines/shape/conform.ts';

/** Lists merged by a key, by the name of their field; every other list is replaced as a whole. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  conditions: 'type',
  addresses: 'type',
  podIPs: 'ip',
  hostIPs: 'ip',
  ownerReferences: 'uid',
  containers: 'name',
  initContainers: 'name',
  volumes: 'name',
};

export function applyMergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const out: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete out[key];
    else out[key] = applyMergePatch(out[key], value);
  }
  return out;
}

/** @throws Error when the patch is malformed: the server answers 400. */
export function applyStrategicPatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  if (patch.$patch === 'delete') return undefined;
  const replace = patch.$patch === 'replace';
  const out: Record<string, unknown> = isRecord(target) && !replace ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    // The order of a merged list is told apart from its members.
    if (key.startsWith('$')) continue;
    if (value === null) {
      delete out[key];
      continue;
    }
    const mergeKey = Array.isArray(value) ? MERGE_KEYS[key] : undefined;
    const next = mergeKey === undefined ? applyStrategicPatch(out[key], value) : mergeList(out[key], value as unknown[], { key, mergeKey });
    if (next === undefined) delete out[key];
    else out[key] = next;
  }
  return out;
}

function mergeList(target: unknown, patch: readonly unknown[], by: { key: string; mergeKey: string }): unknown[] {
  const members = patch.map((m) => {
    if (!isRecord(m)) throw new Error(`${by.key}: members must be objects`);
    return m;
  });
  if (members.some((m) => m.$patch === 'replace' && Object.keys(m).length === 1)) return members.filter((m) => m.$patch !== 'replace');
  const out: unknown[] = Array.isArray(target) ? [...target] : [];
  for (const member of members) {
    const id = member[by.mergeKey];
    if (id === undefined) throw new Error(`${by.key}: a member without its merge key ${by.mergeKey}`);
    const at = out.findIndex((m) => isRecord(m) && m[by.mergeKey] === id);
    if (member.$patch === 'delete') {
      if (at >= 0) out.splice(at, 1);
    } else if (at < 0) out.push(applyStrategicPatch(undefined, member));
    else out[at] = applyStrategicPatch(out[at], member);
  }
  return out;
}
