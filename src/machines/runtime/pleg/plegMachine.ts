/** Statechart of lifecycle events: listing the runtime, and beside it the hint stream. Pure. */

import { assign } from 'xstate';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import type { CriContainer, PodSandbox, RuntimeHint } from '../../wire/cri.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { AFTER_HINT_MS, RELIST_PERIODS_MS } from './hintTrust.ts';
import type { PlegEvent } from './messages.ts';

/** Reopening the stream: first wait, doubled up to the last; UNIMPLEMENTED waits the last at once. */
export const STREAM_RETRY_MIN_MS = 500;
export const STREAM_RETRY_MAX_MS = 30_000;
/** Without one good listing for this long, lifecycle events count as unhealthy (pod lifecycle 4.1). */
export const UNHEALTHY_AFTER_MS = 180_000;
/** A hint about something known: the next listing confirms it and refreshes the view. Hints in between join. */
const SOON_MS = AFTER_HINT_MS;
/** A hint about something unknown that may be ours: listed at once, but never once per hint. */
const NOW_MS = 50;

export interface Listing {
  beganMonoMs: number;
  sandboxes: readonly PodSandbox[];
  containers: readonly CriContainer[];
}
export type PlegMachineEvent =
  | PlegEvent
  | { type: 'stream.opened'; via: 'cri' | 'containerd' }
  | { type: 'stream.hint'; hint: RuntimeHint }
  | { type: 'stream.lost'; reason: string; unimplemented: boolean }
  /** Asks for a listing: `soon` within a second, `now` as fast as coalescing allows. */
  | { type: 'relist.want'; when: 'soon' | 'now' };

export interface PlegContext {
  /** Listings failed in a row. */
  failures: number;
  /** A wish for a listing came while one was under way: it may not show what the wish was about. */
  again: boolean;
  streamAttempt: number;
}
/** What comes with each event. */
export interface PlegFacts {
  readonly runtimeReady: boolean;
  /** Between two listings, from how far the stream is trusted. */
  readonly periodMs: number;
  /** What is wrong with listing just now, '' when nothing is; asked when somebody looks. */
  readonly trouble: string;
}
const orTrouble =
  (message: string) =>
  (_: PlegContext, { trouble }: PlegFacts): string =>
    trouble || message;

const { setup, facts } = setupWith<PlegFacts>();
export const plegMachine = setup({
  types: { context: {} as PlegContext, events: {} as PlegMachineEvent },
  actors: {
    list: unprovided<Listing>(),
    stream: unprovidedCallback<PlegMachineEvent>(),
  },
  actions: {
    listed: unprovidedAction<{ listing: Listing }>(),
    listFailed: unprovidedAction<{ error: unknown }>(),
    everyPodDirty: unprovidedAction(),
    hint: unprovidedAction<{ hint: RuntimeHint }>(),
    opened: unprovidedAction<{ via: 'cri' | 'containerd' }>(),
    lost: unprovidedAction<{ reason: string }>(),
  },
  guards: { runtimeReady: () => facts().runtimeReady },
  delays: {
    period: ({ context }) => (context.failures > 0 ? RELIST_PERIODS_MS[0] : facts().periodMs),
    streamRetry: ({ context }) => retryDelayMs({ minMs: STREAM_RETRY_MIN_MS, maxMs: STREAM_RETRY_MAX_MS }, context.streamAttempt),
  },
}).createMachine({
  id: 'pleg',
  meta: projecting<PlegContext>(({ failures, again, streamAttempt }) => ({ failures, again, streamAttempt })),
  type: 'parallel',
  context: { failures: 0, again: false, streamAttempt: 0 },
  states: {
    relist: {
      initial: 'deciding',
      on: {
        'cri.lost': '.noRuntime',
        'cri.ready': { target: '.listing', actions: 'everyPodDirty' },
        'pleg.resync': { target: '.listing', actions: 'everyPodDirty' },
      },
      states: {
        deciding: { always: [{ guard: 'runtimeReady', target: 'listing' }, { target: 'noRuntime' }] },
        noRuntime: { meta: { reason: 'NoRuntime', message: 'waiting for the container runtime' } },
        waiting: {
          meta: { reason: 'Waiting', message: orTrouble('waiting for hints or for the next listing') },
          after: { period: 'listing' },
          on: {
            'pleg.relist': 'listing',
            'relist.want': [{ guard: ({ event }) => event.when === 'now', target: 'now' }, { target: 'soon' }],
          },
        },
        /** A listing is wanted earlier than the period says; further wishes join it. */
        soon: {
          meta: { reason: 'ListingSoon', message: 'a hint asked for a listing' },
          after: { [SOON_MS]: 'listing' },
          on: { 'pleg.relist': 'listing', 'relist.want': { guard: ({ event }) => event.when === 'now', target: 'now' } },
        },
        now: {
          meta: { reason: 'ListingSoon', message: 'a hint about an unknown container asked for a listing' },
          // Whatever else is wished for meanwhile is answered by that listing.
          after: { [NOW_MS]: 'listing' },
        },
        listing: {
          meta: { reason: 'Listing', message: orTrouble('listing sandboxes and containers') },
          entry: assign({ again: false }),
          on: { 'pleg.relist': { actions: assign({ again: true }) }, 'relist.want': { actions: assign({ again: true }) } },
          invoke: {
            src: 'list',
            onDone: [
              {
                guard: ({ context }) => context.again,
                target: 'soon',
                actions: [{ type: 'listed', params: ({ event }) => ({ listing: event.output }) }, assign({ failures: 0 })],
              },
              {
                target: 'waiting',
                actions: [{ type: 'listed', params: ({ event }) => ({ listing: event.output }) }, assign({ failures: 0 })],
              },
            ],
            onError: {
              target: 'waiting',
              actions: [
                { type: 'listFailed', params: ({ event }) => ({ error: event.error }) },
                assign({ failures: ({ context }) => context.failures + 1 }),
              ],
            },
          },
        },
      },
    },
    stream: {
      initial: 'deciding',
      on: {
        'cri.lost': '.noRuntime',
        'cri.ready': { target: '.open', actions: assign({ streamAttempt: 0 }) },
      },
      states: {
        deciding: { always: [{ guard: 'runtimeReady', target: 'open' }, { target: 'noRuntime' }] },
        noRuntime: { entry: { type: 'lost', params: { reason: 'the container runtime is lost' } } },
        open: {
          invoke: { src: 'stream' },
          on: {
            'stream.opened': { actions: [{ type: 'opened', params: ({ event }) => ({ via: event.via }) }, assign({ streamAttempt: 0 })] },
            'stream.hint': { actions: { type: 'hint', params: ({ event }) => ({ hint: event.hint }) } },
            'stream.lost': {
              target: 'retrying',
              actions: [
                { type: 'lost', params: ({ event }) => ({ reason: event.reason }) },
                assign({ streamAttempt: ({ context, event }) => (event.unimplemented ? 16 : context.streamAttempt) }),
              ],
            },
          },
        },
        retrying: {
          after: { streamRetry: { target: 'open', actions: assign({ streamAttempt: ({ context }) => context.streamAttempt + 1 }) } },
        },
      },
    },
  },
  on: {
    'pleg.hint': {
      actions: {
        type: 'hint',
        params: ({ event }) => ({
          hint: { kind: hintKind(event.kind), id: event.id, ...(event.podUid === undefined ? {} : { podUid: event.podUid }) },
        }),
      },
    },
  },
});

const KINDS: readonly RuntimeHint['kind'][] = ['created', 'started', 'stopped', 'deleted', 'oom', 'other'];
function hintKind(text: string): RuntimeHint['kind'] {
  return KINDS.find((k) => k === text) ?? 'other';
}
