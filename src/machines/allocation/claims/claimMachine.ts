/**
 * One ResourceClaim on this node. Pods ask for it and let go of it; what it comes to is decided in rounds, one at a time: who leaves
 * first, then who waits. It is recorded before a driver hears of it, and forgotten after every driver has unprepared it.
 */

import { assign, sendParent, setup } from 'xstate';
import type { Built } from '../../result.ts';
import { messageOf } from '../../text/errors.ts';
import { names, projecting } from '../../xstate/projection.ts';
import { enqueuing, unprovided, unprovidedAction } from '../../xstate/provide.ts';
import type { ClaimUser } from './claimRules.ts';
import { type ClaimRecord, claimKey, type PreparedDevice } from './types.ts';

/** `ask`: number of the question that is answered. */
interface Use {
  ask: number;
  user: ClaimUser;
}
/** `ask` null: nobody waits for it. */
interface Leave {
  ask: number | null;
  uid: string;
}
/** `claim.doubt`: the runtime could not find a device of it, whatever its driver said. */
export type ClaimEvent = { type: 'claim.use'; use: Use } | { type: 'claim.release'; leave: Leave } | { type: 'claim.doubt' };

interface ClaimInput {
  namespace: string;
  name: string;
  /** As it was on disk. */
  record: ClaimRecord | null;
}
interface ClaimContext extends ClaimInput {
  waiting: readonly Use[];
  leaving: readonly Leave[];
  /** Uses that this round is about. */
  round: readonly Use[];
  leavers: readonly Leave[];
  wanted: ClaimRecord | null;
  failed: 'PrepareFailed' | 'UnprepareFailed' | null;
  error: string;
  /** Events it heard: its parent stops it when it has heard all. */
  heard: number;
}
/** The claim as the API has it, for each that asked. */
export type Look = readonly { ask: number; found: Built<{ uid: string; drivers: readonly string[] }> }[];

export type ClaimSaid = { type: 'claim.answered'; ask: number; error: string | null } | { type: 'claim.idle'; key: string; heard: number };

const effects = setup({
  types: { context: {} as ClaimContext, input: {} as ClaimInput, events: {} as ClaimEvent },
  actors: {
    look: unprovided<Look, { namespace: string; name: string; uses: readonly Use[] }>(),
    /** Settles when it is on disk. `record` null: there is none any more. */
    save: unprovided<void, { key: string; record: ClaimRecord | null }>(),
    prepare: unprovided<ReadonlyMap<string, readonly PreparedDevice[]>, { record: ClaimRecord }>(),
    unprepare: unprovided<void, { record: ClaimRecord }>(),
  },
  actions: {
    /** Nothing of it is on disk. */
    tellDoubted: unprovidedAction<{ key: string; record: ClaimRecord }>(),
  },
});
const doubted = (record: ClaimRecord): ClaimRecord => ({ ...record, prepared: false, doubted: true });
type Enqueue = Parameters<Parameters<typeof effects.enqueueActions>[0]>[0]['enqueue'];

function answer(enqueue: Enqueue, asks: readonly (number | null)[], error: string | null): void {
  for (const ask of asks) if (ask !== null) enqueue(sendParent({ type: 'claim.answered', ask, error } satisfies ClaimSaid));
}
const POD_ENDS = 'given up: the pod ends';
const asksOf = (of: readonly { ask: number | null }[]) => of.map(({ ask }) => ask);
/** Pods that use it when those have left. */
const without = (record: ClaimRecord | null, leaves: readonly Leave[]): Set<string> =>
  new Set([...(record?.pods ?? [])].filter((uid) => !leaves.some((l) => l.uid === uid)));

const machine = effects.extend({
  actions: {
    note: assign(({ context, event }) => {
      const heard = context.heard + 1;
      if (event.type === 'claim.use') return { heard, waiting: [...context.waiting, event.use] };
      if (event.type === 'claim.release') return { heard, leaving: [...context.leaving, event.leave] };
      return {};
    }),
    doubt: effects.enqueueActions(({ context, enqueue }) => {
      if (context.record === null) return;
      const record = doubted(context.record);
      enqueue.assign({ record });
      enqueue({ type: 'tellDoubted', params: { key: claimKey(context), record } });
    }),
    beginRound: assign(({ context }) => ({ round: context.waiting, waiting: [], wanted: null, failed: null, error: '' })),
    judge: enqueuing(effects)(({ context, enqueue }, look: Look) => {
      const { record, namespace, name } = context;
      const admitted: Use[] = [];
      let wanted = record;
      for (const use of context.round) {
        const found = look.find(({ ask }) => ask === use.ask)?.found ?? { ok: false as const, message: 'it was not looked at' };
        if (!found.ok) answer(enqueue, [use.ask], found.message);
        else if (wanted !== null && wanted.uid !== found.value.uid) {
          const old = `old ResourceClaim with same name ${name} and different UID ${wanted.uid} still exists (previous pod force-deleted?!)`;
          answer(enqueue, [use.ask], old);
        } else {
          const fresh = new Map(found.value.drivers.map((driver): [string, PreparedDevice[]] => [driver, []]));
          const base = wanted ?? { namespace, name, uid: found.value.uid, pods: new Set<string>(), drivers: fresh, prepared: false };
          wanted = base.pods.has(use.user.uid) ? base : { ...base, pods: new Set([...base.pods, use.user.uid]) };
          admitted.push(use);
        }
      }
      enqueue.assign({ round: admitted, wanted });
    }),
    refuse: enqueuing(effects)(({ context, enqueue }, { error }: { error: unknown }) => {
      answer(enqueue, asksOf(context.round), messageOf(error));
      enqueue.assign({ round: [], error: messageOf(error) });
    }),
    grant: effects.enqueueActions(({ context, enqueue }) => {
      answer(enqueue, asksOf(context.round), null);
      enqueue.assign({ round: [] });
    }),
    beginLeaving: effects.enqueueActions(({ context, enqueue }) => {
      const { record, leaving, waiting } = context;
      const left = without(record, leaving);
      const leaves = ({ user }: Use) => leaving.some(({ uid }) => uid === user.uid);
      answer(enqueue, asksOf(waiting.filter(leaves)), POD_ENDS);
      enqueue.assign({
        leavers: leaving,
        leaving: [],
        waiting: waiting.filter((use) => !leaves(use)),
        wanted: record === null || left.size === 0 ? null : { ...record, pods: left },
      });
    }),
    letGo: effects.enqueueActions(({ context, enqueue }) => {
      answer(enqueue, asksOf(context.leavers), null);
      enqueue.assign({ leavers: [], error: '', failed: null });
    }),
    keep: enqueuing(effects)(({ context, enqueue }, { error }: { error: unknown }) => {
      answer(enqueue, asksOf(context.leavers), messageOf(error));
      enqueue.assign({ leavers: [], error: messageOf(error) });
    }),
    take: assign(({ context }) => ({ record: context.wanted })),
    wantDevices: assign(({ context }, drivers: ReadonlyMap<string, readonly PreparedDevice[]>) => ({
      wanted: context.record === null ? null : { ...context.record, drivers, prepared: true, doubted: false },
    })),
    noteFailed: assign(({ context }, { failed }: { failed: ClaimContext['failed'] }) => ({
      failed,
      record: context.record === null ? null : { ...context.record, prepared: false },
    })),
    tellIdle: sendParent(({ context }): ClaimSaid => ({ type: 'claim.idle', key: claimKey(context), heard: context.heard })),
  },
  guards: {
    someLeave: ({ context }) => context.leaving.length > 0,
    someWait: ({ context }) => context.waiting.length > 0,
    noneAdmitted: ({ context }) => context.round.length === 0,
    unused: ({ context }) => context.record === null,
    prepared: ({ context }) => context.record?.prepared === true,
    hasFailed: ({ context }) => context.failed !== null,
    /** The last user leaves that it is prepared for. */
    lastLeaves: ({ context, event }) =>
      event.type === 'claim.release' && without(context.record, [...context.leaving, event.leave]).size === 0,
    allLeave: ({ context }) => without(context.record, context.leaving).size === 0,
    onDisk: ({ context }) => context.wanted === context.record,
    /** Nobody who leaves uses it. */
    notTheirs: ({ context }) => context.record === null || !context.leavers.some(({ uid }) => context.record?.pods.has(uid)),
    othersStay: ({ context }) => context.wanted !== null,
  },
});

const claim = ({ namespace, name }: ClaimInput): string => `ResourceClaim ${namespace}/${name}`;
const driversOf = ({ record }: ClaimContext): string => [...(record?.drivers.keys() ?? [])].join(', ');
/** The wanted record goes to disk; null removes it. */
const SAVE = {
  src: 'save',
  input: ({ context }: { context: ClaimContext }) => ({ key: claimKey(context), record: context.wanted }),
} as const;
/** A failed act answers the pods that want the claim (`refuse`), or those that leave it (`keep`). `failed`: how the claim stands from then on. */
function orTell(tell: 'refuse' | 'keep', failed?: NonNullable<ClaimContext['failed']>) {
  const noted = failed === undefined ? [] : ([{ type: 'noteFailed', params: { failed } }] as const);
  const told = { type: tell, params: ({ event }: { event: { error: unknown } }) => event } as const;
  return { onError: { target: 'settling', actions: [...noted, told] } } as const;
}
const anew = {
  on: {
    'claim.use': { target: 'settling', actions: ['note' as const] },
    'claim.release': { target: 'settling', actions: ['note' as const] },
  },
};
const doubtful = { 'claim.doubt': { target: 'settling', actions: ['note' as const, 'doubt' as const] } };

export const claimMachine = machine.createMachine({
  id: 'claim',
  meta: projecting<ClaimContext>((c) => ({
    ...{ claim: claimKey(c), uid: c.record?.uid ?? null, prepared: c.record?.prepared ?? false },
    ...{ pods: names(c.record?.pods ?? []), drivers: names(c.record?.drivers.keys() ?? []) },
    ...{ waiting: c.waiting.length + c.round.length, leaving: c.leaving.length + c.leavers.length, error: c.error },
  })),
  context: ({ input }) => ({
    ...{ ...input, waiting: [], leaving: [], round: [], leavers: [] },
    ...{ wanted: null, failed: null, error: '', heard: 0 },
  }),
  initial: 'settling',
  on: { 'claim.use': { actions: ['note'] }, 'claim.release': { actions: ['note'] }, 'claim.doubt': { actions: ['note'] } },
  states: {
    settling: {
      always: [
        { guard: 'someLeave', target: 'leaving' },
        { guard: 'someWait', target: 'looking' },
        { guard: 'unused', target: 'idle' },
        { guard: 'prepared', target: 'prepared' },
        { guard: 'hasFailed', target: 'failed' },
        { target: 'restored' },
      ],
    },
    looking: {
      meta: { reason: 'Looking', message: (c: ClaimContext) => `asking the API server for ${claim(c)}` },
      entry: ['beginRound'],
      invoke: {
        src: 'look',
        input: ({ context: { namespace, name, round } }) => ({ namespace, name, uses: round }),
        onDone: { target: 'judged', actions: [{ type: 'judge', params: ({ event }) => event.output }] },
        ...orTell('refuse'),
      },
    },
    judged: {
      always: [{ guard: 'noneAdmitted', target: 'settling' }, { guard: 'onDisk', target: 'recorded' }, { target: 'recording' }],
    },
    recording: {
      meta: { reason: 'Recording', message: (c: ClaimContext) => `writing to disk which pods use ${claim(c)}` },
      invoke: {
        ...SAVE,
        onDone: { target: 'recorded', actions: ['take'] },
        ...orTell('refuse'),
      },
    },
    recorded: {
      always: [
        { guard: 'allLeave', target: 'settling', actions: [{ type: 'refuse', params: { error: POD_ENDS } }] },
        { guard: 'prepared', target: 'settling', actions: ['grant'] },
        { target: 'preparing' },
      ],
    },
    preparing: {
      meta: { reason: 'Preparing', message: (c: ClaimContext) => `waiting until ${driversOf(c)} has prepared ${claim(c)}` },
      invoke: {
        src: 'prepare',
        input: ({ context }) => ({ record: required(context.record) }),
        onDone: { target: 'storing', actions: [{ type: 'wantDevices', params: ({ event }) => event.output }] },
        ...orTell('refuse', 'PrepareFailed'),
      },
      on: {
        // A driver that hangs does not hold up the end of a pod.
        'claim.release': [
          {
            guard: 'lastLeaves',
            target: 'settling',
            actions: ['note', { type: 'refuse', params: { error: POD_ENDS } }],
          },
          { actions: ['note'] },
        ],
      },
    },
    storing: {
      meta: { reason: 'Recording', message: (c: ClaimContext) => `writing to disk what was prepared for ${claim(c)}` },
      invoke: {
        ...SAVE,
        onDone: { target: 'settling', actions: ['take', 'grant'] },
        ...orTell('refuse', 'PrepareFailed'),
      },
    },
    prepared: {
      on: { ...anew.on, ...doubtful },
      meta: { reason: 'Prepared', message: (c: ClaimContext) => `${driversOf(c)} has prepared ${claim(c)}` },
    },
    restored: {
      on: { ...anew.on, ...doubtful },
      meta: {
        reason: 'Restored',
        message: (c: ClaimContext) =>
          c.record?.doubted === true
            ? `the runtime could not find a device of ${claim(c)}: it is prepared again for the next container`
            : `${claim(c)} was prepared before the daemon started`,
      },
    },
    failed: {
      ...anew,
      meta: {
        reason: ({ failed }: ClaimContext) => failed ?? 'Failed',
        message: ({ error, failed }: ClaimContext) =>
          `${error}; it is tried again when ${failed === 'UnprepareFailed' ? 'the end of the pod' : 'the pod'} is looked at`,
      },
    },
    leaving: {
      entry: ['beginLeaving'],
      always: [
        { guard: 'notTheirs', target: 'settling', actions: ['letGo'] },
        { guard: 'othersStay', target: 'parting' },
        { target: 'unpreparing' },
      ],
    },
    parting: {
      meta: { reason: 'Recording', message: (c: ClaimContext) => `writing to disk that a pod uses ${claim(c)} no more` },
      invoke: {
        ...SAVE,
        onDone: { target: 'settling', actions: ['take', 'letGo'] },
        ...orTell('keep'),
      },
    },
    unpreparing: {
      meta: { reason: 'Unpreparing', message: (c: ClaimContext) => `waiting until ${driversOf(c)} has unprepared ${claim(c)}` },
      invoke: {
        src: 'unprepare',
        input: ({ context }) => ({ record: required(context.record) }),
        onDone: { target: 'forgetting' },
        ...orTell('keep', 'UnprepareFailed'),
      },
    },
    forgetting: {
      meta: { reason: 'Recording', message: (c: ClaimContext) => `writing to disk that ${claim(c)} is unprepared` },
      invoke: {
        ...SAVE,
        onDone: { target: 'settling', actions: ['take', 'letGo'] },
        ...orTell('keep', 'UnprepareFailed'),
      },
    },
    /** Its parent stops it, unless it was told something meanwhile. */
    idle: {
      ...anew,
      meta: { reason: 'Unused', message: (c: ClaimContext) => `no pod uses ${claim(c)}` },
      entry: ['tellIdle'],
    },
  },
});

function required(record: ClaimRecord | null): ClaimRecord {
  if (record === null) throw new Error('claim machine: a driver is asked about a claim that is not recorded');
  return record;
}
