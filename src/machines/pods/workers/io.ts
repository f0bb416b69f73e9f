/** What a worker's statechart asks of the outside; given by `actors/pods/workers`, or by a test. */

import type { Pod } from '../../kube/types.ts';
import type { PodActions, PodRuntimeStatus, ResetGroup } from '../../pod/runtime/seen.ts';
import type { EffectOutcome } from './container/containerStopMachine.ts';
import type { ActOutcome, ContainerIo } from './container/startJob.ts';
import type { WorkerContext, WorkerReport } from './context.ts';
import type { ResizeIo } from './resizeMachine.ts';
import type { SandboxesInput } from './stopMachine.ts';

export interface InspectionOf {
  uid: string;
  /** What the worker's own acts touched since the last inspection, where that is known; else everything. */
  partial: boolean;
  /** The pod goes: what is ready or running is not read again for what a listing does not show. */
  stopping: boolean;
}
export interface ResetInput {
  pod: Pod;
  groups: readonly ResetGroup[];
}
export interface SandboxInput {
  pod: Pod;
  status: PodRuntimeStatus;
  actions: PodActions;
}
/** Promises honour the signal. */
export interface WorkerIo extends ContainerIo, ResizeIo {
  /** Settles when no act of an earlier incarnation is in flight. */
  fence(uid: string): Promise<unknown>;
  inspect(of: InspectionOf, signal: AbortSignal): Promise<PodRuntimeStatus>;
  /** Makes the pod's directories, and settles when every volume that a container mounts is set up. Rejects for want of a directory. */
  prepare(pod: Pod, signal: AbortSignal): Promise<EffectOutcome>;
  /** Settles when every ResourceClaim of the pod is prepared. */
  prepareClaims(pod: Pod, signal: AbortSignal): Promise<EffectOutcome>;
  /** Settles when what this pod alone used is unprepared. */
  releaseClaims(pod: Pod, signal: AbortSignal): Promise<EffectOutcome>;
  /**
   * Stops earlier sandboxes that this worker has not stopped yet (their network goes with that), removes what is left of
   * init containers, then makes the sandbox: a new one is initialised anew.
   */
  runSandbox(input: SandboxInput, signal: AbortSignal): Promise<ActOutcome<{ id: string }>>;
  /** Stops every sandbox; removes init containers where a new sandbox is to come. */
  stopSandboxes(input: SandboxesInput, signal: AbortSignal): Promise<EffectOutcome>;
  /** Stops and removes containers, group after group; what could not be taken away holds back the groups after it. */
  resetContainers(input: ResetInput, signal: AbortSignal): Promise<EffectOutcome>;
  /** Its containers do not end although they were killed: a dead server may hold them. */
  severVolumes(pod: Pod): void;
  /** Fences, then waits until the pod's volumes are taken down. */
  cleanup(pod: Pod): Promise<void>;
  /** The API status in context goes to the status manager. */
  publish(context: WorkerContext, finished: boolean): void;
  /** A summary of the worker goes to the pod manager. */
  report(state: WorkerReport): void;
}
