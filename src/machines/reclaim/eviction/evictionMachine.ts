/**
 * The eviction manager as a statechart (resources 3.3): look at what is left, say what that means for the node, and while
 * too little is left free what nobody needs, then end one pod and wait until it is gone.
 */

import { assign } from 'xstate';
import { SIGNAL_FACTS } from '../../config/evictionSignals.ts';
import type { Pod } from '../../kube/types.ts';
import type { NodePressure } from '../../nodeFacts.ts';
import { evictionOf, type PodRecord } from '../../pods/manager/messages.ts';
import { messageOf } from '../../text/errors.ts';
import type { Moment } from '../../xstate/facts.ts';
import { type LookDue, unprovidedLookout } from '../../xstate/lookout.ts';
import { names, podName, projecting, some } from '../../xstate/projection.ts';
import { unprovided, unprovidedAction, unprovidedCallback } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { type DiskLayout, type Garbage, garbageOf, NO_GARBAGE, withLayers } from './disks.ts';
import { type Exceeded, hasStorageLimits } from './limits.ts';
import { type EvictionLedger, type Met, metText, type Observations, type Pass, pass } from './pass.ts';
import { evictionGraceSeconds, evictionMessage, type PodUsage, rank } from './rank.ts';
import type { Threshold } from './thresholds.ts';

/** Between two looks. */
const LOOK_EVERY_MS = 10_000;
/** Between two looks at memory alone, with `kernelMemcgNotification`. */
export const MEMORY_EVERY_MS = 250;
/** What the collector of dead containers is given before the disk is looked at again. */
const COLLECT_MS = 5_000;
/** Between two looks at what pods with storage limits have written: it is many files to look at. */
export const LIMITS_EVERY_MS = 60_000;
/** An evicted pod is looked for this often, and this long at most, before the next look at the node. */
const GONE_EVERY_MS = 1_000;
const GONE_WITHIN_MS = 30_000;

export interface EvictionInput {
  thresholds: readonly Threshold[];
  transitionMs: number;
  /** evictionMaxPodGracePeriod. */
  maxGraceSeconds: number;
  /** As the incarnation before left it. */
  ledger: EvictionLedger;
  /** Pods are held to the limits of what they may write. */
  limits: boolean;
}
/** What comes with each event. */
export interface EvictionFacts extends Moment {
  /** Pods that run and may be evicted. */
  readonly candidates: readonly Pod[];
  readonly records: ReadonlyMap<string, PodRecord> | undefined;
  /** As far as the runtime has told. */
  readonly layout: DiskLayout;
}
/** A threshold about memory was crossed since the last look. */
export type EvictionMachineEvent = { type: 'memory.crossed' } | LookDue;

/** A pod to evict, why, and what is said of it. */
export interface Victim {
  pod: Pod;
  met: Met;
  message: string;
  graceSeconds: number;
}
/** A pod that wrote more than it may. */
export interface Offender {
  pod: Pod;
  exceeded: Exceeded;
}
export interface EvictionContext extends EvictionInput {
  /** When pods were last held to their limits. */
  limitsMs: number;
  observations: Observations;
  last: Pass;
  /** What nobody needs was collected in this round. */
  collected: boolean;
  victim: Victim | null;
  sinceMs: number;
  error: string | null;
}
export type Measured = ReadonlyMap<string, PodUsage>;

function dueOf({ last }: EvictionContext): Met | undefined {
  return last.due[0];
}
function victimOf(context: EvictionContext, candidates: readonly Pod[], usage: Measured): Victim | null {
  const met = dueOf(context);
  if (met === undefined) return null;
  const [pod] = rank(candidates, usage, SIGNAL_FACTS[met.threshold.signal].resource);
  if (pod === undefined) return null;
  return {
    pod,
    met,
    message: evictionMessage(pod, usage.get(pod.metadata.uid), met),
    graceSeconds: evictionGraceSeconds(pod, met, context.maxGraceSeconds),
  };
}
/** Nothing of this pod runs any more, and what it took is released. */
function isGone(record: PodRecord | undefined): boolean {
  if (record === undefined) return true;
  // Not told yet; or a pod manager that began anew knows nothing of it, and the pod is judged again when the wait is over.
  if (evictionOf(record) === null) return false;
  return record.worker?.phase === 'finished';
}
function pressuresText(pressures: readonly NodePressure[], met: readonly Met[]): string {
  if (pressures.length === 0) return 'there is enough of everything that has a threshold';
  return `${pressures.join(', ')}: ${met.length === 0 ? 'over, and said until the transition period has passed' : met.map(metText).join('; ')}`;
}

const { setup, facts } = setupWith<EvictionFacts>();

/** Without thresholds, only pods with limits of what they may write are looked at. */
export function isLookDue({ thresholds, limits, limitsMs }: EvictionContext, { candidates, monoMs }: EvictionFacts): boolean {
  return thresholds.length > 0 || (limits && monoMs - limitsMs >= LIMITS_EVERY_MS && candidates.some(hasStorageLimits));
}

function garbage(context: EvictionContext): Garbage {
  const met = dueOf(context);
  return met === undefined ? NO_GARBAGE : garbageOf(facts().layout, met.threshold.signal);
}

export const evictionMachine = setup({
  types: { context: {} as EvictionContext, input: {} as EvictionInput, events: {} as EvictionMachineEvent },
  actors: {
    observe: unprovided<Observations>(),
    /** See {@link isLookDue}. */
    lookout: unprovidedLookout(),
    /** Tells when memory crosses a threshold that `last` did not find met. */
    watchMemory: unprovidedCallback<EvictionMachineEvent, { last: Pass }>(),
    /** Finds pods that wrote more than they may. Rejects where the runtime does not say what containers wrote. */
    checkLimits: unprovided<readonly Offender[]>(),
    /** Resolves when the images that nobody uses are gone, or could not be removed: the next look tells whether it helped. */
    freeImages: unprovided<void, { met: Met | undefined }>(),
    /** What each candidate uses of the resource that is short. Rejects where the runtime does not say. */
    measure: unprovided<Measured, { met: Met | undefined }>(),
  },
  actions: {
    judge: assign(({ context }): Partial<EvictionContext> => {
      const { ledger, observations, transitionMs } = context;
      const thresholds = withLayers(context.thresholds, facts().layout);
      const last = pass(ledger, { thresholds, observations, nowMs: facts().monoMs, transitionMs });
      return { last, ledger: last.ledger };
    }),
    publish: unprovidedAction<{ last: Pass }>(),
    /** What is short is about to be reclaimed. */
    sayAttempt: unprovidedAction<{ met: Met | undefined }>(),
    collect: unprovidedAction(),
    choose: assign(({ context }, p: { usage: Measured }) => {
      const { candidates, monoMs } = facts();
      return { victim: victimOf(context, candidates, p.usage), sinceMs: monoMs };
    }),
    /** Asks for the end of this pod. */
    evict: unprovidedAction<{ victim: Victim | null }>(),
    evictOffenders: unprovidedAction<{ offenders: readonly Offender[] }>(),
    sayNobody: unprovidedAction<{ met: Met | undefined }>(),
  },
  guards: {
    limitsDue: ({ context }) => context.limits && facts().monoMs - context.limitsMs >= LIMITS_EVERY_MS,
    anyOffender: (_, p: { offenders: readonly Offender[] }) => p.offenders.length > 0,
    nothingDue: ({ context }) => dueOf(context) === undefined,
    deadCollectable: ({ context }) => !context.collected && garbage(context).containers,
    imagesCollectable: ({ context }) => !context.collected && garbage(context).images,
    nobody: () => facts().candidates.length === 0,
    someone: ({ context }, p: { usage: Measured }) => victimOf(context, facts().candidates, p.usage) !== null,
    gone: ({ context: { victim } }) => victim === null || isGone(facts().records?.get(victim.pod.metadata.uid)),
    waitedEnough: ({ context }) => facts().monoMs - context.sinceMs >= GONE_WITHIN_MS,
  },
}).createMachine({
  id: 'eviction',
  meta: projecting<EvictionContext>(({ last, thresholds, victim, collected, error }) => ({
    pressures: names(last.pressures),
    met: some(last.met, metText),
    thresholds: some(thresholds, ({ signal }) => signal),
    ...{ victim: victim === null ? null : podName(victim.pod), collected, error },
  })),
  context: ({ input }) => ({
    ...input,
    limitsMs: Number.NEGATIVE_INFINITY,
    observations: new Map(),
    last: { ledger: input.ledger, pressures: [], met: [], due: [] },
    collected: false,
    victim: null,
    sinceMs: 0,
    error: null,
  }),
  initial: 'observing',
  states: {
    observing: {
      meta: { reason: 'Observing', message: 'reading how much memory, disk and process ids are left' },
      invoke: {
        src: 'observe',
        onDone: [
          {
            guard: 'limitsDue',
            target: 'checkingLimits',
            actions: assign(({ event }) => ({ observations: event.output, error: null })),
          },
          { target: 'judging', actions: assign(({ event }) => ({ observations: event.output, error: null })) },
        ],
      },
    },
    checkingLimits: {
      meta: { reason: 'CheckingLimits', message: 'measuring what pods with storage limits have written' },
      entry: [assign(() => ({ limitsMs: facts().monoMs }))],
      invoke: {
        src: 'checkLimits',
        onDone: [
          // What they free shows at the next look only.
          {
            guard: { type: 'anyOffender', params: ({ event }) => ({ offenders: event.output }) },
            target: 'resting',
            actions: [{ type: 'evictOffenders', params: ({ event }) => ({ offenders: event.output }) }],
          },
          { target: 'judging' },
        ],
        onError: {
          target: 'judging',
          actions: assign(({ event }) => ({ error: messageOf(event.error) })),
        },
      },
    },
    judging: {
      meta: { reason: 'Judging', message: 'comparing what is left with the thresholds' },
      entry: ['judge', { type: 'publish', params: ({ context }) => ({ last: context.last }) }],
      always: [
        { guard: 'nothingDue', target: 'resting' },
        {
          guard: 'deadCollectable',
          target: 'collecting',
          actions: [{ type: 'sayAttempt', params: ({ context }) => ({ met: dueOf(context) }) }],
        },
        {
          guard: 'imagesCollectable',
          target: 'freeingImages',
          actions: [{ type: 'sayAttempt', params: ({ context }) => ({ met: dueOf(context) }) }],
        },
        { guard: 'nobody', target: 'resting', actions: [{ type: 'sayNobody', params: ({ context }) => ({ met: dueOf(context) }) }] },
        { target: 'measuring' },
      ],
    },
    collecting: {
      meta: { reason: 'Collecting', message: 'dead containers are removed before a pod is evicted for its disk' },
      entry: ['collect', assign({ collected: true })],
      after: { [COLLECT_MS]: { target: 'freeingImages' } },
    },
    freeingImages: {
      meta: { reason: 'FreeingImages', message: 'images that nobody uses are removed before a pod is evicted for its disk' },
      entry: [assign({ collected: true })],
      invoke: { src: 'freeImages', input: ({ context }) => ({ met: dueOf(context) }), onDone: { target: 'observing' } },
    },
    measuring: {
      meta: { reason: 'Measuring', message: 'asking the runtime which pods use most of what is short' },
      entry: [{ type: 'sayAttempt', params: ({ context }) => ({ met: context.collected ? undefined : dueOf(context) }) }],
      invoke: {
        src: 'measure',
        input: ({ context }) => ({ met: dueOf(context) }),
        onDone: [
          {
            guard: { type: 'someone', params: ({ event }) => ({ usage: event.output }) },
            target: 'awaitingEnd',
            actions: [
              { type: 'choose', params: ({ event }) => ({ usage: event.output }) },
              { type: 'evict', params: ({ context }) => ({ victim: context.victim }) },
            ],
          },
          { target: 'resting' },
        ],
        onError: {
          target: 'resting',
          actions: assign(({ event }) => ({ error: messageOf(event.error) })),
        },
      },
    },
    awaitingEnd: {
      meta: {
        reason: 'Evicting',
        message: ({ victim }: EvictionContext) =>
          victim === null ? '' : `waiting until pod ${victim.pod.metadata.namespace}/${victim.pod.metadata.name} has ended`,
      },
      entry: [assign({ collected: false })],
      after: {
        [GONE_EVERY_MS]: [
          { guard: 'gone', target: 'observing' },
          { guard: 'waitedEnough', target: 'observing' },
          { target: 'awaitingEnd', reenter: true },
        ],
      },
    },
    resting: {
      meta: {
        reason: ({ last, error }: EvictionContext) =>
          error !== null ? 'MeasureFailed' : last.pressures.length === 0 ? 'Idle' : 'UnderPressure',
        message: ({ last, error }: EvictionContext) =>
          `${pressuresText(last.pressures, last.met)}${error === null ? '' : `; nobody is evicted before the runtime says what pods use: ${error}`}`,
      },
      entry: [assign({ collected: false, victim: null })],
      invoke: [
        { src: 'watchMemory', input: ({ context }) => ({ last: context.last }) },
        { src: 'lookout', input: { everyMs: LOOK_EVERY_MS } },
      ],
      on: { 'memory.crossed': { target: 'observing' }, 'look.due': { target: 'observing' } },
    },
  },
});
