/** From CRI listings to per-pod records and their differences (pod lifecycle 4.1). Pure. */
import { CRI_LABELS, type CriContainer, type CriContainerState, type PodSandbox } from '../../cri.ts';
import { isPathName } from '../../pathName.ts';
import { sortContainers, sortSandboxes } from '../../pods/runtimeStatus.ts';
import type { ListedPod } from '../../protocol.ts';

/** What diffing compares: containers and sandboxes alike, by id. */
export type DiffState = 'running' | 'exited' | 'unknown';
export type ChangeKind = 'ContainerStarted' | 'ContainerDied' | 'ContainerRemoved' | 'ContainerChanged';
export interface Change {
  kind: ChangeKind;
  id: string;
}

const CONTAINER_STATES: Readonly<Record<CriContainerState, ListedPod['containers'][number]['state']>> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
  CONTAINER_UNKNOWN: 'unknown',
};

function diffState(state: ListedPod['containers'][number]['state']): DiffState {
  return state === 'running' || state === 'exited' ? state : 'unknown';
}

type Mutable = { -readonly [K in keyof ListedPod]: ListedPod[K] extends readonly (infer T)[] ? T[] : ListedPod[K] };

function nanos(text: string): bigint {
  return /^-?\d+$/.test(text) ? BigInt(text) : 0n;
}

/**
 * Groups a listing by pod UID: a sandbox by its metadata (one without is skipped), a container by its pod UID label,
 * even when its sandbox is gone. Lists are newest first. What has a name or an id that cannot name a file is nobody's: paths
 * are made of them, and no pod of ours has such.
 */
export function groupByPod(sandboxes: readonly PodSandbox[], containers: readonly CriContainer[]): Map<string, ListedPod> {
  const pods = new Map<string, Mutable>();
  const pod = (uid: string, name: string, namespace: string): Mutable => {
    let found = pods.get(uid);
    if (found === undefined) {
      found = { uid, name, namespace, sandboxes: [], containers: [] };
      pods.set(uid, found);
    }
    return found;
  };
  for (const s of sandboxes) {
    if (s.metadata === null || ![s.metadata.uid, s.metadata.name, s.metadata.namespace, s.id].every(isPathName)) continue;
    pod(s.metadata.uid, s.metadata.name, s.metadata.namespace).sandboxes.push({
      id: s.id,
      ready: s.state === 'SANDBOX_READY',
      createdAtNs: nanos(s.createdAt),
      attempt: s.metadata.attempt,
      labels: s.labels,
      annotations: s.annotations,
    });
  }
  for (const c of containers) {
    const { [CRI_LABELS.podUid]: uid = '', [CRI_LABELS.podName]: podName = '', [CRI_LABELS.podNamespace]: namespace = '' } = c.labels;
    const name = c.labels[CRI_LABELS.containerName] ?? c.metadata?.name ?? '';
    if (![uid, podName, namespace, name, c.id].every(isPathName)) continue;
    pod(uid, podName, namespace).containers.push({
      id: c.id,
      name,
      sandboxId: c.podSandboxId,
      state: CONTAINER_STATES[c.state],
      createdAtNs: nanos(c.createdAt),
      labels: c.labels,
      annotations: c.annotations,
    });
  }
  for (const p of pods.values()) {
    p.sandboxes = sortSandboxes(p.sandboxes);
    p.containers = sortContainers(p.containers);
  }
  return pods;
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
  pods: Map<string, ListedPod>;
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
  return { pods, changes };
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
