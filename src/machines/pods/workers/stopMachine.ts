/**
 * The stop of several containers of a pod, each in a statechart of its own, and after them, where the whole pod goes, of its
 * sandboxes, whatever became of the containers.
 */

import { assign, enqueueActions, sendParent, setup } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import { containerGraceSeconds, findContainer, type KillStep, killPlan, terminationOrder } from '../../pod/runtime/killOrder.ts';
import type { KillContainer, PodRuntimeStatus } from '../../pod/runtime/seen.ts';
import { messageOf } from '../../text/errors.ts';
import { names, podName, projecting, some } from '../../xstate/projection.ts';
import { unprovided } from '../../xstate/provide.ts';
import { containerStopMachine, type EffectOutcome, type PreStopEnded, type Stopped } from './container/containerStopMachine.ts';

export interface SandboxesInput {
  pod: Pod;
  status: PodRuntimeStatus;
  /** Everything goes so that a new sandbox can come: init containers are removed too. */
  forSandbox: boolean;
}

export interface StopTask {
  step: KillStep;
  /** Text of the event `Killing`. */
  message: string;
}
export interface StopInput {
  pod: Pod;
  podIPs: readonly string[];
  tasks: readonly StopTask[];
  /** Null: containers only. */
  sandboxes: SandboxesInput | null;
  /** Reason of a failure. */
  failedReason: 'FailedKillPod' | 'KillContainerError';
}

/** The statechart of one container has come to its end. */
interface ContainerEnded {
  type: `xstate.done.actor.stop:${string}`;
  output: Stopped;
}

interface Context extends StopInput {
  /** Ids of containers whose end is awaited. */
  left: ReadonlySet<string>;
  failures: readonly string[];
}

/** Everything that runs of a pod. A hook that has ended once (`preStopped`: ids of containers) is not run again. */
export function podTasks(o: {
  pod: Pod;
  status: PodRuntimeStatus;
  /** Null: each container's own grace. */
  graceSeconds: number | null;
  preStopped: ReadonlySet<string>;
  /** The stop was asked for with no grace at all. */
  forced: boolean;
}): StopTask[] {
  return killPlan(o).map((step) => ({ step: unlessDone(step, o.preStopped), message: `Stopping container ${step.name}` }));
}

/** Single containers that are to be replaced, or whose definition is gone. */
export function killTasks(o: { pod: Pod; kills: readonly KillContainer[]; preStopped: ReadonlySet<string> }): StopTask[] {
  // A restart that a person asked for ends its sidecars last, as the end of the pod does.
  const asked = o.kills.filter(({ reason }) => reason === 'restartAsked');
  const order = asked.length > 1 ? terminationOrder(o.pod) : new Map<string, ReadonlySet<string>>();
  return o.kills.map(({ id, name, reason, message }) => {
    const container = findContainer(o.pod, name);
    const before = reason === 'restartAsked' ? order.get(name) : undefined;
    const waitForIds = before === undefined ? [] : asked.filter((k) => before.has(k.name)).map((k) => k.id);
    const graceSeconds = containerGraceSeconds({ pod: o.pod, container, reason });
    const preStop = graceSeconds > 0 ? container?.lifecycle?.preStop : undefined;
    return { step: unlessDone({ id, name, container, graceSeconds, preStop, waitForIds }, o.preStopped), message };
  });
}

function unlessDone(step: KillStep, preStopped: ReadonlySet<string>): KillStep {
  return preStopped.has(step.id) ? { ...step, preStop: undefined } : step;
}

const stopId = (containerId: string): string => `stop:${containerId}`;

export const stopMachine = setup({
  types: {
    context: {} as Context,
    events: {} as PreStopEnded | ContainerEnded,
    input: {} as StopInput,
    output: {} as EffectOutcome,
  },
  actors: {
    containerStop: containerStopMachine,
    stopSandboxes: unprovided<EffectOutcome, SandboxesInput>(),
  },
  actions: {
    begin: enqueueActions(({ context: { pod, podIPs, tasks }, enqueue }) => {
      for (const { step, message } of tasks)
        enqueue.spawnChild('containerStop', { id: stopId(step.id), input: { pod, podIPs, step, message } });
      enqueue.assign({ left: new Set(tasks.map(({ step }) => step.id)) });
    }),
    noteEnded: enqueueActions(({ context, event, enqueue }) => {
      if (event.type === 'preStop.ended') return;
      const { containerId, failure } = event.output;
      const left = new Set([...context.left].filter((id) => id !== containerId));
      for (const id of left) enqueue.sendTo(stopId(id), { type: 'earlier.ended', containerId });
      enqueue.assign({ left, failures: failure === null ? context.failures : [...context.failures, failure] });
    }),
    noteFailure: assign(({ context }, { message }: { message: string }) => ({ failures: [...context.failures, message] })),
    passOn: sendParent(({ event }) => event),
  },
  guards: {
    allEnded: ({ context }) => context.left.size === 0,
    containersEnded: ({ context }) => context.left.size === 0 && context.sandboxes !== null,
  },
}).createMachine({
  id: 'stop',
  meta: projecting<Context>(({ pod, tasks, sandboxes, left, failures }) => ({
    pod: podName(pod),
    containers: some(tasks, ({ step }) => step.name),
    ...{ sandboxesToo: sandboxes !== null, left: left.size },
    failures: names(failures),
  })),
  context: ({ input }) => ({ ...input, left: new Set(), failures: [] }),
  initial: 'containers',
  output: ({ context }): EffectOutcome =>
    context.failures.length === 0
      ? { kind: 'done' }
      : { kind: 'failed', failure: { reason: context.failedReason, message: context.failures.join('; ') } },
  on: { 'preStop.ended': { actions: ['passOn'] } },
  states: {
    containers: {
      meta: { reason: 'StoppingContainers', message: 'hooks run and containers stop, within their grace' },
      entry: ['begin'],
      on: { 'xstate.done.actor.*': { actions: ['noteEnded'] } },
      always: [
        { guard: 'containersEnded', target: 'sandboxes' },
        { guard: 'allEnded', target: 'done' },
      ],
    },
    sandboxes: {
      meta: { reason: 'StoppingSandboxes', message: 'its containers have ended; sandboxes are being stopped' },
      invoke: {
        src: 'stopSandboxes',
        input: ({ context }) => requiredSandboxes(context),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: 'done',
            actions: [
              {
                type: 'noteFailure',
                params: ({ event }) => ({ message: event.output.kind === 'failed' ? event.output.failure.message : '' }),
              },
            ],
          },
          { target: 'done' },
        ],
        onError: {
          target: 'done',
          actions: [
            {
              type: 'noteFailure',
              params: ({ event }) => ({ message: messageOf(event.error) }),
            },
          ],
        },
      },
    },
    done: { type: 'final' },
  },
});

function requiredSandboxes(context: Context): SandboxesInput {
  if (context.sandboxes === null) throw new Error('pod stop: no sandboxes to stop');
  return context.sandboxes;
}
