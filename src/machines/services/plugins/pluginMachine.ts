/** One socket in the folder of plugins: registered, for as long as that very socket is there. A failure is tried again. */

import { assign, fromPromise, sendParent, setup } from 'xstate';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import { factsOf } from '../../xstate/facts.ts';
import { projecting } from '../../xstate/projection.ts';
import { providing, unprovided } from '../../xstate/provide.ts';
import type { Registered } from './messages.ts';

/** Back-off of a plugin that does not register (resources and volumes 10). */
const PLUGIN_BACKOFF = { minMs: 500, maxMs: 122_000 } as const;

export interface PluginIo {
  /** Rejects with what is wrong; the plugin was told, where it listens. */
  register(socket: string, signal: AbortSignal): Promise<Registered>;
  failed(socket: string, message: string): void;
}
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

export const pluginMachine = setup({
  types: { context: {} as PluginContext, input: {} as PluginInput },
  actors: { register: unprovided<Registered, { socket: string }>() },
  actions: {
    tell: sendParent(
      ({ context }, params: { plugin: Registered }): PluginSaid => ({
        type: 'plugin.registered',
        socket: context.socket,
        plugin: params.plugin,
      }),
    ),
    noteFailure: assign(({ context, event }, params: { error: unknown }) => ({
      error: messageOf(params.error),
      attempts: context.attempts + 1,
      waitMs: retryDelayMs({ ...PLUGIN_BACKOFF, jitter: 0.1 }, context.attempts, factsOf(event).random),
    })),
    sayFailed: (_) => {},
  },
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
        onError: { target: 'failed', actions: [{ type: 'noteFailure', params: ({ event }) => ({ error: event.error }) }, 'sayFailed'] },
      },
    },
    failed: {
      meta: { reason: 'RegistrationFailed', message: ({ error }: PluginContext) => error },
      after: { wait: { target: 'registering' } },
    },
    registered: {
      meta: { reason: 'Registered', message: ({ name }: PluginContext) => name },
    },
  },
});

export const pluginWith = (io: PluginIo): typeof pluginMachine =>
  providing(pluginMachine, {
    actors: { register: fromPromise<Registered, { socket: string }>(({ input, signal }) => io.register(input.socket, signal)) },
    actions: { sayFailed: ({ context }) => io.failed(context.socket, context.error) },
  });
