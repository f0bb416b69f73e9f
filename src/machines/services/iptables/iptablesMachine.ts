/** Statechart of the chains that a node keeps in the host's packet filter: made, then looked at, and made again when they went. */
import { assign, setup } from 'xstate';
import { names, projecting } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { FAMILIES, type IpFamily } from './families.ts';

/** Between two looks at the canary: the reference's value. */
const LOOK_EVERY_MS = 60_000;
/** A firewall that starts again takes some time for all tables. */
const SETTLE_MS = 1_000;
/** A host without iptables may get one. */
const ABSENT_RETRY_MS = 600_000;
/** Looks at one family before the other one is asked for again: it may have come, or its program failed for a moment. */
const LOOKS_AT_ONE_MAX = ABSENT_RETRY_MS / LOOK_EVERY_MS;

export interface Ensured {
  /** Families that have everything now. */
  kept: readonly IpFamily[];
  /** What failed, for people; '' where nothing did. A family that the host does not have did not fail. */
  failure: string;
}
interface Context {
  kept: readonly IpFamily[];
  failure: string;
  /** Since the chains were made. */
  looks: number;
}

type Done = { event: { output: Ensured } };
const said = { type: 'ensured', params: ({ event }: Done) => ({ ensured: event.output }) } as const;
const take = { type: 'take', params: ({ event }: Done) => ({ ensured: event.output }) } as const;

const familyNames = (kept: readonly IpFamily[]): string => kept.map((f) => `IPv${f}`).join(' and ');

export const iptablesMachine = setup({
  types: { context: {} as Context },
  actors: {
    /** Makes what is missing. Never rejects. */
    ensure: unprovided<Ensured>(),
    /** Answers whether the canary of one family is gone. Never rejects. */
    look: unprovided<boolean, { kept: readonly IpFamily[] }>(),
  },
  actions: {
    /** Says what became of the chains. */
    ensured: unprovidedAction<{ ensured: Ensured }>(),
    flushed: unprovidedAction(),
    take: assign((_, { ensured }: { ensured: Ensured }) => ({ ...ensured, looks: 0 })),
    count: assign(({ context }) => ({ looks: context.looks + 1 })),
  },
  guards: {
    gone: (_, p: { gone: boolean }) => p.gone,
    lacksOne: ({ context }) => context.kept.length < FAMILIES.length && context.looks + 1 >= LOOKS_AT_ONE_MAX,
  },
}).createMachine({
  id: 'iptables',
  meta: projecting<Context>(({ kept, failure }) => ({ kept: names(kept.map((family) => `IPv${family}`)), failure })),
  context: { kept: [], failure: '', looks: 0 },
  initial: 'ensuring',
  states: {
    ensuring: {
      meta: { reason: 'Ensuring', message: "making the node's iptables chains" },
      invoke: {
        src: 'ensure',
        onDone: [
          { guard: ({ event }) => event.output.failure !== '', target: 'failed', actions: [said, take] },
          { guard: ({ event }) => event.output.kept.length === 0, target: 'absent', actions: [said, take] },
          { target: 'watching', actions: [said, take] },
        ],
      },
    },
    watching: {
      meta: { reason: 'Watching', message: ({ kept }: Context): string => `iptables chains are there for ${familyNames(kept)}` },
      after: { [LOOK_EVERY_MS]: 'looking' },
    },
    looking: {
      meta: { reason: 'Looking', message: 'looking whether the iptables chains are still there' },
      invoke: {
        src: 'look',
        input: ({ context }) => ({ kept: context.kept }),
        onDone: [
          { guard: { type: 'gone', params: ({ event }) => ({ gone: event.output }) }, target: 'settling', actions: ['flushed'] },
          { guard: 'lacksOne', target: 'ensuring' },
          { target: 'watching', actions: ['count'] },
        ],
      },
    },
    settling: {
      meta: { reason: 'Flushed', message: 'another program removed the iptables chains; they are made again in a second' },
      after: { [SETTLE_MS]: 'ensuring' },
    },
    failed: {
      meta: { reason: 'IptablesFailed', message: ({ failure }: Context) => failure },
      after: { [LOOK_EVERY_MS]: 'ensuring' },
    },
    absent: {
      meta: { reason: 'NoIptables', message: 'this host has no iptables: no other program can see which kind it uses' },
      after: { [ABSENT_RETRY_MS]: 'ensuring' },
    },
  },
});
