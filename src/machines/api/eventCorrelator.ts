/**
 * Events on their way to the API: similar ones combined, floods cut per object, repeats counted into the event that is
 * there already (boot-and-node 9.9). State without I/O.
 */

import { TokenBucket } from '../data/tokenBucket.ts';
import type { RecordedEvent } from '../foundation/messages.ts';
import type { WireEvent } from '../kube/wire.ts';

/** Events that wait; beyond it the oldest is dropped. */
export const EVENTS_WAITING_MAX = 1_000;
/** Events of one object, type and reason with different messages: from this many on they are combined, until none came for so long. */
const SIMILAR_MAX = 10;
const SIMILAR_MS = 600_000;
export const COMBINED_PREFIX = '(combined from similar events): ';
/** Per object and type: so many at once, then one per five minutes. */
export const OBJECT_BURST = 25;
const OBJECT_PER_SECOND = 1 / 300;
/** What is remembered of written events and of objects; the oldest goes. */
const REMEMBERED_MAX = 4_096;
/** Of one object, type and reason. */
const TOLD_MAX = 2 * SIMILAR_MAX;
/** The API server keeps an event that long after its last change. */
const KEPT_MS = 3_600_000;
/** Characters of a name in the API. */
const NAME_MAX = 253;
/** Namespace of events about what has none: the node, a PersistentVolume. */
const NODE_NAMESPACE = 'default';

export interface PendingEvent {
  key: string;
  namespace: string;
  name: string;
  /** How often this event came, repeats included. */
  count: number;
  firstAtMs: number;
  lastAtMs: number;
  event: RecordedEvent;
  message: string;
  /** Where it is remembered. */
  told: Told;
  /** It was created before: only count, time and message are patched. */
  exists: boolean;
}
/** An event that was told, and written where it has a name. A node keeps a few for each of its pods. */
interface Told {
  /** Null: it stands for those that were combined. */
  readonly message: string | null;
  readonly fieldPath: string;
  /** It counts among those that are combined from so many on. */
  counts: boolean;
  name: string;
  count: number;
  firstAtMs: number;
}
/** Of one object, type and reason. */
interface Kind {
  lastMs: number;
  told: Told[];
}

/** Keeps the newest `max` by use. */
class Recent<V> {
  readonly #map = new Map<string, V>();
  readonly #max: number;
  constructor(max: number) {
    this.#max = max;
  }
  get(key: string): V | undefined {
    return this.#map.get(key);
  }
  put(key: string, value: V): void {
    this.#map.delete(key);
    this.#map.set(key, value);
    for (const oldest of this.#map.keys()) {
      if (this.#map.size <= this.#max) break;
      this.#map.delete(oldest);
    }
  }
  delete(key: string): void {
    this.#map.delete(key);
  }
  /** The oldest go while they are as is said. */
  deleteWhile(isOver: (value: V) => boolean): void {
    for (const [key, value] of this.#map) {
      if (!isOver(value)) break;
      this.#map.delete(key);
    }
  }
}

export class EventCorrelator {
  readonly #nodeName: string;
  /** By key; the oldest first. */
  readonly #waiting = new Map<string, PendingEvent>();
  readonly #kinds = new Recent<Kind>(REMEMBERED_MAX);
  readonly #buckets = new Recent<TokenBucket>(REMEMBERED_MAX);
  /** Events that were cut for their number: the next of its kind that is sent tells of them too. */
  readonly #cut = new Recent<{ count: number; firstAtMs: number }>(REMEMBERED_MAX);
  #sequence = 0n;
  /** Since the start: cut for their number, and pushed out of the queue. */
  dropped = 0;

  constructor(nodeName: string) {
    this.#nodeName = nodeName;
  }

  get size(): number {
    return this.#waiting.size;
  }

  take(event: RecordedEvent, now: { wallMs: number; monoMs: number }): void {
    // Each type by itself: warnings that go on and on leave what is ordinary its place.
    const about = event.about ?? event.pod;
    const owner = `${event.type} ${about?.uid ?? ''}`;
    const bucket = this.#buckets.get(owner) ?? new TokenBucket(OBJECT_PER_SECOND, OBJECT_BURST);
    this.#buckets.put(owner, bucket);
    const { key, told } = this.#told(event, now.monoMs);
    const message = told.message ?? `${COMBINED_PREFIX}${event.message}`;
    const cut = this.#cut.get(key) ?? { count: 0, firstAtMs: event.atMs };
    if (!bucket.take(now.monoMs)) {
      this.#cut.put(key, { ...cut, count: cut.count + 1 });
      this.dropped += 1;
      return;
    }
    this.#cut.delete(key);
    const before = this.#waiting.get(key);
    const written = told.name === '' ? undefined : told;
    const namespace = about?.namespace || NODE_NAMESPACE;
    this.#sequence += 1n;
    const stamp = (BigInt(Math.floor(now.wallMs)) * 1_000_000n + (this.#sequence % 1_000_000n)).toString(16);
    this.#waiting.set(key, {
      key,
      namespace,
      name: before?.name ?? written?.name ?? eventName(about?.name ?? this.#nodeName, stamp),
      count: (before?.count ?? written?.count ?? 0) + cut.count + 1,
      firstAtMs: before?.firstAtMs ?? written?.firstAtMs ?? cut.firstAtMs,
      lastAtMs: event.atMs,
      event,
      message,
      told,
      exists: before?.exists ?? written !== undefined,
    });
    for (const oldest of this.#waiting.keys()) {
      if (this.#waiting.size <= EVENTS_WAITING_MAX) break;
      this.#waiting.delete(oldest);
      this.dropped += 1;
    }
  }

  /** The one to send now; it stays until {@link done} or {@link drop}. */
  next(): PendingEvent | null {
    for (const pending of this.#waiting.values()) return pending;
    return null;
  }
  done(sent: PendingEvent): void {
    const { key, name, count, firstAtMs } = sent;
    Object.assign(sent.told, { name, count, firstAtMs });
    const now = this.#waiting.get(key);
    if (now === undefined) return;
    if (now.count === sent.count) this.#waiting.delete(key);
    else this.#waiting.set(key, { ...now, exists: true });
  }
  /** The server will not have it. */
  drop(sent: PendingEvent): void {
    this.#waiting.delete(sent.key);
    sent.told.name = '';
    this.dropped += 1;
  }
  /** The event it would be counted into is no more: events live for an hour. */
  recreate(sent: PendingEvent): void {
    sent.told.name = '';
    const now = this.#waiting.get(sent.key);
    if (now !== undefined) this.#waiting.set(sent.key, { ...now, exists: false });
  }

  #told(event: RecordedEvent, nowMs: number): { key: string; told: Told } {
    this.#kinds.deleteWhile(({ lastMs }) => nowMs - lastMs > KEPT_MS);
    const key = JSON.stringify([(event.about ?? event.pod)?.uid ?? '', event.type, event.reason]);
    const kind: Kind = this.#kinds.get(key) ?? { lastMs: nowMs, told: [] };
    if (nowMs - kind.lastMs > SIMILAR_MS) for (const told of kind.told) told.counts = false;
    kind.lastMs = nowMs;
    this.#kinds.put(key, kind);
    const { fieldPath = '', message } = event;
    const messages = new Set(kind.told.flatMap((told) => (told.counts ? (told.message ?? []) : [])));
    // What was told alone before is counted there.
    if (!messages.has(message) && messages.size >= SIMILAR_MAX - 1) return { key, told: toldOf(kind, null, '') };
    const told = toldOf(kind, message, fieldPath);
    told.counts = true;
    return { key: `${key} ${fieldPath} ${message}`, told };
  }
}

function toldOf(kind: Kind, message: string | null, fieldPath: string): Told {
  const found = kind.told.find((told) => told.message === message && told.fieldPath === fieldPath);
  if (found !== undefined) return found;
  const told: Told = { message, fieldPath, counts: false, name: '', count: 0, firstAtMs: 0 };
  // Anew, as one that grows takes room for 17.
  kind.told = kind.told.slice(-(TOLD_MAX - 1)).concat(told);
  return told;
}

/** The name of what it is about may be as long as a name can be. */
function eventName(about: string, stamp: string): string {
  const room = NAME_MAX - stamp.length - 1;
  return `${about.slice(0, room).replace(/[^a-z0-9]+$/, '')}.${stamp}`;
}

export function eventObject(p: PendingEvent, nodeName: string): WireEvent {
  const { about, pod = about, fieldPath, type, reason } = p.event;
  const time = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;
  const { namespace = '', name = '', uid = '' } = about ?? pod ?? {};
  const kind = about?.kind ?? 'Pod';
  const inNamespace = namespace === '' ? {} : { namespace };
  const involvedObject =
    pod === undefined
      ? // The reference names the node by its name here, not by its UID.
        { kind: 'Node', name: nodeName, uid: nodeName }
      : { apiVersion: 'v1', kind, ...inNamespace, name, uid, ...(fieldPath === undefined ? {} : { fieldPath }) };
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: p.name, namespace: p.namespace },
    involvedObject,
    type,
    reason,
    message: p.message,
    source: { component: 'kubelet', host: nodeName },
    reportingComponent: 'kubelet',
    reportingInstance: nodeName,
    firstTimestamp: time(p.firstAtMs),
    lastTimestamp: time(p.lastAtMs),
    count: p.count,
  };
}

/** What a repeat changes. */
export function eventPatch(p: PendingEvent): Record<string, unknown> {
  return { count: p.count, lastTimestamp: `${new Date(p.lastAtMs).toISOString().slice(0, 19)}Z`, message: p.message };
}
