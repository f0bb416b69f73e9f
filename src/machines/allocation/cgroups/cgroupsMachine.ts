/**
 * Statechart of the node's own cgroups: made, given what pods may use of the node, and looked at again each minute.
 * What fails is a state that is tried again. Pure; what it invokes is given by the actor.
 */
import { assign, setup } from 'xstate';
import { messageOf } from '../../text/errors.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import type { CgroupsEvent, GroupRequest } from './messages.ts';

/** Limits and classes are set anew this often (resources 1.6, 1.7). */
const RENEW_MS = 60_000;
/** What could not even be made is tried again after this. */
const PREPARE_RETRY_MS = 5_000;
const RENEW_RETRY_MS = 10_000;

/** `noDriver`: the runtime was not asked yet, so nobody knows how groups are called. */
export type Prepared = 'prepared' | 'noDriver';

interface Context {
  message: string;
  /** What was last said as an event. */
  said: 'nothing' | 'enforced' | 'failed';
}

type DriverChanged = { type: 'driver.changed' };

export const cgroupsMachine = setup({
  types: { context: {} as Context, events: {} as CgroupsEvent | DriverChanged },
  actors: {
    prepare: unprovided<Prepared>(),
    enforce: unprovided<void>(),
    renew: unprovided<void>(),
    /** Says when the runtime has another driver than the groups were made with. */
    watchDriver: unprovidedCallback<DriverChanged>(),
  },
  actions: {
    /** `failing`: why the groups of the node could not be made so far; '' where nothing failed. */
    serve: unprovidedAction<{ request: GroupRequest; failing: string }>(),
    /** Pods that were told to come later may come now. */
    wake: unprovidedAction(),
    sayEnforced: unprovidedAction(),
    sayNotEnforced: unprovidedAction<{ message: string }>(),
    fail: assign((_, { error }: { error: unknown }) => ({ message: messageOf(error) })),
    forgetFailure: assign({ message: '' }),
    noteEnforced: assign({ said: 'enforced', message: '' }),
    noteFailed: assign({ said: 'failed' }),
  },
  guards: { isNews: ({ context }) => context.said !== 'enforced' },
  delays: { renew: RENEW_MS, prepareAgain: PREPARE_RETRY_MS, renewAgain: RENEW_RETRY_MS },
}).createMachine({
  id: 'cgroups',
  meta: projecting<Context>(({ message, said }) => ({ said, message })),
  context: { message: '', said: 'nothing' },
  initial: 'preparing',
  invoke: { src: 'watchDriver' },
  on: {
    'cgroups.ensure': { actions: [{ type: 'serve', params: ({ context, event }) => ({ request: event, failing: context.message }) }] },
    'cgroups.resize': { actions: [{ type: 'serve', params: ({ context, event }) => ({ request: event, failing: context.message }) }] },
    'driver.changed': { target: '.preparing' },
  },
  states: {
    preparing: {
      meta: { reason: 'Preparing', message: 'making the groups of the node and of the classes' },
      invoke: {
        src: 'prepare',
        onDone: [
          { guard: ({ event }) => event.output === 'noDriver', target: 'awaitingDriver' },
          { target: 'enforcing', actions: ['forgetFailure', 'wake'] },
        ],
        onError: { target: 'unprepared', actions: { type: 'fail', params: ({ event }) => ({ error: event.error }) } },
      },
    },
    /** `driver.changed` ends it. */
    awaitingDriver: {
      meta: {
        reason: 'AwaitingRuntime',
        message: 'waiting until the container runtime has said its cgroup driver; pods wait for the groups of the node',
      },
    },
    unprepared: {
      meta: {
        reason: 'NotPrepared',
        message: ({ message }: Context): string => `the groups of the node cannot be made, so pods wait; tried again every 5 s: ${message}`,
      },
      after: { prepareAgain: { target: 'preparing' } },
    },
    enforcing: {
      meta: { reason: 'Enforcing', message: 'limiting what pods may use of the node' },
      invoke: {
        src: 'enforce',
        onDone: [
          { guard: 'isNews', target: 'enforced', actions: ['sayEnforced', 'noteEnforced'] },
          { target: 'enforced', actions: ['noteEnforced'] },
        ],
        onError: {
          target: 'notEnforced',
          actions: [
            { type: 'fail', params: ({ event }) => ({ error: event.error }) },
            'noteFailed',
            { type: 'sayNotEnforced', params: ({ event }) => ({ message: messageOf(event.error) }) },
          ],
        },
      },
    },
    notEnforced: {
      meta: {
        reason: 'NotEnforced',
        message: ({ message }: Context): string =>
          `what pods may use of the node could not be limited; tried again each minute: ${message}`,
      },
      after: { renew: { target: 'enforcing' } },
    },
    enforced: {
      meta: { reason: 'Enforced', message: 'pods are held to what they may use of the node' },
      after: { renew: { target: 'renewing' } },
      on: { 'cgroups.look': { target: 'renewing' } },
    },
    renewing: {
      meta: { reason: 'Renewing', message: 'weighing the classes by the pods they have' },
      invoke: {
        src: 'renew',
        onDone: { target: 'enforced' },
        onError: { target: 'renewFailed', actions: { type: 'fail', params: ({ event }) => ({ error: event.error }) } },
      },
    },
    renewFailed: {
      meta: {
        reason: 'RenewFailed',
        message: ({ message }: Context): string => `the classes could not be weighed anew; all is made again soon: ${message}`,
      },
      after: { renewAgain: { target: 'preparing' } },
    },
  },
});
