/** One socket in the folder of plugins: registered, for as long as that very socket is there. A failure is tried again. */

import { assign, sendParent } from 'xstate';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import type { Registered } from './messages.ts';

/** Back-off of a plugin that does not register (resources and volumes 10). */
const PLUGIN_BACKOFF = { minMs: 500, maxMs: 122_000 } as const;

export interface PluginInput {
  socket: string;
}
interface PluginContext extends PluginInput {
  attempts: number;
  error: string;
  waitMs: number;
  name: string;
}
export type PluginSaid = { type: 'plugin.registered'; socket: string; plugin: Registered };

type PluginEvent = { type: 'plugin.renew'; name: string };

const { setup, facts } = setupWith();
export const pluginMachine = setup({
  types: { context: {} as PluginContext, events: {} as PluginEvent, input: {} as PluginInput },
  actors: {
    register: unprovided<Registered, { socket: string }>(),
    renew: unprovided<Registered, { socket: string }>(),
  },
  actions: {
    tell: sendParent(
      ({ context }, params: { plugin: Registered }): PluginSaid => ({
        type: 'plugin.registered',
        socket: context.socket,
        plugin: params.plugin,
      }),
    ),
    noteFailure: assign(({ context }, params: { error: unknown }) => ({
      error: messageOf(params.error),
      attempts: context.attempts + 1,
      waitMs: retryDelayMs({ ...PLUGIN_BACKOFF, jitter: 0.1 }, context.attempts, facts().random),
    })),
    sayFailed: unprovidedAction<{ socket: string; error: string }>(),
  },
  guards: { isMeant: ({ context, event }) => event.name === context.name },
  delays: { wait: ({ context }) => context.waitMs },
}).createMachine({
  id: 'plugin',
  meta: projecting<PluginContext>(({ socket, name, attempts, error, waitMs }) => ({ socket, name, attempts, error, waitMs })),
  context: ({ input }) => ({ ...input, attempts: 0, error: '', waitMs: 0, name: '' }),
  initial: 'registering',
  states: {
    registering: {
      meta: { reason: 'Registering', message: ({ socket }: PluginContext) => `asking ${socket} who it is` },
      invoke: {
        src: 'register',
        input: ({ context: { socket } }) => ({ socket }),
        onDone: {
          target: 'registered',
          actions: [
            assign(({ event }) => ({ name: event.output.name, attempts: 0, error: '' })),
            { type: 'tell', params: ({ event }) => ({ plugin: event.output }) },
          ],
        },
        onError: {
          target: 'failed',
          actions: [
            { type: 'noteFailure', params: ({ event }) => ({ error: event.error }) },
            { type: 'sayFailed', params: ({ context: { socket, error } }) => ({ socket, error }) },
          ],
        },
      },
    },
    failed: {
      meta: { reason: 'RegistrationFailed', message: ({ error }: PluginContext) => error },
      after: { wait: { target: 'registering' } },
    },
    registered: {
      meta: { reason: 'Registered', message: ({ name }: PluginContext) => name },
      on: { 'plugin.renew': { guard: 'isMeant', target: 'renewing' } },
    },
    /** It serves meanwhile. */
    renewing: {
      meta: { reason: 'Renewing', message: ({ name }: PluginContext) => `asking ${name} again what it says of this node` },
      invoke: {
        src: 'renew',
        input: ({ context: { socket } }) => ({ socket }),
        onDone: { target: 'registered', actions: [{ type: 'tell', params: ({ event }) => ({ plugin: event.output }) }] },
        onError: {
          target: 'registered',
          actions: [{ type: 'sayFailed', params: ({ context: { socket }, event }) => ({ socket, error: messageOf(event.error) }) }],
        },
      },
    },
  },
});
