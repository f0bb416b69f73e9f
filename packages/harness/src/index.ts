/** Library entry `actorlet/harness`: throw-away nodes to test one's own pods on. See docs/testing-your-pods.md. */
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
