/**
 * Statechart of the kubelet's PodConfig: it turns the complete sets of the sources into operations, in one total order. What it
 * sends is given with `provide`.
 */
import { assign, enqueueActions, setup } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import { fullName } from '../../pod/names.ts';
import type { ListedPod, SourceName } from '../../pod/runtime/seen.ts';
import { quoted } from '../../text/errorList.ts';
import { carrying, factsOf } from '../../xstate/facts.ts';
import { names, projecting, some } from '../../xstate/projection.ts';
import { keptPods } from './kept.ts';
import { type Duplicate, emptyPodStorage, type MergeResult, mergeSet, type PodOperation, type PodStorage } from './merge.ts';
import type { ConfigEvent, SourceError } from './messages.ts';
import { type TakeoverResult, takeOver } from './takeover.ts';

const LISTING_LOOK_MS = 20;

export type SetEvent = Extract<ConfigEvent, { type: 'source.set' }>;
type AgainEvent = Extract<ConfigEvent, { type: 'pods.again' }>;

export interface PodConfigInput {
  /** The configured sources: it waits until each has delivered a set. */
  sources: readonly SourceName[];
  /** How long the first sets wait for the runtime's first listing; 0: not at all. */
  listingWaitMs: number;
}
/** What comes with each event. */
export interface PodConfigFacts {
  readonly wallMs: number;
  /** Of the runtime. */
  readonly listing: ReadonlyMap<string, ListedPod> | undefined;
  /** Pods of the event that are set aside, with the shell that stands for each. */
  readonly aside: ReadonlyMap<Pod, Pod>;
}
export interface PodConfigContext extends PodConfigInput {
  storage: PodStorage;
  errors: ReadonlyMap<SourceName, readonly SourceError[]>;
  /** What the handling of the present event sends on. */
  result: (MergeResult & { event: SetEvent; again?: boolean }) | null;
  /** Refused twins by source, as `uid of the refused/uid of the winner`: each is reported once. */
  twins: ReadonlyMap<SourceName, ReadonlySet<string>>;
  /** Errors of the present event that were not there before, or differ. */
  news: readonly SourceError[];
  /** UIDs that manifests took over from pods the runtime held already. */
  aliases: ReadonlyMap<string, string>;
  taken: TakeoverResult | null;
  /** Sets that wait for the first listing, newest per source. */
  held: ReadonlyMap<SourceName, SetEvent>;
  /** Newest sets with a pod whose UID another source holds: looked at again when that source lets pods go. */
  contested: ReadonlyMap<SourceName, SetEvent>;
}

const facts = (event: object): PodConfigFacts => factsOf<PodConfigFacts>(event);

/** Pods that are not taken because of their names; `fullName` gives a removal its reason. */
function refusals(result: PodConfigContext['result'] | undefined): SourceError[] {
  return (result?.unsafe ?? []).map(({ pod, message }) => {
    const name = fullName(pod);
    return {
      where: `pod ${quoted(`${pod.metadata.namespace}/${pod.metadata.name}`)}`,
      message: `${message}; it is not run`,
      fullName: name,
    };
  });
}

function twinKey(d: Duplicate): string {
  return `${d.pod.metadata.uid}/${d.winner.metadata.uid}`;
}

function newErrors(before: readonly SourceError[], now: readonly SourceError[]): SourceError[] {
  const known = new Map<string, Set<string>>();
  for (const { where, message } of before) known.set(where, (known.get(where) ?? new Set()).add(message));
  return now.filter((e) => known.get(e.where)?.has(e.message) !== true);
}

function takeErrors(context: PodConfigContext, event: Exclude<ConfigEvent, AgainEvent>): Pick<PodConfigContext, 'errors' | 'news'> {
  return {
    errors: new Map(context.errors).set(event.source, event.errors),
    news: newErrors(context.errors.get(event.source) ?? [], event.errors),
  };
}

/** The same pods, save that a shell stands for each that is set aside. */
function shelled(event: SetEvent): readonly Pod[] {
  const { aside } = facts(event);
  return aside.size === 0 ? event.pods : event.pods.map((pod) => aside.get(pod) ?? pod);
}

function keptSoFar({ errors, storage }: PodConfigContext, source: SourceName, listing: PodConfigFacts['listing']): Map<string, ListedPod> {
  const kept = keptPods(listing?.values() ?? [], source, errors.get(source) ?? []);
  return new Map(kept.filter(({ uid }) => storage.pods.get(source)?.has(uid) !== true).map((pod) => [pod.uid, pod]));
}

function taken(context: PodConfigContext, event: SetEvent): Partial<PodConfigContext> {
  const now = facts(event);
  // A source's first word meets what another agent, or an earlier life of this one, left running; a later one what was kept.
  const listing = context.storage.seen.has(event.source) ? keptSoFar(context, event.source, now.listing) : now.listing;
  const over = takeOver({ pods: shelled(event), listing: listing ?? new Map(), aliases: context.aliases });
  const set = { ...event, pods: over.pods };
  const result = mergeSet(context.storage, { source: set.source, pods: set.pods, nowWallMs: now.wallMs });
  const reported = context.twins.get(event.source);
  const contested = new Map(context.contested);
  if (result.duplicates.some((d) => d.holder !== event.source)) contested.set(event.source, { ...event, pods: shelled(event) });
  else contested.delete(event.source);
  const duplicates = result.duplicates.filter((d) => reported?.has(twinKey(d)) !== true);
  return {
    storage: result.state,
    twins: new Map(context.twins).set(event.source, new Set(result.duplicates.map(twinKey))),
    taken: over,
    aliases: over.aliases,
    result: { ...result, duplicates, event: set },
    contested,
  };
}

/** Nothing of what the source wants changes: its pods go and come once more. */
function again({ storage }: PodConfigContext, event: AgainEvent): PodConfigContext['result'] {
  const { source, causes } = event;
  const pods = event.uids.flatMap((uid) => storage.pods.get(source)?.get(uid)?.pod ?? []);
  if (pods.length === 0) return null;
  const ops = (['REMOVE', 'ADD'] as const).map((op): PodOperation => ({ op, source, pods }));
  const set: SetEvent = { type: 'source.set', source, pods: [], errors: [], ...(causes === undefined ? {} : { causes }) };
  return { state: storage, ops, duplicates: [], unsafe: [], event: set, again: true };
}

export const podConfigMachine = setup({
  types: { context: {} as PodConfigContext, events: {} as ConfigEvent, input: {} as PodConfigInput },
  actions: {
    /** Sends what the event came to. */
    send: () => {},
    take: assign(({ context, event }): Partial<PodConfigContext> => {
      if (event.type === 'pods.again') return { result: again(context, event), news: [], taken: null };
      if (event.type === 'source.errors') return { ...takeErrors(context, event), result: null, taken: null };
      const set = taken(context, event);
      return { ...takeErrors(context, { ...event, errors: [...event.errors, ...refusals(set.result)] }), ...set };
    }),
    /** What another source held may be free now. */
    lookAgain: enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'source.set' || context.result?.ops.some((o) => o.op === 'REMOVE') !== true) return;
      for (const [source, set] of context.contested) if (source !== event.source) enqueue.raise(carrying(event, set));
    }),
    hold: assign(({ context, event }) =>
      event.type === 'source.set' ? { held: new Map(context.held).set(event.source, { ...event, pods: shelled(event) }) } : {},
    ),
    release: enqueueActions(({ context, event, enqueue }) => {
      for (const set of context.held.values()) enqueue.raise(carrying(event, set));
      enqueue.assign({ held: new Map() });
    }),
  },
  guards: {
    nothingConfigured: ({ context }) => context.sources.length === 0,
    waitsForNoListing: ({ context }) => context.listingWaitMs === 0,
    listed: ({ event }) => facts(event).listing !== undefined,
    completes: ({ context: { storage, sources }, event }) =>
      event.type === 'source.set' && sources.every((s) => s === event.source || storage.seen.has(s)),
  },
  delays: { listingWait: ({ context }) => context.listingWaitMs },
}).createMachine({
  id: 'config',
  meta: projecting<PodConfigContext>(({ sources, storage, errors, aliases, held }) => ({
    sources: names(sources),
    delivered: names(storage.seen),
    pods: some(storage.pods, ([source, pods]) => `${source}: ${pods.size}`),
    errors: some(errors, ([source, of]) => `${source}: ${of.length}`),
    held: names(held.keys()),
    takenOver: aliases.size,
  })),
  context: ({ input }) => ({
    ...input,
    storage: emptyPodStorage,
    errors: new Map(),
    twins: new Map(),
    result: null,
    news: [],
    aliases: new Map(),
    taken: null,
    held: new Map(),
    contested: new Map(),
  }),
  initial: 'beginning',
  on: { 'source.errors': { actions: ['take', 'send'] }, 'pods.again': { actions: ['take', 'send'] } },
  states: {
    beginning: {
      always: [
        { guard: 'nothingConfigured', target: 'complete' },
        { guard: 'waitsForNoListing', target: 'waiting' },
        { target: 'waitingForListing' },
      ],
    },
    waitingForListing: {
      meta: {
        reason: 'WaitingForListing',
        message: 'pods wait a moment for the first listing of the runtime: one that runs already is taken over, not started again',
      },
      initial: 'looking',
      after: { listingWait: { target: 'waiting' } },
      exit: ['release'],
      // Held first in any case: exit actions run before those of a transition, so one that left here would hold it for good.
      on: { 'source.set': { actions: ['hold'] } },
      states: {
        looking: {
          always: { guard: 'listed', target: '#config.waiting' },
          after: { [LISTING_LOOK_MS]: { target: 'looking', reenter: true } },
        },
      },
    },
    waiting: {
      meta: { reason: 'WaitingForSources', message: 'some configured pod source has not delivered its pods yet' },
      on: {
        'source.set': [
          { guard: 'completes', target: 'complete', actions: ['take', 'send', 'lookAgain'] },
          { actions: ['take', 'send', 'lookAgain'] },
        ],
      },
    },
    complete: {
      meta: { reason: 'AllSourcesSeen', message: 'every configured pod source has delivered its pods' },
      on: { 'source.set': { actions: ['take', 'send', 'lookAgain'] } },
    },
  },
});
