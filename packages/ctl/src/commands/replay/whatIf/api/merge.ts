/** What somebody else changed of an object, done to the same object where the node wrote something else into it. */
import { sameData } from '@actorlet/kubelet/machines/data/sameData.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';

/** Which field tells the members of a list apart: the first that all of them have. */
const KEYS = ['type', 'name', 'key', 'uid', 'ip', 'mountPath', 'devicePath', 'containerPort', 'topologyKey'] as const;

/** Undefined: they have none. */
export function listKey(all: readonly unknown[]): string | undefined {
  return all.length === 0 ? undefined : KEYS.find((field) => all.every((member) => isRecord(member) && member[field] !== undefined));
}

/** `mine`, changed as `next` differs from `base`. */
export function merged(base: unknown, next: unknown, mine: unknown): unknown {
  if (sameData(base, next)) return mine;
  if (sameData(base, mine)) return next;
  if (isRecord(next) && isRecord(mine)) return mergedRecord(isRecord(base) ? base : {}, next, mine);
  if (Array.isArray(next) && Array.isArray(mine)) return mergedList(Array.isArray(base) ? base : [], next, mine);
  return next;
}

type Fields = Readonly<Record<string, unknown>>;

function mergedRecord(base: Fields, next: Fields, mine: Fields): Fields {
  const out: Record<string, unknown> = { ...mine };
  for (const key of new Set([...Object.keys(base), ...Object.keys(next)])) {
    if (sameData(base[key], next[key])) continue;
    if (next[key] === undefined) delete out[key];
    else out[key] = merged(base[key], next[key], mine[key]);
  }
  return out;
}

function mergedList(base: readonly unknown[], next: readonly unknown[], mine: readonly unknown[]): unknown[] {
  const all = [...base, ...next, ...mine];
  const key = listKey(all);
  if (key === undefined && all.some((member) => typeof member === 'object')) return [...next];
  const idOf = (member: unknown): unknown => (key === undefined ? member : (member as Fields)[key]);
  const by = (list: readonly unknown[]) => new Map(list.map((member) => [idOf(member), member]));
  const [then, now, out] = [by(base), by(next), by(mine)];
  for (const id of then.keys()) if (!now.has(id)) out.delete(id);
  for (const [id, member] of now) if (!sameData(then.get(id), member)) out.set(id, merged(then.get(id), member, out.get(id)));
  return [...out.values()];
}
