/**
 * Statechart of the kubelet's PodConfig: it turns the complete sets of the sources into operations, in one total order. Its
 * actor provides `deliver`.
 */
import { assign } from 'xstate';
import type { Pod } from '../../kube/types.ts';
import { fullName } from '../../pod/names.ts';
import type { ListedPod, SourceName } from '../../pod/runtime/seen.ts';
import { quoted } from '../../text/errorList.ts';
import { names, projecting, some } from '../../xstate/projection.ts';
import { unprovidedAction } from '../../xstate/provide.ts';
import { setupWith } from '../../xstate/setup.ts';
import { keptPods } from './kept.ts';
import { asTheKubelet, type KubeletUids } from './kubeletUids.ts';
import { type Duplicate, emptyPodStorage, type MergeResult, mergeSet, type PodOperation, type PodStorage } from './merge.ts';
import type { ConfigEvent, SourceError } from './messages.ts';
import { type TakeoverResult, takeOver } from './takeover.ts';

const LISTING_LOOK_MS = 20;

export type SetEvent = Extract<ConfigEvent, { type: 'source.set' }>;
type AgainEvent = Extract<ConfigEvent, { type: 'pods.again' }>;

interface PodConfigInput {
  /** The configured sources: it waits until each has delivered a set. */
  sources: readonly SourceName[];
  /** How long the first sets wait for the runtime's first listing; 0: not at all. */
  listingWaitMs: number;
}
/** What comes with each event. */
export interface PodConfigFacts {
  readonly wallMs: number;
  /** The runtime's listing. */
  readonly listing: ReadonlyMap<string, ListedPod> | undefined;
  /** Pods of the event that are set aside, with the shell that stands for each. */
  readonly aside: ReadonlyMap<Pod, Pod>;
  /** Beside another kubelet: the UIDs of its static pods. Null: this node is the kubelet. */
  readonly kubeletUids: KubeletUids | null;
}
export interface PodConfigContext extends PodConfigInput {
  storage: PodStorage;
  errors: ReadonlyMap<SourceName, readonly SourceError[]>;
  /** Refused twins by source, as `uid of the refused/uid of the winner`: each is reported once. */
  twins: ReadonlyMap<SourceName, ReadonlySet<string>>;
  /** UIDs that manifests took over from pods the runtime held already. */
  aliases: ReadonlyMap<string, string>;
  /** Sets that wait for the first listing, newest per source. */
  held: ReadonlyMap<SourceName, SetEvent>;
  /** Newest sets with a pod whose UID another source holds: looked at again when that source lets pods go. */
  contested: ReadonlyMap<SourceName, SetEvent>;
  /** Beside another kubelet: the newest sets of static pods, as their source gives them. */
  observed: ReadonlyMap<SourceName, SetEvent>;
}

type Merged = MergeResult & { event: SetEvent; again?: boolean };
/** What one event leads to. */
export interface Delivery {
  /** Pods as they were. */
  before: PodStorage;
  /** Pods and errors as they are now. */
  storage: PodStorage;
  errors: PodConfigContext['errors'];
  /** Errors that were not there before, or differ. */
  news: readonly SourceError[];
  /** Null: the event brought errors alone. */
  result: Merged | null;
  taken: TakeoverResult | null;
}
type Step = Pick<Delivery, 'news' | 'result' | 'taken'> & { next: Partial<PodConfigContext> };

const { setup, facts } = setupWith<PodConfigFacts>();

/** Pods that are not taken because of their names; `fullName` gives a removal its reason. */
function refusals(result: MergeResult): SourceError[] {
  return result.unsafe.map(({ pod, message }) => {
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

function takeErrors(context: PodConfigContext, source: SourceName, errors: readonly SourceError[]): Step {
  const before = context.errors.get(source);
  return {
    next: before?.length === 0 && errors.length === 0 ? {} : { errors: new Map(context.errors).set(source, errors) },
    news: newErrors(before ?? [], errors),
    result: null,
    taken: null,
  };
}

/** The same pods, save that a shell stands for each that is set aside. */
function shelled(event: SetEvent): readonly Pod[] {
  const { aside } = facts();
  return aside.size === 0 ? event.pods : event.pods.map((pod) => aside.get(pod) ?? pod);
}

function keptSoFar({ errors, storage }: PodConfigContext, source: SourceName, listing: PodConfigFacts['listing']): Map<string, ListedPod> {
  const kept = keptPods(listing?.values() ?? [], source, errors.get(source) ?? []);
  return new Map(kept.filter(({ uid }) => storage.pods.get(source)?.has(uid) !== true).map((pod) => [pod.uid, pod]));
}

function takeSet(context: PodConfigContext, event: SetEvent): Step {
  const now = facts();
  // A source's first word meets what another agent, or an earlier life of this one, left running; a later one what was kept.
  const listing = context.storage.seen.has(event.source) ? keptSoFar(context, event.source, now.listing) : now.listing;
  const { aliases } = context;
  const follows = now.kubeletUids !== null && event.source !== 'api';
  const over: TakeoverResult = follows
    ? { ...asTheKubelet(shelled(event), { uids: now.kubeletUids, aliases }), adopted: [], predecessors: [] }
    : takeOver({ pods: shelled(event), listing: listing ?? new Map(), aliases });
  const set = { ...event, pods: over.pods };
  const result = mergeSet(context.storage, { source: set.source, pods: set.pods, nowWallMs: now.wallMs });
  const reported = context.twins.get(event.source);
  const contested = new Map(context.contested);
  if (result.duplicates.some((d) => d.holder !== event.source)) contested.set(event.source, { ...event, pods: shelled(event) });
  else contested.delete(event.source);
  const duplicates = result.duplicates.filter((d) => reported?.has(twinKey(d)) !== true);
  const { next, news } = takeErrors(context, event.source, [...event.errors, ...refusals(result)]);
  return {
    next: {
      ...next,
      storage: result.state,
      twins: new Map(context.twins).set(event.source, new Set(result.duplicates.map(twinKey))),
      aliases: over.aliases,
      contested,
      ...(follows ? { observed: new Map(context.observed).set(event.source, event) } : {}),
    },
    news,
    result: { ...result, duplicates, event: set },
    taken: over,
  };
}

/** Nothing of what the source wants changes: its pods go and come once more. */
function again({ storage }: PodConfigContext, event: AgainEvent): Merged | null {
  const { source, causes } = event;
  const pods = event.uids.flatMap((uid) => storage.pods.get(source)?.get(uid)?.pod ?? []);
  if (pods.length === 0) return null;
  const ops = (['REMOVE', 'ADD'] as const).map((op): PodOperation => ({ op, source, pods }));
  const set: SetEvent = { type: 'source.set', source, pods: [], errors: [], ...(causes === undefined ? {} : { causes }) };
  return { state: storage, ops, duplicates: [], unsafe: [], event: set, again: true };
}

/** Sets of which a pod has another UID by now. */
function renamedSets({ observed, storage, aliases }: PodConfigContext): SetEvent[] {
  const { kubeletUids: uids } = facts();
  if (uids === null) return [];
  return [...observed.values()].filter(({ source, pods }) => {
    const stored = storage.pods.get(source);
    return asTheKubelet(pods, { uids, aliases }).pods.some((pod) => stored?.has(pod.metadata.uid) !== true);
  });
}

function stepOf(context: PodConfigContext, event: Exclude<ConfigEvent, { type: 'uids.look' }>): Step {
  if (event.type === 'source.set') return takeSet(context, event);
  if (event.type === 'source.errors') return takeErrors(context, event.source, event.errors);
  return { next: {}, news: [], result: again(context, event), taken: null };
}

const effects = setup({
  types: { context: {} as PodConfigContext, events: {} as ConfigEvent, input: {} as PodConfigInput },
  /** Sends it to the pod manager, with events about it. */
  actions: { deliver: unprovidedAction<Delivery>() },
});

export const podConfigMachine = effects
  .extend({
    actions: {
      take: effects.enqueueActions(({ context, event, enqueue }) => {
        if (event.type === 'uids.look') return;
        const { next, ...step } = stepOf(context, event);
        const { storage, errors, contested } = { ...context, ...next };
        enqueue.assign(next);
        enqueue({ type: 'deliver', params: { ...step, before: context.storage, storage, errors } });
        if (event.type !== 'source.set' || step.result?.ops.some((o) => o.op === 'REMOVE') !== true) return;
        // What another source held may be free now.
        for (const [source, set] of contested) if (source !== event.source) enqueue.raise(set);
      }),
      followUids: effects.enqueueActions(({ context, enqueue }) => {
        for (const set of renamedSets(context)) enqueue.raise(set);
      }),
      hold: assign(({ context, event }) =>
        event.type === 'source.set' ? { held: new Map(context.held).set(event.source, { ...event, pods: shelled(event) }) } : {},
      ),
      release: effects.enqueueActions(({ context, enqueue }) => {
        for (const set of context.held.values()) enqueue.raise(set);
        enqueue.assign({ held: new Map() });
      }),
    },
    guards: {
      nothingConfigured: ({ context }) => context.sources.length === 0,
      waitsForNoListing: ({ context }) => context.listingWaitMs === 0,
      listed: () => facts().listing !== undefined,
      completes: ({ context: { storage, sources }, event }) =>
        event.type === 'source.set' && sources.every((s) => s === event.source || storage.seen.has(s)),
    },
    delays: { listingWait: ({ context }) => context.listingWaitMs },
  })
  .createMachine({
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
      aliases: new Map(),
      held: new Map(),
      contested: new Map(),
      observed: new Map(),
    }),
    initial: 'beginning',
    on: { 'source.errors': { actions: ['take'] }, 'pods.again': { actions: ['take'] } },
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
          'uids.look': { actions: ['followUids'] },
          'source.set': [{ guard: 'completes', target: 'complete', actions: ['take'] }, { actions: ['take'] }],
        },
      },
      complete: {
        meta: { reason: 'AllSourcesSeen', message: 'every configured pod source has delivered its pods' },
        on: { 'source.set': { actions: ['take'] }, 'uids.look': { actions: ['followUids'] } },
      },
    },
  });
