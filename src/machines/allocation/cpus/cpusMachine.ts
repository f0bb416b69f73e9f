/** Statechart of the CPU manager: a ledger of CPUs. Containers without CPUs of their own are confined to the rest from time to time. */

import { assign } from 'xstate';
import { messageOf } from '../../text/errors.ts';
import { projecting } from '../../xstate/projection.ts';
import { formatCpuSet } from '../cpuSet.ts';
import { keeping, LEDGER_ON, type LedgerContext, ledgerSetup, loading, noLedger, shownLedger } from '../ledgerMachine.ts';
import type { CpuCounts, CpuLedger, CpuPlace } from './ledger.ts';
import { cpuRules } from './rules.ts';

/** Runtimes answer within moments; what takes longer is tried at the next look. */
const SHARING_MAX_MS = 10_000;

type Context = LedgerContext<CpuLedger, CpuCounts, CpuPlace>;

export const cpusMachine = ledgerSetup<CpuLedger, CpuCounts, CpuPlace>(cpuRules).createMachine({
  id: 'cpus',
  meta: projecting<Context>((c) => ({
    sharedCpus: c.ledger === null ? null : formatCpuSet(c.ledger.shared),
    ...shownLedger(c, 'podsWithCpus'),
    ...{ saveError: c.saveError, shareError: c.shareError },
  })),
  context: ({ input }) => noLedger(input),
  initial: 'loading',
  on: LEDGER_ON,
  states: {
    loading: loading<CpuLedger, 'serving'>('CPUs', 'serving'),
    serving: {
      type: 'parallel',
      states: {
        ledger: { initial: 'settled', states: keeping<CpuLedger>('CPUs') },
        sharing: {
          initial: 'resting',
          states: {
            resting: {
              meta: {
                reason: ({ shareError }: Context) => (shareError === '' ? 'Shared' : 'ShareFailed'),
                message: ({ shareError }: Context) => shareError,
              },
              after: { every: { target: 'confining' } },
            },
            confining: {
              meta: { reason: 'Confining', message: 'containers are given the CPUs that they may run on' },
              invoke: {
                src: 'share',
                input: ({ context }) => context.onDisk,
                onDone: { target: 'resting', actions: assign(({ event }) => ({ shareError: event.output })) },
                onError: { target: 'resting', actions: assign(({ event }) => ({ shareError: messageOf(event.error) })) },
              },
              after: { [SHARING_MAX_MS]: { target: 'resting', actions: assign({ shareError: 'the runtime did not answer in time' }) } },
            },
          },
        },
      },
    },
  },
});
