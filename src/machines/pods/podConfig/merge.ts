/**
 * podConfig: turns complete sets of pods per source into operations (spec: pod lifecycle 1.7). Pure: state in, state and operations out.
 */

import { sameData } from '../../data/sameData.ts';
import type { Pod } from '../../kube/types.ts';
import { ANNOTATION_MIRROR, ANNOTATION_SEEN, ANNOTATION_SOURCE, fullName } from '../../pod/names.ts';
import { unsafeName } from '../../pod/pathName.ts';
import type { PodOpKind, SourceName } from '../../pod/runtime/seen.ts';
import { foreignAnnotations, LOCAL, sameDesired } from '../../pod/sameDesired.ts';

interface Stored {
  pod: Pod;
  /** The object the source delivered last: the same object again cannot differ. */
  delivered: Pod;
  fullName: string;
}
export interface PodStorage {
  readonly pods: ReadonlyMap<SourceName, ReadonlyMap<string, Stored>>;
  /** Sources that have delivered at least one SET. */
  readonly seen: ReadonlySet<SourceName>;
}
export interface PodOperation {
  op: PodOpKind;
  source: SourceName;
  /** Shared with the source and with what is stored here, so that a pod is in memory once: nobody changes them. */
  pods: readonly Pod[];
}
export interface Duplicate {
  pod: Pod;
  /** The pod that has the name or the UID. */
  winner: Pod;
  same: 'name' | 'uid';
  /** Where the winner is from. A name may stand in several sources, a UID in one. */
  holder: SourceName;
}
interface Unsafe {
  pod: Pod;
  /** The field, and what is wrong with it. */
  message: string;
}
export interface MergeInput {
  source: SourceName;
  pods: readonly Pod[];
  /** Wall milliseconds, for config.seen. */
  nowWallMs: number;
}
export interface MergeResult {
  state: PodStorage;
  ops: PodOperation[];
  duplicates: Duplicate[];
  /** Not taken: something in them names files and cannot. */
  unsafe: Unsafe[];
}

export const emptyPodStorage: PodStorage = { pods: new Map(), seen: new Set() };

/** RFC 3339 with nine digits of a second, UTC. */
export function seenStamp(wallMs: number): string {
  return new Date(wallMs).toISOString().replace('Z', '000000Z');
}

function stamped(pod: Pod, local: Record<string, string>): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations: { ...foreignAnnotations(pod), ...local } } };
}

function localOf(pod: Pod): Record<string, string> {
  const own: Record<string, string> = {};
  for (const key of LOCAL) {
    const value = pod.metadata.annotations?.[key];
    if (value !== undefined) own[key] = value;
  }
  return own;
}

/** Gives the stored pod and what changed: its status only, what is wanted of it, or nothing. */
function compare(known: Stored, incoming: Pod, name: string): { stored: Stored; change: 'none' | 'RECONCILE' | 'UPDATE' | 'DELETE' } {
  const existing = known.pod;
  const stored = (pod: Pod): Stored => ({ pod, delivered: incoming, fullName: name });
  if (sameDesired(existing, incoming)) {
    if (sameData(existing.status, incoming.status)) return { stored: stored(existing), change: 'none' };
    return { stored: stored({ ...existing, status: incoming.status }), change: 'RECONCILE' };
  }
  return { stored: stored(stamped(incoming, localOf(existing))), change: incoming.metadata.deletionTimestamp ? 'DELETE' : 'UPDATE' };
}

function firstSeen(pod: Pod, { source, nowWallMs }: MergeInput): Pod {
  const mirror = pod.metadata.annotations?.[ANNOTATION_MIRROR];
  return stamped(pod, {
    [ANNOTATION_SOURCE]: source,
    [ANNOTATION_SEEN]: seenStamp(nowWallMs),
    ...(mirror === undefined ? {} : { [ANNOTATION_MIRROR]: mirror }),
  });
}

/** The pod that keeps a UID which several pods of a set have: the one that had it before, in whatever order they come. */
function keepers(before: ReadonlyMap<string, Stored>, pods: readonly Pod[]): ReadonlyMap<string, Pod> {
  const first = new Map<string, Pod>();
  const kept = new Map<string, Pod>();
  for (const pod of pods) {
    const { uid } = pod.metadata;
    const other = first.get(uid);
    if (other === undefined) first.set(uid, pod);
    else {
      const had = before.get(uid);
      const holder = had === undefined ? undefined : [other, pod].find((p) => p === had.delivered || fullName(p) === had.fullName);
      if (holder !== undefined) kept.set(uid, holder);
    }
  }
  return kept;
}

/** Which other pod has the UID of this one, and in which source. */
function holderOf(
  pod: Pod,
  of: { state: PodStorage; source: SourceName; after: ReadonlyMap<string, Stored>; kept: Pod | undefined },
): Pick<Duplicate, 'winner' | 'holder'> | undefined {
  const { uid } = pod.metadata;
  const mine = of.kept ?? of.after.get(uid)?.pod;
  if (mine !== undefined) return mine === pod ? undefined : { winner: mine, holder: of.source };
  for (const [holder, pods] of of.state.pods) {
    const other = holder === of.source ? undefined : pods.get(uid);
    if (other !== undefined) return { winner: other.pod, holder };
  }
  return undefined;
}

/** Merges the complete set of one source. Operations come out in the order in which they must be sent. */
export function mergeSet(state: PodStorage, input: MergeInput): MergeResult {
  const { source } = input;
  const before = state.pods.get(source) ?? new Map<string, Stored>();
  const after = new Map<string, Stored>();
  const names = new Map<string, Pod>();
  const duplicates: Duplicate[] = [];
  const changed: Record<'ADD' | 'UPDATE' | 'DELETE' | 'RECONCILE', Pod[]> = { ADD: [], UPDATE: [], DELETE: [], RECONCILE: [] };

  const unsafe: Unsafe[] = [];
  const kept = keepers(before, input.pods);
  const replaced: Pod[] = [];

  for (const incoming of input.pods) {
    const uid = incoming.metadata.uid;
    const had = before.get(uid);
    const same = had?.delivered === incoming;
    const name = had !== undefined && same ? had.fullName : fullName(incoming);
    const message = same ? null : unsafeName(incoming);
    if (message !== null) {
      unsafe.push({ pod: incoming, message });
      continue;
    }
    const named = names.get(name);
    if (named !== undefined) {
      duplicates.push({ pod: incoming, winner: named, same: 'name', holder: source });
      continue;
    }
    const numbered = holderOf(incoming, { state, source, after, kept: kept.get(uid) });
    if (numbered !== undefined) {
      duplicates.push({ pod: incoming, ...numbered, same: 'uid' });
      continue;
    }
    names.set(name, incoming);
    if (had !== undefined && same) {
      after.set(uid, had);
      continue;
    }
    // Another pod may have come in its place, with its UID.
    if (had === undefined || had.fullName !== name) {
      if (had !== undefined) replaced.push(had.pod);
      const pod = firstSeen(incoming, input);
      after.set(uid, { pod, delivered: incoming, fullName: name });
      changed.ADD.push(pod);
      continue;
    }
    const { stored, change } = compare(had, incoming, name);
    after.set(uid, stored);
    if (change !== 'none') changed[change].push(stored.pod);
  }

  const gone = [...before].filter(([uid]) => !after.has(uid)).map(([, s]) => s.pod);
  const first = !state.seen.has(source);
  const ops: PodOperation[] = [];
  const emit = (op: PodOpKind, pods: readonly Pod[], evenIfEmpty = false) => {
    if (pods.length > 0 || evenIfEmpty) ops.push({ op, source, pods });
  };
  const quiet = changed.ADD.length + changed.UPDATE.length + changed.DELETE.length === 0;
  emit('REMOVE', [...gone, ...replaced]);
  emit('ADD', changed.ADD);
  emit('UPDATE', changed.UPDATE);
  emit('DELETE', changed.DELETE);
  // Downstream counts a source as ready when it handled something of it, so an empty first SET must be seen too.
  if (first && quiet) emit('ADD', [], true);
  emit('RECONCILE', changed.RECONCILE);

  return {
    state: { pods: new Map(state.pods).set(source, after), seen: new Set(state.seen).add(source) },
    ops,
    duplicates,
    unsafe,
  };
}

/** Pods of one source as podConfig holds them. */
export function podsOf(state: PodStorage, source: SourceName): Pod[] {
  return [...(state.pods.get(source)?.values() ?? [])].map((s) => s.pod);
}
