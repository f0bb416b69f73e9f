/**
 * The worker's statechart and its children with their effects: one of each for all pods of a node. Which pod's effects they are
 * follows from the actor.
 */
import { fromPromise } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import type { PodRuntimeStatus } from '../../pod/runtime/seen.ts';
import type { ImageResult } from '../../runtime/imagePuller/messages.ts';
import type { Moment } from '../../xstate/facts.ts';
import { afterStep, type Own, provided, providedForMany } from '../../xstate/provide.ts';
import { containerMachine } from './container/containerMachine.ts';
import { containerStopMachine, type EffectOutcome, type StopRequest } from './container/containerStopMachine.ts';
import { type HookAnswer, type HookInput, hookMachine } from './container/hookMachine.ts';
import type { ActOutcome, Created, CreateRequest, StartJob, StartRequest } from './container/startJob.ts';
import { summarize } from './context.ts';
import type { ResetInput, SandboxInput, WorkerIo } from './io.ts';
import { podWorkerMachine } from './podWorkerMachine.ts';
import { type MemoryUsage, resizeMachine, type Update, type UsageOf } from './resizeMachine.ts';
import { type SandboxesInput, stopMachine } from './stopMachine.ts';

/** For all pods of a node: gives the worker of one pod, with its effects and the reader of its facts. The children read `moment`. */
export const workerMachineWith = (moment: () => Moment) =>
  providedForMany(podWorkerMachine, (io: Own<WorkerIo>) => {
    const { stop, ...children } = childrenOf(io, moment);
    return {
      actors: {
        ...children,
        stopPod: stop,
        killContainers: stop,
        fence: fromPromise<unknown, { uid: string }>((of) => io(of).fence(of.input.uid)),
        inspect: fromPromise<PodRuntimeStatus, { uid: string; partial?: boolean; stopping?: boolean }>((of) => {
          const { uid, partial = false, stopping = false } = of.input;
          return io(of).inspect({ uid, partial, stopping }, of.signal);
        }),
        prepare: fromPromise<EffectOutcome, { pod: Pod }>((of) => io(of).prepare(of.input.pod, of.signal)),
        prepareClaims: fromPromise<EffectOutcome, { pod: Pod }>((of) => io(of).prepareClaims(of.input.pod, of.signal)),
        releaseClaims: fromPromise<EffectOutcome, { pod: Pod }>((of) => io(of).releaseClaims(of.input.pod, of.signal)),
        runSandbox: fromPromise<ActOutcome<{ id: string }>, SandboxInput>((of) => io(of).runSandbox(of.input, of.signal)),
        resetContainers: fromPromise<EffectOutcome, ResetInput>((of) => io(of).resetContainers(of.input, of.signal)),
        cleanup: fromPromise<void, { pod: Pod }>((of) => io(of).cleanup(of.input.pod)),
      },
      actions: {
        publish: ({ context, ...of }, { finished }) => io(of).publish(context, finished),
        report: ({ self, ...of }) => afterStep(self, (snapshot) => io(of).report(summarize(snapshot))),
        severVolumes: (of, { pod }) => io(of).severVolumes(pod),
        answer: (_, { replyTo, answer }) => replyTo(answer),
        recordEvent: ({ context, ...of }, { type, reason, message }) => io(of).event(context.pod, type, reason, message),
      },
    };
  });

function childrenOf(io: Own<WorkerIo>, moment: () => Moment) {
  const hook = provided(hookMachine, {
    actors: { runHook: fromPromise<HookAnswer, HookInput>((of) => io(of).runHook(of.input, of.signal)) },
  });
  const containerStop = provided(
    containerStopMachine,
    {
      actors: { hook, stopContainer: fromPromise<EffectOutcome, StopRequest>((of) => io(of).stopContainer(of.input, of.signal)) },
      actions: {
        sayKilling: (of, { pod, container, message }) => io(of).event(pod, 'Normal', 'Killing', message, container),
        sayHookFailed: (of, { pod, container, why, sleeps }) => {
          // A sleep fails in one way only: the grace ends before it.
          if (sleeps) io(of).sleepCut();
          io(of).event(pod, 'Warning', 'FailedPreStopHook', `PreStopHook failed: ${why}`, container);
        },
      },
    },
    moment,
  );
  const container = provided(
    containerMachine,
    {
      actors: {
        hook,
        containerStop,
        ensureImage: fromPromise<ImageResult, { job: StartJob }>((of) => io(of).ensureImage(of.input.job, of.signal)),
        createContainer: fromPromise<Created, CreateRequest>((of) => io(of).createContainer(of.input, of.signal)),
        startContainer: fromPromise<ActOutcome<null>, StartRequest>((of) => io(of).startContainer(of.input, of.signal)),
      },
      actions: {
        recordBackOff: (of, { job, failure }) => io(of).backingOff(job, failure),
        sayHookFailed: (of, { job, why }) =>
          io(of).event(job.pod, 'Warning', 'FailedPostStartHook', `PostStartHook failed: ${why}`, job.container),
      },
    },
    moment,
  );
  const resize = provided(
    resizeMachine,
    {
      actors: {
        memoryUsage: fromPromise<MemoryUsage, UsageOf>((of) => io(of).memoryUsage(of.input, of.signal)),
        updateResources: fromPromise<string | null, Update>((of) => io(of).updateResources(of.input, of.signal)),
      },
    },
    moment,
  );
  const stopSandboxes = fromPromise<EffectOutcome, SandboxesInput>((of) => io(of).stopSandboxes(of.input, of.signal));
  return { container, resize, stop: provided(stopMachine, { actors: { containerStop, stopSandboxes } }) };
}
