/** One plugin: reached, then listened to for as long as it tells of its devices, then kept in mind for a while. */

import { assign, sendParent, setup } from 'xstate';
import { messageOf } from '../../text/errors.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import { STOPPED_GRACE_MS } from './inventory.ts';
import type { PluginDevice, PluginOptions } from './types.ts';

/** The endpoint that a statechart is about: numbers are never given twice. */
export interface EndpointKey {
  resource: string;
  id: number;
}
export interface EndpointInput extends EndpointKey {
  endpoint: string;
  /** Null: it is asked. */
  options: PluginOptions | null;
  /** Known from an earlier daemon alone: there is nobody to reach before it registers. */
  remembered: boolean;
}
interface EndpointContext extends EndpointInput {
  error: string;
}
export type EndpointSaid =
  | { type: 'endpoint.connected'; key: EndpointKey }
  | { type: 'endpoint.failed'; key: EndpointKey; error: string }
  | { type: 'endpoint.listed'; key: EndpointKey; devices: readonly PluginDevice[] }
  | { type: 'endpoint.stopped'; key: EndpointKey; error: string }
  | { type: 'endpoint.expired'; key: EndpointKey };

export type EndpointEvent = { type: 'plugin.listed'; devices: readonly PluginDevice[] } | { type: 'plugin.ended'; why: string };

const keyOf = ({ resource, id }: EndpointKey): EndpointKey => ({ resource, id });
const text = (error: unknown): string => messageOf(error);

export const endpointMachine = setup({
  types: { context: {} as EndpointContext, input: {} as EndpointInput, events: {} as EndpointEvent },
  actors: {
    /** Rejects with what is wrong. From then on the connection is this key's, until `close`. */
    dial: unprovided<void, EndpointInput>(),
    watch: unprovidedCallback<EndpointEvent, EndpointInput>(),
  },
  actions: {
    note: assign((_, params: { error: string }) => params),
    reportConnected: sendParent(({ context }): EndpointSaid => ({ type: 'endpoint.connected', key: keyOf(context) })),
    reportFailed: sendParent(({ context }): EndpointSaid => ({ type: 'endpoint.failed', key: keyOf(context), error: context.error })),
    reportListed: sendParent(
      ({ context }, params: { devices: readonly PluginDevice[] }): EndpointSaid => ({
        type: 'endpoint.listed',
        key: keyOf(context),
        devices: params.devices,
      }),
    ),
    reportStopped: sendParent(({ context }): EndpointSaid => ({ type: 'endpoint.stopped', key: keyOf(context), error: context.error })),
    reportExpired: sendParent(({ context }): EndpointSaid => ({ type: 'endpoint.expired', key: keyOf(context) })),
    close: unprovidedAction<{ key: EndpointKey }>(),
  },
  guards: { remembered: ({ context }) => context.remembered },
}).createMachine({
  id: 'devicePlugin',
  meta: projecting<EndpointContext>(({ resource, id, endpoint, remembered, error }) => ({ resource, id, endpoint, remembered, error })),
  context: ({ input }) => ({ ...input, error: '' }),
  initial: 'new',
  states: {
    new: { always: [{ guard: 'remembered', target: 'stopped' }, { target: 'dialing' }] },
    dialing: {
      meta: { reason: 'Dialing', message: ({ resource, endpoint }: EndpointContext) => `the plugin of ${resource} at ${endpoint}` },
      invoke: {
        src: 'dial',
        input: ({ context }) => context,
        onDone: { target: 'watching', actions: ['reportConnected'] },
        onError: { target: 'failed', actions: [{ type: 'note', params: ({ event }) => ({ error: text(event.error) }) }, 'reportFailed'] },
      },
    },
    watching: {
      meta: {
        reason: 'Watching',
        message: ({ resource, endpoint }: EndpointContext) => `devices of ${resource}, as the plugin at ${endpoint} tells of them`,
      },
      invoke: { src: 'watch', input: ({ context }) => context },
      on: {
        'plugin.listed': { actions: [{ type: 'reportListed', params: ({ event }) => ({ devices: event.devices }) }] },
        'plugin.ended': {
          target: 'stopped',
          actions: [
            { type: 'note', params: ({ event }) => ({ error: event.why }) },
            'reportStopped',
            { type: 'close', params: ({ context }) => ({ key: keyOf(context) }) },
          ],
        },
      },
    },
    stopped: {
      meta: {
        reason: 'PluginGone',
        message: ({ resource, error }: EndpointContext) =>
          error === ''
            ? `the plugin of ${resource} has not registered since this node started`
            : `the plugin of ${resource} is gone (${error}): its devices count as unhealthy until it registers again`,
      },
      after: { [STOPPED_GRACE_MS]: { target: 'expired', actions: ['reportExpired'] } },
    },
    failed: { type: 'final' },
    expired: { type: 'final' },
  },
});
