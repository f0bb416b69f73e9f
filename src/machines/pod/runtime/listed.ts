/** A pod in a listing of the runtime, beside an inspection of that pod. Pure. */
import { CRI_LABELS, type CriContainer, type CriContainerState, type PodSandbox } from '../../wire/cri.ts';
import { isPathName } from '../pathName.ts';
import { sortContainers, sortSandboxes } from './runtimeStatus.ts';
import type { ListedPod, PodRuntimeStatus, RuntimeContainer, RuntimePodsView } from './seen.ts';

/** A container never goes back to an earlier one of these. */
const LIVES: readonly RuntimeContainer['state'][] = ['created', 'running', 'exited'];
const BEGINS: readonly RuntimeContainer['state'][] = ['created', 'running'];

/**
 * Whether a listing shows nothing of this pod that the inspection does not. In a burst, listings are behind the
 * inspections that follow each act: such a listing lacks what was made after it, or shows it in an earlier state. What the
 * worker itself just made (`own`) is inspected when its start has ended.
 */
export function hasNoNews(
  listing: RuntimePodsView | undefined,
  status: PodRuntimeStatus,
  own: (id: string) => boolean = () => false,
): boolean {
  if (listing === undefined) return false;
  const listed: Pick<ListedPod, 'sandboxes' | 'containers'> = listing.pods.get(status.uid) ?? { sandboxes: [], containers: [] };
  const sandboxes = new Map(status.sandboxes.map((s) => [s.id, s.ready]));
  const containers = new Map(status.containers.map((c) => [c.id, c.state]));
  const ids = new Set([...listed.sandboxes, ...listed.containers].map(({ id }) => id));
  return (
    listed.sandboxes.every(({ id, ready }) => sandboxes.get(id) === ready || (ready && (sandboxes.has(id) || own(id)))) &&
    listed.containers.every(({ id, state }) => reached(containers.get(id), state) || (BEGINS.includes(state) && own(id))) &&
    [...status.sandboxes, ...status.containers].every(({ id }) => ids.has(id) || readAtMonoMs(status, id) >= listing.atMonoMs)
  );
}

/**
 * Whether the pod runs on this node, or ran here. A stopped sandbox without containers is no sign of that: it can be left of
 * a pod that this node refused while the sandbox was being made.
 */
export function hasRun(listed: ListedPod | undefined): boolean {
  return listed !== undefined && (listed.containers.length > 0 || listed.sandboxes.some((s) => s.ready));
}

/** Whether the inspection has seen everything that a listing shows of this pod, in whatever state. */
export function holdsNothingElse(listing: RuntimePodsView | undefined, status: PodRuntimeStatus): boolean {
  if (listing === undefined) return false;
  const listed: Pick<ListedPod, 'sandboxes' | 'containers'> = listing.pods.get(status.uid) ?? { sandboxes: [], containers: [] };
  const seen = new Set([...status.sandboxes, ...status.containers].map(({ id }) => id));
  return [...listed.sandboxes, ...listed.containers].every(({ id }) => seen.has(id));
}

/** Somewhat more than the longest wait between two listings: an older one means that listings have stopped. */
const LISTING_RECENT_MS = 35_000;

/** Whether a listing is recent, newer than the inspection, and shows the same. */
export function listingAgrees(listing: RuntimePodsView | undefined, status: PodRuntimeStatus, nowMonoMs: number): boolean {
  if (listing === undefined || listing.atMonoMs <= status.observedAtMonoMs || nowMonoMs - listing.atMonoMs > LISTING_RECENT_MS)
    return false;
  const listed = listing.pods.get(status.uid);
  if (listed === undefined || listed.sandboxes.length !== status.sandboxes.length) return false;
  if (listed.containers.length !== status.containers.length) return false;
  const sandboxes = new Map(listed.sandboxes.map((s) => [s.id, s.ready]));
  const containers = new Map(listed.containers.map((c) => [c.id, c.state]));
  return status.sandboxes.every((s) => sandboxes.get(s.id) === s.ready) && status.containers.every((c) => containers.get(c.id) === c.state);
}

function reached(seen: RuntimeContainer['state'] | undefined, listed: RuntimeContainer['state']): boolean {
  if (seen === undefined) return false;
  return seen === listed || (LIVES.includes(listed) && LIVES.indexOf(seen) > LIVES.indexOf(listed));
}

function readAtMonoMs({ partial, observedAtMonoMs }: PodRuntimeStatus, id: string): number {
  if (partial === undefined) return observedAtMonoMs;
  return partial.readAtMonoMs.get(id) ?? partial.wholeAtMonoMs;
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

export const CONTAINER_STATES: Readonly<Record<CriContainerState, ListedPod['containers'][number]['state']>> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
  CONTAINER_UNKNOWN: 'unknown',
};

type Mutable = { -readonly [K in keyof ListedPod]: ListedPod[K] extends readonly (infer T)[] ? T[] : ListedPod[K] };

function nanos(text: string): bigint {
  return /^-?\d+$/.test(text) ? BigInt(text) : 0n;
}
