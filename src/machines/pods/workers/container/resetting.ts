/** All containers of a pod restart: they are stopped and removed, and start again in the sandbox that there is. */
import { assign } from 'xstate';
import { planActions, plannedStop, STOP_RETRY_MS, troubleOf } from '../context.ts';
import { workerSetup } from '../setup.ts';

/** Decided on anew after each group: what runs on meanwhile is shown, and a daemon that is killed here goes on from what is left. */
export const resetting = workerSetup.createStateConfig({
  meta: { reason: 'RestartingAllContainers', message: 'a container ended so that all containers of the pod restart: they are taken away' },
  entry: ['cancelChildren', 'report'],
  initial: 'fencing',
  states: {
    /** A start that was under way shows up before its container is taken away. */
    fencing: {
      invoke: {
        src: 'fence',
        input: ({ context }) => ({ uid: context.uid }),
        onDone: { target: 'inspecting' },
        onError: { target: '#podWorker.syncing.inspecting' },
      },
    },
    inspecting: {
      invoke: {
        src: 'inspect',
        input: ({ context }) => ({ uid: context.uid }),
        onDone: { target: 'judging', actions: [assign(({ event }) => ({ status: event.output })), 'decide'] },
        onError: { target: '#podWorker.syncing.inspecting' },
      },
    },
    judging: {
      always: [
        { guard: { type: 'planIs', params: { kind: 'resetContainers' } }, target: 'stopping' },
        { target: '#podWorker.syncing.deciding' },
      ],
    },
    stopping: {
      invoke: {
        src: 'killContainers',
        input: ({ context }) => plannedStop(context),
        onDone: [
          {
            guard: ({ event }) => event.output.kind === 'failed',
            target: '#podWorker.syncing.actFailed',
            actions: { type: 'trouble', params: ({ event }) => troubleOf('KillContainerError', event.output, STOP_RETRY_MS) },
          },
          { target: 'removing' },
        ],
        onError: {
          target: '#podWorker.syncing.actFailed',
          actions: { type: 'trouble', params: ({ event }) => troubleOf('KillContainerError', event.error, STOP_RETRY_MS) },
        },
      },
    },
    removing: {
      invoke: {
        src: 'removeContainers',
        input: ({ context }) => ({ pod: context.pod, groups: planActions(context)?.reset?.remove ?? [] }),
        onDone: [
          {
            guard: ({ event }) => event.output.kind !== 'done',
            target: '#podWorker.syncing.actFailed',
            actions: { type: 'trouble', params: ({ event }) => troubleOf('RemoveContainerError', event.output, STOP_RETRY_MS) },
          },
          { target: '#podWorker.syncing.inspecting', actions: ['clearTrouble'] },
        ],
        onError: {
          target: '#podWorker.syncing.actFailed',
          actions: { type: 'trouble', params: ({ event }) => troubleOf('RemoveContainerError', event.error, STOP_RETRY_MS) },
        },
      },
    },
  },
});
