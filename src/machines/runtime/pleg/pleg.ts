import type { ListedPod } from '../../pod/runtime/seen.ts';

/** What diffing compares: containers and sandboxes alike, by id. */
type DiffState = 'running' | 'exited' | 'unknown';
export type ChangeKind = 'ContainerStarted' | 'ContainerDied' | 'ContainerRemoved' | 'ContainerChanged';
export interface Change {
  kind: ChangeKind;
  id: string;
}

function diffState(state: ListedPod['containers'][number]['state']): DiffState {
  return state === 'running' || state === 'exited' ? state : 'unknown';
}

function states(pod: ListedPod | undefined): Map<string, DiffState> {
  const out = new Map<string, DiffState>();
  for (const s of pod?.sandboxes ?? []) out.set(s.id, s.ready ? 'running' : 'exited');
  for (const c of pod?.containers ?? []) out.set(c.id, diffState(c.state));
  return out;
}

/** Changes of one pod, over the union of its old and new ids. */
export function diffPod(old: ListedPod | undefined, current: ListedPod | undefined): Change[] {
  const before = states(old);
  const after = states(current);
  const changes: Change[] = [];
  for (const [id, now] of after) {
    if (before.get(id) === now) continue;
    changes.push({ kind: now === 'running' ? 'ContainerStarted' : now === 'exited' ? 'ContainerDied' : 'ContainerChanged', id });
  }
  for (const [id, was] of before) {
    if (after.has(id)) continue;
    if (was !== 'exited') changes.push({ kind: 'ContainerDied', id });
    changes.push({ kind: 'ContainerRemoved', id });
  }
  return changes;
}

export interface ListingDiff {
  /** The new listing; pods without a change are the old objects, so nothing is kept twice. */
  pods: ReadonlyMap<string, ListedPod>;
  /** Only pods with changes. */
  changes: Map<string, Change[]>;
}

export function diffListing(old: ReadonlyMap<string, ListedPod>, current: ReadonlyMap<string, ListedPod>): ListingDiff {
  const pods = new Map<string, ListedPod>();
  const changes = new Map<string, Change[]>();
  for (const [uid, now] of current) {
    const before = old.get(uid);
    const changed = diffPod(before, now);
    if (changed.length > 0) changes.set(uid, changed);
    pods.set(uid, before !== undefined && changed.length === 0 ? before : now);
  }
  for (const [uid, before] of old) if (!current.has(uid)) changes.set(uid, diffPod(before, undefined));
  return { pods: changes.size === 0 ? old : pods, changes };
}

/** A change that pods are told of. `ContainerChanged` alone (created, not started) is nothing to act on. */
export function tells(changes: readonly Change[]): Change | undefined {
  return changes.find((c) => c.kind !== 'ContainerChanged');
}

export interface RunningCounts {
  runningPods: number;
  containers: Record<ListedPod['containers'][number]['state'], number>;
}
export function countRunning(pods: ReadonlyMap<string, ListedPod>): RunningCounts {
  const counts: RunningCounts = { runningPods: 0, containers: { created: 0, running: 0, exited: 0, unknown: 0 } };
  for (const pod of pods.values()) {
    if (pod.sandboxes.some((s) => s.ready)) counts.runningPods++;
    for (const c of pod.containers) counts.containers[c.state]++;
  }
  return counts;
}
