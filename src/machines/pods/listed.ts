/** A pod in a listing of the runtime, beside an inspection of that pod. Pure. */
import type { ListedPod, RuntimePodsView } from '../protocol.ts';
import type { PodRuntimeStatus, RuntimeContainer } from './types.ts';

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
