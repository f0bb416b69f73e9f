/** Ends of containers that a new status of a pod shows and the one before it did not. Pure. */
import type { ContainerStatus, PodStatus } from '../../kube/types.ts';

/** Label values of the kubelet's metric. */
export interface Termination {
  container_type: 'container' | 'init_container' | 'ephemeral_container';
  exit_code: string;
  reason: string;
}

const LISTS = [
  ['init_container', 'initContainerStatuses'],
  ['container', 'containerStatuses'],
  ['ephemeral_container', 'ephemeralContainerStatuses'],
] as const;

type End = NonNullable<ContainerStatus['state']['terminated']>;
/** `before`: the container as it was. */
export interface EndSeen {
  type: Termination['container_type'];
  before: ContainerStatus | undefined;
  status: ContainerStatus;
  end: End;
}

/**
 * Each end once: a status shows it as the present state, later as the last one, and at times as the present one again. The
 * kubelet looks at the present state only, so it misses an end that a new start hides.
 */
export function newEnds(before: PodStatus | undefined, now: PodStatus): EndSeen[] {
  return eachContainer(before, now).flatMap((c) => endsOf(c.before, c.status).map((end) => ({ ...c, end })));
}

/** Each container of the new status, with what it was before. */
export function eachContainer(before: PodStatus | undefined, now: PodStatus): Omit<EndSeen, 'end'>[] {
  return LISTS.flatMap(([type, list]) => {
    const known = new Map((before?.[list] ?? []).map((s) => [s.name, s]));
    return (now[list] ?? []).map((status) => ({ type, before: known.get(status.name), status }));
  });
}

export function terminationOf({ type, end }: EndSeen): Termination {
  return { container_type: type, exit_code: String(end.exitCode), reason: end.reason ?? '' };
}

/** The last end is news only of a container that ran until then: its end came and went between the two statuses. */
function endsOf(before: ContainerStatus | undefined, now: ContainerStatus): End[] {
  const ends = before?.state.running === undefined ? [now.state.terminated] : [now.lastState.terminated, now.state.terminated];
  const known = [before?.state.terminated, before?.lastState.terminated];
  return ends.flatMap((end) => (end === undefined || known.some((k) => k !== undefined && isSame(k, end)) ? [] : [end]));
}

function isSame(a: End, b: End): boolean {
  if (a.containerID !== undefined && b.containerID !== undefined) return a.containerID === b.containerID;
  return a.exitCode === b.exitCode && a.finishedAt === b.finishedAt;
}
