/** Which changes of a status are about to be overtaken by the next one, and may wait for it: each patch costs everybody. Pure. */
import type { Pod, PodStatus } from '../k8s.ts';
import { isTerminal } from '../pods/status/generate.ts';
import { sameData } from '../sameData.ts';

/** A pod that starts has a sandbox and addresses, and its containers follow. */
const OF_A_SANDBOX: ReadonlySet<string> = new Set(['podIP', 'podIPs', 'conditions', 'containerStatuses', 'initContainerStatuses']);
const SANDBOX_CONDITION = 'PodReadyToStartContainers';

export interface Change {
  target: Pod;
  next: PodStatus;
  patch: Readonly<Record<string, unknown>>;
  /** The worker has nothing more to do. */
  finished: boolean;
}

/**
 * Two of them: a sandbox was made or a container created, and none has started since (nothing that waits for a pod can use
 * it yet); and a container of a deleted pod ended, of which the last word follows as soon as its sandbox is down.
 */
export function isPassing({ target, next, patch, finished }: Change): boolean {
  if (target.metadata.deletionTimestamp) return !finished && !isTerminal(next.phase);
  const { status } = target;
  // The first word about a pod never waits.
  if (status.phase !== 'Pending' || next.phase !== 'Pending' || !status.startTime) return false;
  return (
    Object.keys(patch).every((field) => OF_A_SANDBOX.has(field)) &&
    conditionsOf(patch).every((c) => c.type === SANDBOX_CONDITION && c.status === 'True') &&
    sameStates(status.containerStatuses, next.containerStatuses) &&
    sameStates(status.initContainerStatuses, next.initContainerStatuses)
  );
}

function conditionsOf(patch: Readonly<Record<string, unknown>>): readonly { type?: string; status?: string }[] {
  return Array.isArray(patch.conditions) ? patch.conditions : [];
}

type Statuses = PodStatus['containerStatuses'];
function sameStates(before: Statuses, after: Statuses): boolean {
  const states = (all: Statuses) => (all ?? []).map((c) => [c.name, c.state, c.restartCount]);
  return sameData(states(before), states(after));
}
