/**
 * Keeps a bundle of facts for each death: reads what an earlier daemon kept, takes what the status manager saw, looks for pods
 * that are stuck, and has one bundle after the other written. Never in the way of a pod: it only looks.
 */

import type { PodRecord } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { Death, DeathHead, DeathsEvent } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { Moment } from '@actorlet/kubelet/machines/xstate/facts.ts';
import { type LookDue, unprovidedLookout } from '@actorlet/kubelet/machines/xstate/lookout.ts';
import { projecting } from '@actorlet/kubelet/machines/xstate/projection.ts';
import { unprovided, unprovidedAction } from '@actorlet/kubelet/machines/xstate/provide.ts';
import { setupWith } from '@actorlet/kubelet/machines/xstate/setup.ts';
import { assign, not } from 'xstate';
import { BURST_MAX, type Bundle, isUnexplained, nthOf, type Queue, queued, REFILL_MS, sorted, surplus } from './keeping.ts';
import { lookAt, type Standings, type Stuckness, stuckDeath } from './stuck.ts';

/** From a death to its bundle: last lines of logs, events and the kernel's words come a moment later. */
const SETTLE_MS = 1_500;
/** Between two looks for pods that are stuck. */
const LOOK_EVERY_MS = 15_000;
/** For how long, and of how many deaths, the kernel's word is waited for. */
const EXPLAINED_WITHIN_MS = 600_000;
const UNEXPLAINED_MAX = 20;

interface DeathsInput {
  /** Bundles kept at most. */
  max: number;
  stuckAfterMs: number;
}
export interface DeathsFacts extends Moment, Pick<Stuckness, 'wordsOf' | 'lastSaid'> {
  readonly records: ReadonlyMap<string, PodRecord>;
  wasOutOfMemory(death: Death): boolean;
  /** What a death of this pod has in common with any other. */
  deathOf(record: PodRecord): Death;
}
/** What came of one bundle. Null: it was no death after all. */
export interface Kept {
  bundle: Bundle | null;
  removed: readonly DeathHead[];
}
interface Context extends DeathsInput, Queue {
  /** Bundles on disk, the oldest first. */
  kept: readonly DeathHead[];
  /** Its bundle is being written. */
  present: Death | null;
  /** Killed by an unknown sender: the kernel's word may come later than the bundle. */
  unexplained: readonly Bundle[];
  standings: Standings;
  /** Bundles that may be written before the next pause, and the monotonic time of the last refill. */
  room: number;
  refilledMonoMs: number;
  error: string | null;
}

const { setup, facts } = setupWith<DeathsFacts>();
const effects = setup({
  types: { context: {} as Context, events: {} as DeathsEvent | LookDue, input: {} as DeathsInput },
  actors: {
    /** Heads of the bundles on disk. */
    read: unprovided<readonly DeathHead[]>(),
    /** Gathers the facts and writes the bundle; removes those that it pushes out. */
    keep: unprovided<Kept, { death: Death; nth: number; before: Bundle | undefined; kept: readonly DeathHead[]; max: number }>(),
    lookout: unprovidedLookout(),
  },
  actions: {
    publish: unprovidedAction<{ kept: readonly DeathHead[] }>(),
    /** `count`: deaths that got no bundle, since there were too many. */
    report: unprovidedAction<{ what: 'unread' | 'unwritten' | 'left'; why: string; death: Death | null; count: number }>(),
  },
});

export const deathsMachine = effects
  .extend({
    actions: {
      take: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type !== 'deaths.seen') return;
        const next = queued(context, unknownOf(event.deaths, context.present), context.kept);
        enqueue.assign({ ...next });
        if (next.left > context.left)
          enqueue({ type: 'report', params: { what: 'left', why: '', death: null, count: next.left - context.left } });
      }),
      look: assign(({ context }) => {
        const { wallMs, records, wordsOf, lastSaid, deathOf, wasOutOfMemory } = facts();
        const o: Stuckness = { nowMs: wallMs, afterMs: context.stuckAfterMs, wordsOf, lastSaid };
        const { standings, stuck } = lookAt(context.standings, records, o);
        const deaths = stuck.flatMap(({ uid, standing }) => {
          const record = records.get(uid);
          return record === undefined ? [] : [stuckDeath(deathOf(record), standing, wallMs)];
        });
        const { waiting, left } = queued(context, deaths, context.kept);
        const unexplained = context.unexplained.filter(({ death }) => wallMs - death.atMs < EXPLAINED_WITHIN_MS);
        const explained = unexplained.flatMap(({ death }): Death[] => (wasOutOfMemory(death) ? [{ ...death, kind: 'oom' }] : []));
        return { standings, unexplained, waiting: [...waiting, ...explained], left };
      }),
      refill: assign(({ context }) => {
        const now = facts().monoMs;
        const more = Math.floor((now - context.refilledMonoMs) / REFILL_MS);
        if (more <= 0) return {};
        return { room: Math.min(BURST_MAX, context.room + more), refilledMonoMs: context.refilledMonoMs + more * REFILL_MS };
      }),
      begin: assign(({ context: { waiting, room } }) => ({ present: waiting[0] ?? null, waiting: waiting.slice(1), room: room - 1 })),
      learn: assign(({ context }, { bundle, removed }: Kept) => {
        const made = bundle === null ? [] : [bundle];
        const gone = new Set([...removed, ...made.map(({ head }) => head)].map(({ id }) => id));
        const kept = context.kept.filter(({ id }) => !gone.has(id));
        const unexplained = [...others(context), ...made.filter(({ death }) => isUnexplained(death))].slice(-UNEXPLAINED_MAX);
        return { kept: sorted([...kept, ...made.map(({ head }) => head)]), unexplained, present: null, error: null };
      }),
    },
    guards: {
      waits: ({ context }) => context.waiting.length > 0,
      noRoom: ({ context }) => context.room <= 0,
    },
  })
  .createMachine({
    id: 'deaths',
    meta: projecting<Context>(({ kept, waiting, left, standings, room, error }) => ({
      ...{ kept: kept.length, waiting: waiting.length, left, standing: standings.size, room, error },
    })),
    context: ({ input }) => ({
      ...{ ...input, kept: [], waiting: [], left: 0, present: null, unexplained: [], standings: new Map() },
      ...{ room: BURST_MAX, refilledMonoMs: facts().monoMs, error: null },
    }),
    initial: 'reading',
    on: { 'deaths.seen': { actions: ['take'] } },
    states: {
      reading: {
        meta: { reason: 'Reading', message: 'reading which bundles an earlier daemon kept' },
        invoke: {
          src: 'read',
          onDone: {
            target: 'idle',
            actions: [
              assign(({ event }) => ({ kept: sorted(event.output) })),
              { type: 'publish', params: ({ context }) => ({ kept: context.kept }) },
            ],
          },
          onError: {
            target: 'idle',
            actions: [
              assign(({ event }) => ({ error: messageOf(event.error) })),
              { type: 'report', params: ({ event }) => ({ what: 'unread', why: messageOf(event.error), death: null, count: 0 }) },
              { type: 'publish', params: ({ context }) => ({ kept: context.kept }) },
            ],
          },
        },
      },
      idle: {
        meta: {
          reason: ({ error }: Context) => (error === null ? 'Watching' : 'BundlesUnwritable'),
          message: ({ error, kept, left }: Context) =>
            error ?? `${kept.length} bundles are kept${left === 0 ? '' : `; ${left} deaths got none, there were too many at once`}`,
        },
        always: { guard: 'waits', target: 'settling' },
        invoke: { src: 'lookout', input: { everyMs: LOOK_EVERY_MS } },
        on: { 'look.due': { actions: ['look'] } },
      },
      settling: {
        meta: { reason: 'Settling', message: 'last lines of logs, events and words of the kernel about a death may still come' },
        after: {
          [SETTLE_MS]: [
            { guard: 'noRoom', target: 'pausing' },
            { target: 'keeping', actions: ['begin'] },
          ],
        },
      },
      pausing: {
        meta: { reason: 'Pausing', message: 'many pods died at once: their bundles are written slowly' },
        entry: ['refill'],
        always: { guard: not('noRoom'), target: 'keeping', actions: ['begin'] },
        after: { [REFILL_MS]: { target: 'pausing', reenter: true } },
      },
      keeping: {
        meta: {
          reason: 'Keeping',
          message: ({ present }: Context) =>
            present === null ? '' : `writing what is known of ${present.pod.namespace}/${present.pod.name}`,
        },
        invoke: {
          src: 'keep',
          input: ({ context: { present, unexplained, kept, max } }) => {
            const death = required(present);
            return { death, nth: nthOf(death, kept), before: unexplained.find((b) => b.death.key === death.key), kept, max };
          },
          onDone: {
            target: 'kept',
            actions: [
              { type: 'learn', params: ({ event }) => event.output },
              { type: 'publish', params: ({ context }) => ({ kept: context.kept }) },
            ],
          },
          onError: {
            target: 'kept',
            actions: [
              {
                type: 'report',
                params: ({ context, event }) => ({
                  ...{ what: 'unwritten' as const, why: messageOf(event.error), death: context.present, count: 1 },
                }),
              },
              assign(({ context, event }) => ({ error: messageOf(event.error), present: null, unexplained: others(context) })),
            ],
          },
        },
      },
      kept: {
        entry: ['refill'],
        always: [
          { guard: not('waits'), target: 'idle' },
          { guard: 'noRoom', target: 'pausing' },
          { target: 'keeping', actions: ['begin'] },
        ],
      },
    },
  });

/** Without the one whose bundle is being written. */
function unknownOf(deaths: readonly Death[], present: Death | null): readonly Death[] {
  return present === null ? deaths : deaths.filter(({ key }) => key !== present.key);
}
function others({ unexplained, present }: Context): Bundle[] {
  return unexplained.filter(({ death }) => death.key !== present?.key);
}

function required<T>(value: T | null): T {
  if (value === null) throw new Error('a bundle is written while none waits');
  return value;
}

/** Bundles that go for a new one. */
export function pushedOut(kept: readonly DeathHead[], head: DeathHead, max: number): DeathHead[] {
  return surplus([...kept.filter(({ id }) => id !== head.id), head], max).filter(({ id }) => id !== head.id);
}
