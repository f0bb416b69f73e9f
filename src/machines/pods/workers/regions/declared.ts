/** What the worker's statechart is made of, without what it decides: its context, events, actors and effects. */

import type { Pod } from '../../../kube/types.ts';
import type { RestartAnswer } from '../../../pod/restart/asked.ts';
import type { PodRuntimeStatus } from '../../../pod/runtime/seen.ts';
import type { ReplyTo } from '../../../supervision/address.ts';
import { unprovided, unprovidedAction } from '../../../xstate/provide.ts';
import { containerMachine } from '../container/containerMachine.ts';
import type { EffectOutcome, PreStopEnded } from '../container/containerStopMachine.ts';
import type { ActOutcome, ContainerReport } from '../container/startJob.ts';
import { setup, type WorkerContext, type WorkerInput } from '../context.ts';
import type { ResetInput, SandboxInput } from '../io.ts';
import type { WorkerEvent } from '../messages.ts';
import { type ResizeReport, resizeMachine } from '../resizeMachine.ts';
import { stopMachine } from '../stopMachine.ts';

export type WorkerMachineEvent = WorkerEvent | ContainerReport | PreStopEnded | ResizeReport | { type: 'worker.resync' };
export interface Step {
  context: WorkerContext;
  event: WorkerMachineEvent;
}

export const declared = setup({
  types: {
    context: {} as WorkerContext,
    events: {} as WorkerMachineEvent,
    input: {} as WorkerInput,
  },
  actors: {
    container: containerMachine,
    resize: resizeMachine,
    fence: unprovided<unknown, { uid: string }>(),
    inspect: unprovided<PodRuntimeStatus, { uid: string; partial?: boolean; stopping?: boolean }>(),
    prepare: unprovided<EffectOutcome, { pod: Pod }>(),
    prepareClaims: unprovided<EffectOutcome, { pod: Pod }>(),
    releaseClaims: unprovided<EffectOutcome, { pod: Pod }>(),
    runSandbox: unprovided<ActOutcome<{ id: string }>, SandboxInput>(),
    stopPod: stopMachine,
    resetContainers: unprovided<EffectOutcome, ResetInput>(),
    killContainers: stopMachine,
    cleanup: unprovided<void, { pod: Pod }>(),
  },
  actions: {
    publish: unprovidedAction<{ finished: boolean }>(),
    /** Where the pod stands, for the pod manager: `meta` of the state that the step leads to. */
    report: unprovidedAction(),
    recordEvent: unprovidedAction<{ type: 'Normal' | 'Warning'; reason: string; message: string }>(),
    severVolumes: unprovidedAction<{ pod: Pod }>(),
    answer: unprovidedAction<{ replyTo: ReplyTo<RestartAnswer>; answer: RestartAnswer }>(),
  },
});
