/** Ends of containers that a new status of a pod shows and the one before it did not. Pure. */
import type { ContainerStatus, PodStatus } from '../../k8s.ts';

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

/** A container that ends, starts and ends between two statuses counts once, as in the reference. */
export function newTerminations(before: PodStatus | undefined, now: PodStatus): Termination[] {
  return LISTS.flatMap(([type, list]) => ended(type, before?.[list], now[list]));
}

function ended(
  container_type: Termination['container_type'],
  before: readonly ContainerStatus[] | undefined,
  now: readonly ContainerStatus[] | undefined,
): Termination[] {
  return (now ?? []).flatMap(({ name, state: { terminated } }) => {
    if (terminated === undefined || before?.find((s) => s.name === name)?.state.terminated !== undefined) return [];
    return [{ container_type, exit_code: String(terminated.exitCode), reason: terminated.reason ?? '' }];
  });
}
