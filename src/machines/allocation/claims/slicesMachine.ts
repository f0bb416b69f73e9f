/** ResourceSlices of a driver that is away, or of all drivers when the daemon starts: deleted after the grace, so that no pod waits here for it. */

import { assign, sendParent } from 'xstate';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { messageOf } from '../../text/errors.ts';
import { projecting } from '../../xstate/projection.ts';
import { unprovided } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';

/** Long enough to stop a driver's pod and start the next, from the reference. */
export const SLICES_GRACE_MS = 30_000;
/** Back-off of the reference. */
const SLICES_BACKOFF = { minMs: 1_000, maxMs: 300_000, jitter: 0.2 } as const;

interface SlicesInput {
  /** '' = all drivers. */
  driver: string;
  graceMs: number;
}
interface SlicesContext extends SlicesInput {
  attempts: number;
  error: string;
}
export type SlicesSaid = { type: 'slices.deleted'; driver: string };

const whose = ({ driver }: SlicesInput): string =>
  driver === '' ? 'all ResourceSlices of this node' : `the ResourceSlices of DRA driver ${driver}`;

const { setup, facts } = setupWith();
export const slicesMachine = setup({
  types: { context: {} as SlicesContext, input: {} as SlicesInput },
  actors: { remove: unprovided<void, { driver: string }>() },
  actions: {
    note: assign(({ context }, { error }: { error: unknown }) => ({ error: messageOf(error), attempts: context.attempts + 1 })),
    tell: sendParent(({ context: { driver } }): SlicesSaid => ({ type: 'slices.deleted', driver })),
  },
  delays: {
    grace: ({ context }) => context.graceMs,
    retry: ({ context }) => retryDelayMs(SLICES_BACKOFF, context.attempts - 1, facts().random),
  },
}).createMachine({
  id: 'slices',
  meta: projecting<SlicesContext>(({ driver, attempts, error }) => ({ driver, attempts, error })),
  context: ({ input }) => ({ ...input, attempts: 0, error: '' }),
  initial: 'waiting',
  states: {
    waiting: {
      meta: { reason: 'DriverAway', message: (c: SlicesContext) => `deletes ${whose(c)} if it does not come back` },
      after: { grace: { target: 'deleting' } },
    },
    deleting: {
      meta: { reason: 'Deleting', message: (c: SlicesContext) => `deleting ${whose(c)}` },
      invoke: {
        src: 'remove',
        input: ({ context: { driver } }) => ({ driver }),
        onDone: { target: 'deleted', actions: ['tell'] },
        onError: { target: 'failed', actions: [{ type: 'note', params: ({ event }) => event }] },
      },
    },
    failed: {
      meta: { reason: 'DeleteFailed', message: ({ error }: SlicesContext) => `${error}; it is tried again` },
      after: { retry: { target: 'deleting' } },
    },
    deleted: { type: 'final' },
  },
});
