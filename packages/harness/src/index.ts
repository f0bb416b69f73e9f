/** Library entry `actorlet/harness`: throw-away nodes to test one's own pods on. See docs/testing-your-pods.md. */
import type { RunningFleet, StartFleetOptions } from '@actorlet/fleet/src/index.ts';

export type { RunningFleet, StartFleetOptions };
/** A fleet of nodes on an API server of its own, or of a cluster: docs/fleet.md. As that of `actorlet/fleet`, which is loaded with the first. */
export async function startFleet(o: StartFleetOptions): Promise<RunningFleet> {
  const fleet = await import('@actorlet/fleet/src/index.ts');
  return fleet.startFleet(o);
}

export type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
export type { ContainerView } from './containers.ts';
export type { Injected, ScenarioInput } from './faults.ts';
export type { PodView, Restart, TimelineEntry, Timings } from './history.ts';
export type { Manifest } from './manifests.ts';
export { startNode, TestNode } from './node.ts';
export type { NodeOptions } from './options.ts';
export { type LogOptions, PodHandle, type WaitOptions } from './pod.ts';
export type { Runtime } from './reaper/charge.ts';
export { WaitError } from './waitError.ts';
