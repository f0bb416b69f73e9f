/** A driver's registration: the connection to it, and what it says of the health of its devices. */

import { assign, sendParent, setup } from 'xstate';
import { projecting } from '../../xstate/projection.ts';
import { unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import type { DraDriver } from './messages.ts';
import type { DeviceHealth } from './types.ts';

/** A stream that ended is begun again after this, from the reference. */
const HEALTH_RETRY_MS = 5_000;

export type ConnectionEvent = { type: 'connection.changed'; connected: boolean };
/** `never`: the driver has no such stream. */
export type HealthEvent =
  | { type: 'health.listed'; devices: readonly DeviceHealth[] }
  | { type: 'health.ended'; why: string; never: boolean };
export type DriverSaid = { type: 'driver.changed'; driver: string; stamp: string; connected: boolean };
interface DriverContext extends DraDriver {
  error: string;
}

export const driverMachine = setup({
  types: { context: {} as DriverContext, input: {} as DraDriver, events: {} as ConnectionEvent | HealthEvent },
  actors: {
    /** Dials until it is stopped. */
    connection: unprovidedCallback<ConnectionEvent, DraDriver>(),
    health: unprovidedCallback<HealthEvent, DraDriver>(),
  },
  actions: {
    sayChanged: sendParent(
      ({ context: { driver, stamp } }, { connected }: { connected: boolean }): DriverSaid => ({
        type: 'driver.changed',
        ...{ driver, stamp, connected },
      }),
    ),
    takeHealth: unprovidedAction<{ driver: string; devices: readonly DeviceHealth[] }>(),
    /** Nothing is known any more. */
    dropHealth: unprovidedAction<{ driver: string }>(),
    note: assign((_, { error }: { error: string }) => ({ error })),
  },
  guards: {
    connected: ({ event }) => event.type === 'connection.changed' && event.connected,
    lost: ({ event }) => event.type === 'connection.changed' && !event.connected,
    hasNone: ({ event }) => event.type === 'health.ended' && event.never,
  },
}).createMachine({
  id: 'draDriver',
  meta: projecting<DriverContext>(({ driver, endpoint, service, error }) => ({ driver, endpoint, service, error })),
  context: ({ input }) => ({ ...input, error: '' }),
  invoke: { src: 'connection', input: ({ context }) => context },
  initial: 'connecting',
  states: {
    connecting: {
      meta: {
        reason: 'Connecting',
        message: ({ driver, endpoint }: DriverContext) => `DRA driver ${driver} at ${endpoint} does not answer`,
      },
      on: {
        'connection.changed': {
          guard: 'connected',
          target: 'connected',
          actions: [{ type: 'sayChanged', params: { connected: true } }],
        },
      },
    },
    connected: {
      meta: { reason: 'Connected', message: ({ driver, service }: DriverContext) => `DRA driver ${driver} serves ${service}` },
      on: {
        'connection.changed': {
          guard: 'lost',
          target: 'connecting',
          actions: [{ type: 'sayChanged', params: { connected: false } }],
        },
      },
      initial: 'watching',
      states: {
        watching: {
          invoke: { src: 'health', input: ({ context }) => context },
          exit: [{ type: 'dropHealth', params: ({ context: { driver } }) => ({ driver }) }],
          on: {
            'health.listed': {
              actions: [{ type: 'takeHealth', params: ({ context: { driver }, event }) => ({ driver, devices: event.devices }) }],
            },
            'health.ended': [
              { guard: 'hasNone', target: 'plain' },
              { target: 'resting', actions: [{ type: 'note', params: ({ event }) => ({ error: event.why }) }] },
            ],
          },
        },
        resting: { after: { [HEALTH_RETRY_MS]: { target: 'watching' } } },
        /** It says nothing of health. */
        plain: {},
      },
    },
  },
});
