/** User namespaces of pods (`hostUsers: false`): which ids of the host those of a pod are. Pure. */

import type { Pod } from '../../../kube/types.ts';
import { type Built, built, refused } from '../../../result.ts';
import type { RuntimeHandlerView } from '../../../runtime/cri/messages.ts';
import type { IdMapping, UserNamespace } from '../../../wire/cri.ts';

/** What every pod gets where `userNamespaces.idsPerPod` says nothing else: all ids that are 16 bits wide. */
export const IDS_PER_POD = 65_536;
/** Ids are 32 bits wide, and the last one stands for nobody. */
const IDS = 2 ** 32;
const ID_MAX = IDS - 2;

/** Which runs of ids this node gives away. */
export interface IdRanges {
  /** Length of each, and where the first begins unless the host says: the ids below are its own. */
  idsPerPod: number;
  podsMax: number;
  /** Those of user `kubelet` in /etc/subuid; absent: all there are. */
  within?: { first: number; length: number };
}

export function asksForUserNamespace(pod: Pod): boolean {
  return pod.spec.hostUsers === false;
}

/** First ids of the runs, one for every pod that the node may have. */
export function firstIds({ idsPerPod, podsMax, within }: IdRanges): number[] {
  const ids: number[] = [];
  const last = within === undefined ? ID_MAX : Math.min(ID_MAX, within.first + within.length - 1);
  for (let first = within?.first ?? idsPerPod; ids.length < podsMax && first + idsPerPod - 1 <= last; first += idsPerPod) ids.push(first);
  return ids;
}

export function namespaceFrom(first: number, length: number): UserNamespace {
  const mapping: IdMapping = { hostId: first, containerId: 0, length };
  return { mode: 'POD', uids: [mapping], gids: [{ ...mapping }] };
}

/** What is written in the pod's directory, in the reference's words. */
export function mappingText(first: number, length: number): string {
  const mapping = { hostId: first, containerId: 0, length };
  return JSON.stringify({ uidMappings: [mapping], gidMappings: [mapping] });
}

/** The first id of what was written; refused when no node agent can have written it here. */
export function mappingFrom(text: string, ranges: IdRanges): Built<number> {
  const bad = (why: string) => refused(`user namespace: invalid user namespace configuration: ${why}`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return bad('it is no JSON');
  }
  const uids = onlyMapping(parsed, 'uidMappings');
  const gids = onlyMapping(parsed, 'gidMappings');
  if (uids === null || gids === null) return bad('one mapping of users and one of groups is expected');
  if (uids.hostId !== gids.hostId || uids.containerId !== gids.containerId || uids.length !== gids.length)
    return bad('the mappings of users and groups differ');
  if (uids.containerId !== 0) return bad('id 0 is not mapped');
  if (uids.length !== ranges.idsPerPod)
    return bad(`its length is ${uids.length}, not ${ranges.idsPerPod} as userNamespaces.idsPerPod says`);
  if (!isFirstId(uids.hostId, ranges)) return bad(`id ${uids.hostId} of the host is not one where a pod's ids begin`);
  return built(uids.hostId);
}

/** The kubelet draws runs from all ids that there are, and `podsMax` may have been larger. */
function isFirstId(id: number, { idsPerPod, within }: IdRanges): boolean {
  const { first, length } = within ?? { first: idsPerPod, length: IDS - idsPerPod };
  return Number.isInteger((id - first) / idsPerPod) && id >= first && id + idsPerPod <= first + length;
}

/** Ids of the host that the file of a pod names. No other pod gets any of them. */
export function heldIds(text: string): HeldIds[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [];
  }
  if (typeof parsed !== 'object' || parsed === null) return [];
  return ['uidMappings', 'gidMappings'].flatMap((key) => {
    const list: unknown = Reflect.get(parsed, key);
    return (Array.isArray(list) ? (list as unknown[]) : []).flatMap((entry) => mappingOf(entry) ?? []);
  });
}
export type HeldIds = Pick<IdMapping, 'hostId' | 'length'>;

/** The run of this pod that begins at `first` has some of them. */
export function isHeld(held: readonly HeldIds[], first: number, { idsPerPod }: IdRanges): boolean {
  return held.some(({ hostId, length }) => first < hostId + length && hostId < first + idsPerPod);
}

function onlyMapping(parsed: unknown, key: string): IdMapping | null {
  if (typeof parsed !== 'object' || parsed === null) return null;
  const list: unknown = Reflect.get(parsed, key);
  if (!Array.isArray(list) || list.length !== 1) return null;
  return mappingOf(list[0]);
}

function mappingOf(entry: unknown): IdMapping | null {
  if (typeof entry !== 'object' || entry === null) return null;
  const [hostId, containerId, length] = ['hostId', 'containerId', 'length'].map((k) => Reflect.get(entry, k) as unknown);
  if (typeof hostId !== 'number' || typeof containerId !== 'number' || typeof length !== 'number') return null;
  return { hostId, containerId, length };
}

/** Why the handler cannot make user namespaces. Null: it says that it can. What a handler does not say, it cannot do. */
export function userNamespaceRefusal(handlers: readonly RuntimeHandlerView[], handler: string): string | null {
  if (handlers.find(({ name }) => name === handler)?.userNamespaces === true) return null;
  const who = handler === '' ? 'runtime' : `RuntimeClass handler ${JSON.stringify(handler)}`;
  return `can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces`;
}
