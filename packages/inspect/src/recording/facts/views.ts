/**
 * Which views of a node a recording holds, how each is cut into parts that change on their own, and how it is put together
 * again. Reading it back gives the same answers as the view itself did. Pure.
 */
import { claimStepsView, claimsView } from '@actorlet/kubelet/machines/allocation/claims/messages.ts';
import type { ClaimRecord } from '@actorlet/kubelet/machines/allocation/claims/types.ts';
import { type TopologyDecisions, topologyView } from '@actorlet/kubelet/machines/allocation/coordinator/messages.ts';
import { type CpusView, cpusView } from '@actorlet/kubelet/machines/allocation/cpus/messages.ts';
import { type DevicesView, devicesView } from '@actorlet/kubelet/machines/allocation/devices/messages.ts';
import { apiView } from '@actorlet/kubelet/machines/api/messages.ts';
import { eventsView, type RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { Disagreement, ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { ANNOTATION_SOURCE } from '@actorlet/kubelet/machines/pod/names.ts';
import { peerViews } from '@actorlet/kubelet/machines/pod/peers/peers.ts';
import type { ListedPod, RuntimePodsView } from '@actorlet/kubelet/machines/pod/runtime/seen.ts';
import { type WaitingPod, waitingPodsView } from '@actorlet/kubelet/machines/pods/admission/messages.ts';
import { type PodRecord, type PodsView, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { manifestsView, type SourceError, sourceErrorsView } from '@actorlet/kubelet/machines/pods/podConfig/messages.ts';
import { type StatusEntry, statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { deathsView } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { type PressureView, pressureView } from '@actorlet/kubelet/machines/reclaim/eviction/messages.ts';
import { type ImageLedger, type ImageRecord, imageLedger } from '@actorlet/kubelet/machines/reclaim/imageGc/imageGc.ts';
import { type CriView, criView } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import { runtimePodsView } from '@actorlet/kubelet/machines/runtime/pleg/messages.ts';
import { probesView } from '@actorlet/kubelet/machines/services/probes/messages.ts';
import { volumesView } from '@actorlet/kubelet/machines/services/volumes/messages.ts';
import type { ViewKey } from '@actorlet/kubelet/machines/supervision/address.ts';
import { observerView } from '@actorlet/shown/src/observer/ledger.ts';
import { type Check, isNumber, isText, isTruth, listOf, oneOf, optional, orNull, shape, tuple } from '../checks.ts';
import { crc32 } from '../crc32.ts';
import { isPod, isRecord, isStatus, podOfRecord, recordKept, statusKept } from './podFacts.ts';

/** Key of what belongs to a view as a whole. */
export const WHOLE = '';

/** How one view is kept. Parts are found by their keys; a part that is the same object as before has not changed. */
export interface KeptView {
  readonly view: string;
  /** Its parts are in the order in which they changed last, not in that in which they came. */
  readonly byChange?: boolean;
  /** Its parts, in its order. */
  parts(value: never): Iterable<readonly [string, unknown]>;
  /** A part as JSON: nothing in it may be told to a reader who may not know it. */
  pack(part: never): unknown;
  check: Check;
  /** From packed parts, in order. */
  join(parts: ReadonlyMap<string, unknown>): unknown;
}
type Kept<T, P> = {
  byChange?: boolean;
  parts(value: T): Iterable<readonly [string, P]>;
  pack(part: P): unknown;
  check: Check;
  join(parts: ReadonlyMap<string, never>): T;
};

function kept<T, P>(key: ViewKey<T>, how: Kept<T, P>): KeptView {
  return { view: key.view, ...how } as unknown as KeptView;
}
/** A view that is one part. */
function whole<T>(key: ViewKey<T>, pack: (value: T) => unknown, check: Check, unpack: (packed: never) => T = (packed) => packed): KeptView {
  return kept<T, T>(key, { parts: (value) => [[WHOLE, value]], pack, check, join: (parts) => unpack(parts.get(WHOLE) as never) });
}
/** A map: each of its entries is a part. */
function mapped<P, K extends string>(
  key: ViewKey<ReadonlyMap<K, P>>,
  pack: (part: P) => unknown,
  check: Check,
  unpack: (packed: never) => P = (packed) => packed,
): KeptView {
  return kept<ReadonlyMap<K, P>, P | null>(key, {
    // An empty map was published, too.
    parts: (value) => [[WHOLE, null], ...value],
    pack: (part) => (part === null ? null : pack(part)),
    check: orNull(check),
    join: (parts) => new Map([...parts].flatMap(([k, v]) => (v === null ? [] : [[k as K, unpack(v)] as const]))),
  });
}

const same = (value: unknown): unknown => value;
const error = shape({ where: isText, message: isText, note: optional(isTruth), holds: optional(isText), fullName: optional(isText) });
const podRef = optional(shape({ uid: isText, namespace: isText, name: isText }));
const deathHead = shape({
  ...{ id: isText, kind: isText, owner: isText, container: isText, atMs: isNumber, key: isText, title: isText, nth: isNumber },
  pod: shape({ uid: isText, namespace: isText, name: isText }),
});
const summary = shape({ name: isText, plugin: isText, servedBy: isText, state: isText, message: isText, sinceMs: isNumber });
const peerWord = shape({
  ...{ peer: isText, name: isText, call: isText, about: isText, uid: isText, waitingMs: orNull(isNumber), error: isText },
  ...{ failedMs: isNumber, failures: isNumber },
});
const expectedAct = shape({ kind: isText, pod: isText, uid: isText, what: isText, sinceMs: isNumber });
const disagreement = shape({
  ...{ id: isNumber, sort: oneOf('missing', 'unexpected', 'differs'), kind: isText, pod: isText, uid: isText, expected: isText },
  ...{ came: isText, sinceMs: isNumber, settledMs: orNull(isNumber), rule: isText, known: orNull(isText) },
});
/** Recordings of older observers have their disagreements in it. */
type LedgerHead = Omit<ObserverLedger, 'disagreements'> & { disagreements?: readonly Disagreement[] };
const ledgerHead = shape({
  ...{ sinceMs: isNumber, expected: listOf(expectedAct), disagreements: optional(listOf(disagreement)), dropped: isNumber },
  counts: listOf(shape({ kind: isText, agreed: isNumber, disagreed: isNumber, known: isNumber })),
});
const texts = listOf(isText);
const pairs = (value: Check): Check => listOf(tuple(isText, value));
const mapOf = <V>(list: readonly (readonly [string, V])[]): ReadonlyMap<string, V> => new Map(list);
/** Minus infinity, which JSON has not: what was never. */
const time = (ms: number): number | null => (Number.isFinite(ms) ? ms : null);

const keys = new WeakMap<RecordedEvent, string>();
/** One that occurs again is another object, and takes the place of the first. */
function eventKey(e: RecordedEvent): string {
  const known = keys.get(e);
  if (known !== undefined) return known;
  const text = JSON.stringify([e.pod?.uid ?? '', e.about?.uid ?? '', e.type, e.reason, e.fieldPath ?? '', e.message]);
  const made = `${e.reason} ${text.length} ${crc32(encoder.encode(text)).toString(16)}`;
  keys.set(e, made);
  return made;
}
const encoder = new TextEncoder();

export const KEPT_VIEWS: readonly KeptView[] = [
  kept<PodsView, PodRecord | PodsView>(podsView, {
    parts: (value) => [[WHOLE, value], ...value.records],
    pack: (part) => ('records' in part ? { sourcesReady: part.sourcesReady } : recordKept(part)),
    check: (v) => shape({ sourcesReady: isTruth })(v) || isRecord(v),
    join: (parts) => {
      const { sourcesReady } = parts.get(WHOLE) ?? { sourcesReady: false };
      return { sourcesReady, records: new Map([...parts].filter(([key]) => key !== WHOLE)) };
    },
  }),
  mapped(
    waitingPodsView,
    ({ pod, source, sinceMonoMs, wait, refusal, asked, leaving }) => ({
      ...{ pod: podOfRecord(pod, source).pod, source, sinceMonoMs, wait, refusal },
      ...{ asked: asked === null ? null : { why: asked.why }, leaving: [...leaving] },
    }),
    shape({
      ...{ pod: isPod, source: isText, sinceMonoMs: isNumber, wait: isText, refusal: optional(isText) },
      ...{ asked: orNull(shape({ why: isText })), leaving: pairs(isNumber) },
    }),
    (p: { leaving: readonly (readonly [string, number])[] }) => ({ ...p, leaving: mapOf(p.leaving) }) as unknown as WaitingPod,
  ),
  mapped(
    statusesView,
    ({ status, life }) => ({ status: statusKept(status), life }),
    shape({ status: isStatus, life: isNumber }),
    (p: StatusEntry) => p,
  ),
  kept<readonly RecordedEvent[], RecordedEvent | null>(eventsView, {
    byChange: true,
    parts: (value) => [[WHOLE, null], ...value.map((e) => [eventKey(e), e] as const)],
    pack: (e) =>
      e === null
        ? null
        : {
            ...{ atMs: e.atMs, type: e.type, reason: e.reason, message: e.message, pod: e.pod, about: e.about, fieldPath: e.fieldPath },
            ...{ count: e.count, firstAtMs: e.firstAtMs },
          },
    check: orNull(
      shape({
        ...{ atMs: isNumber, type: isText, reason: isText, message: isText, pod: podRef, about: podRef, fieldPath: optional(isText) },
        ...{ count: isNumber, firstAtMs: optional(isNumber) },
      }),
    ),
    join: (parts) => [...parts.values()].filter((e) => e !== null),
  }),
  whole(deathsView, same, listOf(deathHead)),
  kept<ObserverLedger, LedgerHead | Disagreement>(observerView, {
    parts: ({ disagreements, ...head }) => [[WHOLE, head], ...disagreements.map((d) => [String(d.id), d] as const)],
    pack: same,
    check: (v) => ledgerHead(v) || disagreement(v),
    join: (parts) => {
      const { disagreements = [], ...head } = parts.get(WHOLE) ?? { sinceMs: 0, expected: [], counts: [], dropped: 0 };
      return { ...head, disagreements: [...disagreements, ...[...parts].flatMap(([key, d]) => (key === WHOLE ? [] : [d]))] };
    },
  }),
  mapped(sourceErrorsView, (errors: readonly SourceError[]) => errors, listOf(error)),
  mapped(manifestsView, same, shape({ namespace: isText, name: isText })),
  kept<RuntimePodsView, ListedPod | null>(runtimePodsView, {
    parts: (value) => [[WHOLE, null], ...value.pods],
    pack: (pod) =>
      pod === null
        ? null
        : {
            ...{ uid: pod.uid, name: pod.name, namespace: pod.namespace },
            sandboxes: pod.sandboxes.map(({ ready, annotations }) => ({
              ready,
              annotations: { [ANNOTATION_SOURCE]: annotations[ANNOTATION_SOURCE] ?? '' },
            })),
            containers: pod.containers.map(({ state }) => ({ state })),
          },
    check: orNull(
      shape({
        ...{ uid: isText, name: isText, namespace: isText, containers: listOf(shape({ state: isText })) },
        sandboxes: listOf(shape({ ready: isTruth, annotations: shape({ [ANNOTATION_SOURCE]: isText }) })),
      }),
    ),
    join: (parts) => ({ atMonoMs: 0, via: 'poll', pods: new Map([...parts].filter(([, pod]) => pod !== null)) }),
  }),
  whole(
    criView,
    ({ state, reason, runtimeName, runtimeVersion, runtimeReady, networkReady, networkReason, lastGoodMonoMs, remark }) => ({
      ...{ state, reason, runtimeName, runtimeVersion, runtimeReady, networkReady, networkReason, remark },
      // It moves with every look, and is told only while the runtime is away.
      lastGoodMonoMs: state === 'ready' ? null : lastGoodMonoMs,
    }),
    shape({
      ...{ state: oneOf('connecting', 'ready', 'lost'), reason: isText, runtimeName: isText, runtimeVersion: isText },
      ...{ runtimeReady: isTruth, networkReady: isTruth, networkReason: isText, lastGoodMonoMs: orNull(isNumber) },
      remark: optional(isText),
    }),
    (packed: CriView) => packed,
  ),
  mapped(volumesView, same, listOf(summary)),
  mapped(
    topologyView,
    ({ pod, decisions }) => ({ pod, decisions: decisions.map(({ affinity: _, ...d }) => d) }),
    shape({
      pod: isText,
      decisions: listOf(shape({ container: orNull(isText), chosen: isText, outcome: oneOf('admitted', 'refused', 'later'), hints: texts })),
    }),
    (packed: TopologyDecisions extends ReadonlyMap<string, infer D> ? D : never) => packed,
  ),
  mapped(
    claimsView,
    ({ namespace, name, uid, pods, drivers, prepared }) => ({
      ...{ namespace, name, uid, pods: [...pods], prepared },
      drivers: [...drivers].map(([driver, devices]) => [driver, devices.map(({ pool, device }) => ({ pool, device }))]),
    }),
    shape({
      ...{ namespace: isText, name: isText, uid: isText, pods: texts, prepared: isTruth },
      drivers: pairs(listOf(shape({ pool: isText, device: isText }))),
    }),
    (p: { pods: readonly string[]; drivers: readonly (readonly [string, never])[] }) =>
      ({ ...p, pods: new Set(p.pods), drivers: mapOf(p.drivers) }) as unknown as ClaimRecord,
  ),
  mapped(claimStepsView, same, listOf(shape({ what: isText, sinceWallMs: isNumber }))),
  ...Object.values(peerViews).map((view) => mapped(view, same, peerWord)),
  whole(apiView.link, same, shape({ state: oneOf('connecting', 'reachable', 'lost'), server: isText, reason: isText, sinceMs: isNumber })),
  whole(
    apiView.node,
    ({ name, uid, deleting, registered }) => ({ ...{ name, uid, deleting, registered }, addresses: [] }),
    shape({ name: isText, uid: isText, deleting: isTruth, registered: isTruth }),
  ),
  whole(apiView.podsHeard, same, shape({ atMonoMs: isNumber })),
  whole(
    pressureView,
    ({ pressures, ledger }) => ({ pressures, met: [...ledger.met], sinceMs: [...ledger.sinceMs] }),
    shape({ pressures: texts, met: texts, sinceMs: pairs(isNumber) }),
    (p: { pressures: PressureView['pressures']; met: readonly string[]; sinceMs: readonly (readonly [string, number])[] }) => ({
      pressures: p.pressures,
      ledger: { met: new Set(p.met), sinceMs: mapOf(p.sinceMs), pressureMs: new Map(), readMs: new Map() },
    }),
  ),
  whole(
    cpusView,
    ({ ledger }) => ({ shared: ledger.shared, entries: [...ledger.entries].map(([uid, of]) => [uid, [...of]]) }),
    shape({ shared: listOf(isNumber), entries: pairs(pairs(listOf(isNumber))) }),
    (p: { shared: readonly number[]; entries: readonly (readonly [string, readonly (readonly [string, readonly number[]])[]])[] }) =>
      ({
        ...{ quotaLifted: false, allocatable: [] },
        ledger: { shared: p.shared, entries: new Map(p.entries.map(([uid, of]) => [uid, mapOf(of)])) },
      }) as CpusView,
  ),
  whole(
    devicesView,
    ({ capacity, allocatable, recreated }) => ({ capacity: Object.entries(capacity), allocatable: Object.entries(allocatable), recreated }),
    shape({ capacity: pairs(isText), allocatable: pairs(isText), recreated: isTruth }),
    (p: { capacity: readonly (readonly [string, string])[]; allocatable: readonly (readonly [string, string])[]; recreated: boolean }) =>
      ({ ...p, capacity: Object.fromEntries(p.capacity), allocatable: Object.fromEntries(p.allocatable) }) as unknown as DevicesView,
  ),
  kept<ImageLedger, ImageRecord | null>(imageLedger, {
    parts: (value) => [[WHOLE, null], ...(value.records ?? [])],
    pack: (r) =>
      r === null
        ? null
        : {
            ...{ firstDetectedMs: time(r.firstDetectedMs), lastUsedMs: time(r.lastUsedMs), sizeBytes: r.sizeBytes, pinned: r.pinned },
            names: r.names,
          },
    check: orNull(
      shape({ firstDetectedMs: orNull(isNumber), lastUsedMs: orNull(isNumber), sizeBytes: isNumber, pinned: isTruth, names: texts }),
    ),
    join: (parts) => {
      const never = (ms: number | null): number => ms ?? Number.NEGATIVE_INFINITY;
      const records = [...parts].flatMap(([id, r]: [string, ImageRecord | null]) =>
        r === null ? [] : [[id, { ...r, firstDetectedMs: never(r.firstDetectedMs), lastUsedMs: never(r.lastUsedMs) }] as const],
      );
      return { records: new Map(records), sinceMs: 0, failures: 0 };
    },
  }),
  mapped(
    probesView,
    same,
    shape({ uid: isText, container: isText, startup: optional(isText), readiness: optional(isText), liveness: optional(isText) }),
  ),
];

export const KEPT_BY_NAME: ReadonlyMap<string, KeptView> = new Map(KEPT_VIEWS.map((v) => [v.view, v]));
