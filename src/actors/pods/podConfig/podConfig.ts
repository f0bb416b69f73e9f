/**
 * The mux: turns the complete sets of the sources into operations, in one total order, and hands them to admission.
 *
 * State held: per source the pods last delivered, which sources have delivered, what is wrong with each source.
 * Lost on restart: all of it; the UIDs that manifests took over are found again in the runtime.
 * Rebuilt from: the sources, which restart after this actor (rest_for_one) and post their sets again. A fresh mux
 * emits ADD for every pod, so everything downstream tolerates repeats; pods that the pod manager's view still lists
 * for a source and that its first set lacks are emitted as REMOVE.
 */
import { assign, enqueueActions, setup } from 'xstate';
import type { Pod } from '../../../machines/k8s.ts';
import { type Duplicate, emptyMux, type MergeResult, type MuxOp, type MuxState, mergeSet } from '../../../machines/pods/podConfig/merge.ts';
import { type TakeoverResult, takeOver } from '../../../machines/pods/podConfig/takeover.ts';
import { shellOf } from '../../../machines/pods/setAside.ts';
import { fullName } from '../../../machines/pods/sources/decode.ts';
import type { SourceName } from '../../../machines/pods/types.ts';
import { addr, type ConfigEvent, type ListedPod, type PodRef, type SourceError, view } from '../../../machines/protocol.ts';
import { because, type Cause, joinCauses } from '../../../machines/supervision/address.ts';
import type { Handling } from '../../../ports/handling.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';

export interface ConfigOptions {
  /** The configured sources: the mux says that it waits until each has delivered a set. */
  sources: readonly SourceName[];
  /** How long the first sets wait for the runtime's first listing; 0: not at all. Default {@link LISTING_WAIT_MS}. */
  listingWaitMs?: number;
}

/** Without a runtime nothing can start anyway; after this the pods are shown all the same. */
const LISTING_WAIT_MS = 3_000;
const LISTING_LOOK_MS = 20;

type SetEvent = Extract<ConfigEvent, { type: 'source.set' }>;

interface MuxContext {
  mux: MuxState;
  errors: ReadonlyMap<SourceName, readonly SourceError[]>;
  /** What the handling of the present event sends on. */
  result: (MergeResult & { event: SetEvent }) | null;
  /** Refused twins by source, as `uid of the refused/uid of the winner`: each is reported once. */
  twins: ReadonlyMap<SourceName, ReadonlySet<string>>;
  /** Errors of the present event that were not there before, or differ. */
  news: readonly SourceError[];
  /** UIDs that manifests took over from pods the runtime held already. */
  aliases: ReadonlyMap<string, string>;
  taken: TakeoverResult | null;
  /** Sets that wait for the first listing, newest per source. */
  held: ReadonlyMap<SourceName, SetEvent>;
}

function refOf(pod: Pod): PodRef {
  return { uid: pod.metadata.uid, name: pod.metadata.name, namespace: pod.metadata.namespace };
}

function twinKey(d: Duplicate): string {
  return `${d.pod.metadata.uid}/${d.winner.metadata.uid}`;
}

function newErrors(before: readonly SourceError[], now: readonly SourceError[]): SourceError[] {
  const known = new Map<string, Set<string>>();
  for (const { where, message } of before) known.set(where, (known.get(where) ?? new Set()).add(message));
  return now.filter((e) => known.get(e.where)?.has(e.message) !== true);
}

function takeErrors(context: MuxContext, event: ConfigEvent): Pick<MuxContext, 'errors' | 'news'> {
  return {
    errors: new Map(context.errors).set(event.source, event.errors),
    news: newErrors(context.errors.get(event.source) ?? [], event.errors),
  };
}

/** The state machine of the mux; what it sends is given with `provide`. */
interface MuxInput {
  sources: readonly SourceName[];
  wallMs: () => number;
  strays: (event: SetEvent) => Pod[];
  listing: () => ReadonlyMap<string, ListedPod> | undefined;
  /** The same pods, save that a shell stands for each that is set aside. */
  aside: (pods: readonly Pod[]) => readonly Pod[];
  listingWaitMs: number;
}

function muxMachine(input: MuxInput) {
  const allSeen = (mux: MuxState) => input.sources.every((s) => mux.seen.has(s));
  /** A first set after a restart: pods that only the pod manager still knows leave with it. */
  const merge = (context: MuxContext, event: SetEvent): MergeResult => {
    const merged = mergeSet(context.mux, { source: event.source, pods: event.pods, nowWallMs: input.wallMs() });
    if (context.mux.seen.has(event.source)) return merged;
    const strays = input.strays(event);
    if (strays.length === 0) return merged;
    const remove: MuxOp = { op: 'REMOVE', source: event.source, pods: strays };
    return { ...merged, ops: [remove, ...merged.ops] };
  };
  return setup({
    types: { context: {} as MuxContext, events: {} as ConfigEvent },
    actions: {
      send: () => {},
      take: assign(({ context, event }) => {
        if (event.type === 'source.errors') return { ...takeErrors(context, event), result: null, taken: null };
        // Only a source's first word can meet what another agent, or an earlier life of this one, left running.
        const listing = context.mux.seen.has(event.source) ? undefined : input.listing();
        const pods = input.aside(event.pods);
        const taken = takeOver({ pods, listing: listing ?? new Map(), aliases: context.aliases });
        const set = { ...event, pods: taken.pods };
        const result = merge(context, set);
        const reported = context.twins.get(event.source);
        const duplicates = result.duplicates.filter((d) => reported?.has(twinKey(d)) !== true);
        const twins = new Map(context.twins).set(event.source, new Set(result.duplicates.map(twinKey)));
        return {
          ...takeErrors(context, event),
          mux: result.state,
          twins,
          taken,
          aliases: taken.aliases,
          result: { ...result, duplicates, event: set },
        };
      }),
      hold: assign(({ context, event }) => (event.type === 'source.set' ? { held: new Map(context.held).set(event.source, event) } : {})),
      release: enqueueActions(({ context, enqueue }) => {
        for (const event of context.held.values()) enqueue.raise(event);
        enqueue.assign({ held: new Map() });
      }),
    },
    guards: {
      listed: () => input.listing() !== undefined,
      completes: ({ context, event }) =>
        event.type === 'source.set' && allSeen({ ...context.mux, seen: new Set(context.mux.seen).add(event.source) }),
    },
  }).createMachine({
    id: 'config',
    context: {
      mux: emptyMux,
      errors: new Map(),
      twins: new Map(),
      result: null,
      news: [],
      aliases: new Map(),
      taken: null,
      held: new Map(),
    },
    initial: input.sources.length === 0 ? 'complete' : input.listingWaitMs === 0 ? 'waiting' : 'waitingForListing',
    on: { 'source.errors': { actions: ['take', 'send'] } },
    states: {
      waitingForListing: {
        meta: {
          reason: 'WaitingForListing',
          message: 'pods wait a moment for the first listing of the runtime: one that runs already is taken over, not started again',
        },
        initial: 'looking',
        after: { [input.listingWaitMs]: { target: 'waiting' } },
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
          'source.set': [{ guard: 'completes', target: 'complete', actions: ['take', 'send'] }, { actions: ['take', 'send'] }],
        },
      },
      complete: {
        meta: { reason: 'AllSourcesSeen', message: 'every configured pod source has delivered its pods' },
        on: { 'source.set': { actions: ['take', 'send'] } },
      },
    },
  });
}

function podsByName(mux: MuxState): Map<string, Pod> {
  const pods = new Map<string, Pod>();
  for (const stored of mux.pods.values()) for (const s of stored.values()) pods.set(s.fullName, s.pod);
  return pods;
}

/** Sends what one event came to: events about errors first, so that a removal is announced before it happens. */
function sendOn(ctx: ActorCtx<ConfigEvent>, before: MuxState, context: MuxContext): void {
  const { result } = context;
  ctx.publish(view.sourceErrors, context.errors);
  const warn = (message: string, pod?: Pod) => {
    ctx.registry.send(addr.events, {
      type: 'event.record',
      event: { type: 'Warning', reason: 'FailedValidation', message, ...(pod === undefined ? {} : { pod: refOf(pod) }) },
    });
  };
  const known = context.news.some((e) => e.fullName !== undefined) ? podsByName(before) : new Map<string, Pod>();
  for (const e of context.news) {
    const pod = e.fullName === undefined ? undefined : known.get(e.fullName);
    warn(`${e.where}: ${e.message}`, pod);
  }
  if (result === null) return;
  const { event } = result;
  for (const d of result.duplicates) {
    const what = d.same === 'name' ? `the name ${d.pod.metadata.namespace}/${d.pod.metadata.name}` : `the UID ${d.pod.metadata.uid}`;
    const message = `source ${event.source}: another pod (uid ${d.winner.metadata.uid}) of the same source has ${what}; this one is ignored`;
    ctx.log.warn({ source: event.source, uid: d.pod.metadata.uid }, message);
    warn(message, d.pod);
  }
  for (const { pod, from } of context.taken?.adopted ?? []) {
    const message = `runs already in the runtime, started from the same definition: taken over with its UID (this node would have given ${from})`;
    ctx.log.info({ source: event.source, uid: pod.metadata.uid, pod: fullName(pod) }, message);
    const record = { type: 'Normal' as const, reason: 'TakenOver', message, pod: refOf(pod) };
    ctx.registry.send(addr.events, { type: 'event.record', event: record });
  }
  // Before the new pod of that name: it waits until its predecessor has ended.
  for (const listed of context.taken?.predecessors ?? []) {
    const what = `source ${event.source} holds another definition of ${listed.namespace}/${listed.name} by now`;
    const causes = because(event.causes, { atMs: ctx.ports.clock.wallMs(), by: ctx.path, what });
    const epoch = ctx.registry.read(view.pods)?.value.epoch ?? 1;
    ctx.registry.send(addr.podManager, { type: 'pods.orphan', listed, epoch, causes });
  }
  const complete = result.ops.length === 0 ? [] : [...(result.state.pods.get(event.source)?.keys() ?? [])];
  const first = !before.seen.has(event.source);
  for (const op of result.ops) sendOp(ctx, op, { event, errors: context.errors.get(event.source) ?? [], complete, first, warn });
}

function sendOp(
  ctx: ActorCtx<ConfigEvent>,
  op: MuxOp,
  of: {
    event: SetEvent;
    errors: readonly SourceError[];
    complete: readonly string[];
    first: boolean;
    warn: (message: string, pod: Pod) => void;
  },
): void {
  const atMs = ctx.ports.clock.wallMs();
  let causes: readonly Cause[] = of.event.causes ?? [];
  if (op.op === 'REMOVE') {
    const errors = new Map(of.errors.map((e) => [e.fullName, e]));
    for (const pod of op.pods) {
      const error = errors.get(fullName(pod));
      if (error === undefined) continue;
      const what = `${error.where} stayed unusable (${error.message}), so its pod ${pod.metadata.namespace}/${pod.metadata.name} is removed`;
      of.warn(what, pod);
      causes = because(causes, { atMs, by: ctx.path, what });
    }
  }
  causes = because(causes, {
    atMs,
    by: ctx.path,
    what: `source ${op.source}: ${op.op} of ${op.pods.length} pod${op.pods.length === 1 ? '' : 's'}`,
  });
  const sent = ctx.registry.send(addr.admission, {
    type: 'pods.op',
    op: op.op,
    source: op.source,
    pods: op.pods,
    complete: of.complete,
    ...(of.first && op.op === 'ADD' ? { first: true } : {}),
    causes,
  });
  if (sent === 'dead')
    ctx.log.error({ source: op.source, op: op.op }, `admission took no ${op.op} of source ${op.source}: it is not running`);
}

/** Judges each pod object once: a source posts the same objects again and again. */
function setAside(handling: Handling | undefined): (pods: readonly Pod[]) => readonly Pod[] {
  if (handling === undefined) return (pods) => pods;
  const judged = new WeakMap<Pod, Pod>();
  return (pods) =>
    pods.map((pod) => {
      const known = judged.get(pod);
      if (known !== undefined) return known;
      const why = handling.podAside(pod);
      const taken = why === null ? pod : shellOf(pod, why);
      judged.set(pod, taken);
      return taken;
    });
}

/** `config` under `node/pods`. */
export function configSpec(options: ConfigOptions): ActorSpec<ConfigEvent> {
  return {
    id: 'config',
    type: 'actor',
    restart: 'permanent',
    shutdownMs: 1_000,
    intensity: { max: 5, periodMs: 60_000 },
    backoff: { minMs: 100, maxMs: 5_000, factor: 2, jitter: 0.2 },
    mailbox: {
      // One waiting item per source: the newest set, with the newest word on what is wrong.
      key: (e) => e.source,
      coalesce: (prev, next) => {
        const causes = joinCauses(prev.causes, next.causes);
        if (next.type === 'source.set' || prev.type === 'source.errors') return { ...next, causes };
        return { ...prev, errors: next.errors, causes };
      },
      capacity: 16,
    },
    start: (ctx) => {
      let before = emptyMux;
      ctx.publish(view.sourceErrors, new Map());
      const strays = (event: SetEvent) => {
        const wanted = new Set(event.pods.map((p) => p.metadata.uid));
        const records = ctx.registry.read(view.pods)?.value.records;
        return [...(records?.values() ?? [])]
          .filter((r) => r.source === event.source && !r.removed && !wanted.has(r.pod.metadata.uid))
          .map((r) => r.pod);
      };
      const logic = muxMachine({
        sources: options.sources,
        wallMs: () => ctx.ports.clock.wallMs(),
        strays,
        listing: () => ctx.registry.read(view.runtimePods)?.value.pods,
        aside: setAside(ctx.ports.handling),
        listingWaitMs: options.listingWaitMs ?? LISTING_WAIT_MS,
      }).provide({
        actions: {
          send: ({ context }) => {
            const prior = before;
            before = context.mux;
            sendOn(ctx, prior, context);
          },
        },
      });
      return { logic };
    },
  };
}
