/**
 * How fast a controller hears that this node refused its pods. It replaces each of them at once, and again without end: ten a second,
 * which the scheduler, the API server and every watcher pay for. The kubelet is slower by accident: its first request about a new pod
 * comes before the API server knows that the pod is on this node, and is repeated after 10 s. Pure.
 */
import type { Pod } from '../../kube/types.ts';

/** A pod of a controller that heard of a refusal lately is looked at for as long before it is refused: about as fast as the kubelet. */
const PACE_MS = 1_250;
/** A controller that heard of none for as long hears of the next one at once. */
const LATELY_MS = 60_000;

/** When a controller, by its UID, last heard of a refusal: monotonic ms. */
export type Refusals = ReadonlyMap<string, number>;

function controllerOf({ metadata }: Pod): string | undefined {
  return metadata.ownerReferences?.find((owner) => owner.controller === true)?.uid;
}

/** `sinceMonoMs`: when this node first saw the pod. */
export function isTooSoon(refusals: Refusals, pod: Pod, { sinceMonoMs, monoMs }: { sinceMonoMs: number; monoMs: number }): boolean {
  const last = refusals.get(controllerOf(pod) ?? '');
  return last !== undefined && monoMs - last < LATELY_MS && monoMs - sinceMonoMs < PACE_MS;
}

/** With the refusal of this pod, and without what was long ago. */
export function withRefusal(refusals: Refusals, pod: Pod, monoMs: number): Refusals {
  const controller = controllerOf(pod);
  if (controller === undefined) return refusals;
  return new Map([...[...refusals].filter(([, at]) => monoMs - at < LATELY_MS), [controller, monoMs]]);
}
