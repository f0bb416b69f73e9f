/**
 * podConfig: turns the complete sets of the sources into operations, in one total order, and sends them to the pod manager.
 *
 * State held: per source the pods last delivered, which sources have delivered, what is wrong with each source.
 * Lost on restart: all of it; the UIDs that manifests took over are found again in the runtime.
 * Rebuilt from: the sources, which restart after this actor (rest_for_one) and post their sets again. A fresh one
 * emits ADD for every pod, so everything downstream tolerates repeats. The pod manager removes what the complete set lacks.
 */

import { apiView } from '../../../machines/api/messages.ts';
import { eventsAddr } from '../../../machines/foundation/messages.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { byCreation, fullName, type PodRef, podRef } from '../../../machines/pod/names.ts';
import type { ListedPod, SourceName } from '../../../machines/pod/runtime/seen.ts';
import { shellOf } from '../../../machines/pod/setAside.ts';
import { type PodOpEvent, podManagerAddr } from '../../../machines/pods/manager/messages.ts';
import { keptPods, keptText } from '../../../machines/pods/podConfig/kept.ts';
import { kubeletUids } from '../../../machines/pods/podConfig/kubeletUids.ts';
import type { PodOperation, PodStorage } from '../../../machines/pods/podConfig/merge.ts';
import { type ConfigEvent, podConfigAddr, type SourceError, sourceErrorsView } from '../../../machines/pods/podConfig/messages.ts';
import { type Delivery, type PodConfigFacts, podConfigMachine, type SetEvent } from '../../../machines/pods/podConfig/podConfigMachine.ts';
import { runtimePodsView } from '../../../machines/runtime/pleg/messages.ts';
import { because, type Cause, joinCauses } from '../../../machines/supervision/address.ts';
import { enumerated } from '../../../machines/text/errorList.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { Handling } from '../../../ports/handling.ts';
import type { ActorCtx, ActorSpec } from '../../supervision/types.ts';

export interface ConfigOptions {
  /** The configured sources: podConfig says that it waits until each has delivered a set. */
  sources: readonly SourceName[];
  /** How long the first sets wait for the runtime's first listing; 0: not at all. Default {@link LISTING_WAIT_MS}. */
  listingWaitMs?: number;
}

/** Without a runtime nothing can start anyway; after this the pods are shown all the same. */
const LISTING_WAIT_MS = 3_000;

/** Pods in one message to the pod manager, whose step takes all of it: to judge so many takes some 10 ms. */
const OP_PODS_MAX = 128;

/** Pods that run on although this document cannot be used. */
function keptFor(ctx: ActorCtx<ConfigEvent>, { errors, storage }: Delivery, error: SourceError): PodRef[] {
  const source = [...errors].find(([, of]) => of.includes(error))?.[0];
  if (source === undefined || error.holds === undefined) return [];
  const listed = ctx.registry.read(runtimePodsView)?.value.pods.values() ?? [];
  const unknown = [...listed].filter(({ uid }) => storage.pods.get(source)?.has(uid) !== true);
  return keptPods(unknown, source, [error]).map(({ uid, name, namespace }) => ({ uid, name, namespace }));
}

function podsByName(storage: PodStorage): Map<string, Pod> {
  const pods = new Map<string, Pod>();
  for (const stored of storage.pods.values()) for (const s of stored.values()) pods.set(s.fullName, s.pod);
  return pods;
}

/** Sends what one event came to: events about errors first, so that a removal is announced before it happens. */
function deliver(ctx: ActorCtx<ConfigEvent>, delivery: Delivery): void {
  const { before, result, taken } = delivery;
  ctx.publish(sourceErrorsView, delivery.errors);
  const warn = (message: string, pod?: Pod | PodRef, reason = 'FailedValidation') => {
    ctx.registry.send(eventsAddr, {
      type: 'event.record',
      event: { type: 'Warning', reason, message, ...(pod === undefined ? {} : { pod: 'uid' in pod ? pod : podRef(pod) }) },
    });
  };
  const podsOf = (storage: PodStorage, of: readonly SourceError[]) =>
    of.some((e) => e.fullName !== undefined) ? podsByName(storage) : new Map<string, Pod>();
  const errorsNow = delivery.news.filter((e) => e.note !== true);
  const known = podsOf(before, errorsNow);
  for (const e of errorsNow) {
    const [kept, ...others] = keptFor(ctx, delivery, e);
    const runsOn = kept === undefined ? '' : `; ${keptText([kept, ...others])}`;
    const only = kept !== undefined && others.length === 0 ? kept : undefined;
    warn(`${e.where}: ${e.message}${runsOn}`, e.fullName === undefined ? only : known.get(e.fullName));
  }
  // One event for each manifest.
  const notes = Map.groupBy(
    delivery.news.filter((e) => e.note === true),
    (e) => e.where,
  );
  const noted = podsOf(delivery.storage, [...notes.values()].flat());
  for (const [where, of] of notes)
    warn(`${where}: ${enumerated(of.map((e) => e.message))}`, noted.get(of[0]?.fullName ?? ''), 'ManifestWarning');
  if (result === null) return;
  const { event } = result;
  for (const d of result.duplicates) {
    const what = d.same === 'name' ? `the name ${d.pod.metadata.namespace}/${d.pod.metadata.name}` : `the UID ${d.pod.metadata.uid}`;
    const whose = d.holder === event.source ? 'the same source' : `source ${d.holder}`;
    const message = `source ${event.source}: pod ${d.winner.metadata.namespace}/${d.winner.metadata.name} (uid ${d.winner.metadata.uid}) of ${whose} has ${what}; pod ${d.pod.metadata.namespace}/${d.pod.metadata.name} is ignored`;
    ctx.log.warn({ source: event.source, uid: d.pod.metadata.uid }, message);
    warn(message, d.pod);
  }
  for (const { pod, from } of taken?.adopted ?? []) {
    const message = `runs already in the runtime, started from the same definition: taken over with its UID (this node would have given ${from})`;
    ctx.log.info({ source: event.source, uid: pod.metadata.uid, pod: fullName(pod) }, message);
    const record = { type: 'Normal' as const, reason: 'TakenOver', message, pod: podRef(pod) };
    ctx.registry.send(eventsAddr, { type: 'event.record', event: record });
  }
  const complete = result.ops.length === 0 ? [] : [...(result.state.pods.get(event.source)?.keys() ?? [])];
  const first = !before.seen.has(event.source);
  const errors = result.again === true ? [] : (delivery.errors.get(event.source) ?? []);
  const predecessors = taken?.predecessors ?? [];
  for (const op of result.ops) sendOp(ctx, op, { event, errors, complete, first, predecessors, warn });
}

function sendOp(
  ctx: ActorCtx<ConfigEvent>,
  op: PodOperation,
  of: {
    event: SetEvent;
    errors: readonly SourceError[];
    complete: readonly string[];
    first: boolean;
    predecessors: readonly ListedPod[];
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
  const first = of.first && op.op === 'ADD';
  // The oldest are admitted first, whatever part they come in.
  const pods = op.op === 'ADD' ? [...op.pods].sort(byCreation) : op.pods;
  const head = { type: 'pods.op', op: op.op, source: op.source, causes, ...(first ? { first } : {}) } as const;
  const once = {
    complete: of.complete,
    ...(op.op === 'ADD' && (first || of.predecessors.length > 0) ? { predecessors: of.predecessors } : {}),
  };
  let sent = ctx.registry.send(podManagerAddr, { ...head, ...once, ...partOf(pods, 0) });
  for (let from = OP_PODS_MAX; from < pods.length; from += OP_PODS_MAX)
    sent = ctx.registry.send(podManagerAddr, { ...head, ...partOf(pods, from) });
  if (sent === 'dead')
    ctx.log.error({ source: op.source, op: op.op }, `the pod manager took no ${op.op} of source ${op.source}: it is not running`);
}

function partOf(pods: readonly Pod[], from: number): Pick<PodOpEvent, 'pods' | 'part'> {
  if (pods.length <= OP_PODS_MAX) return { pods };
  const to = from + OP_PODS_MAX;
  return { pods: pods.slice(from, to), part: from === 0 ? 'begin' : to < pods.length ? 'middle' : 'end' };
}

/** Judges each pod object once: a source posts the same objects again and again. */
function setAside(handling: Handling | undefined): (pods: readonly Pod[]) => ReadonlyMap<Pod, Pod> {
  if (handling === undefined) return () => new Map();
  const judged = new WeakMap<Pod, Pod>();
  return (pods) => {
    const aside = new Map<Pod, Pod>();
    for (const pod of pods) {
      let shown = judged.get(pod);
      if (shown === undefined) {
        const why = handling.podAside(pod);
        shown = why === null ? pod : shellOf(pod, why);
        judged.set(pod, shown);
      }
      if (shown !== pod) aside.set(pod, shown);
    }
    return aside;
  };
}

/** What the machine reads beside its events. */
function factsOf({ ports, registry }: ActorCtx<ConfigEvent>): (event?: object) => PodConfigFacts {
  const aside = setAside(ports.handling);
  const listing = () => registry.read(runtimePodsView)?.value.pods;
  return (event) => ({
    get wallMs() {
      return ports.clock.wallMs();
    },
    get listing() {
      return listing();
    },
    get aside() {
      return aside((event as Partial<SetEvent> | undefined)?.pods ?? []);
    },
    get kubeletUids() {
      if (ports.observer === undefined) return null;
      return kubeletUids(listing()?.values() ?? [], registry.read(apiView.pods)?.value.byUid.values() ?? []);
    },
  });
}

/** A pod of the kubelet is seen in the runtime or in the API: the UID of a static pod may be known by now. */
function followKubelet({ registry, signal }: ActorCtx<ConfigEvent>): void {
  const look = (): void => void registry.send(podConfigAddr, { type: 'uids.look' });
  const watching = [registry.watch(runtimePodsView, look), registry.watch(apiView.pods, look)];
  signal.addEventListener('abort', () => {
    for (const watch of watching) watch[Symbol.dispose]();
  });
}

function joinAgain(prev: ConfigEvent, next: ConfigEvent): ConfigEvent {
  if (prev.type !== 'pods.again' || next.type !== 'pods.again') return next;
  return { ...next, uids: [...new Set([...prev.uids, ...next.uids])] };
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
      key: (e) => (e.type === 'uids.look' ? e.type : e.type === 'pods.again' ? `again ${e.source}` : e.source),
      coalesce: (prev, next) => {
        if (prev.type === 'uids.look' || next.type === 'uids.look') return next;
        const causes = joinCauses(prev.causes, next.causes);
        if (prev.type === 'pods.again' || next.type === 'pods.again') return joinAgain(prev, { ...next, causes });
        if (next.type === 'source.set' || prev.type === 'source.errors') return { ...next, causes };
        return { ...prev, errors: next.errors, causes };
      },
      capacity: 16,
    },
    start: (ctx) => {
      ctx.publish(sourceErrorsView, new Map());
      if (ctx.ports.observer !== undefined) followKubelet(ctx);
      const input = { sources: options.sources, listingWaitMs: options.listingWaitMs ?? LISTING_WAIT_MS };
      return { logic: provided(podConfigMachine, { actions: { deliver: (_, params) => deliver(ctx, params) } }, factsOf(ctx)), input };
    },
  };
}
