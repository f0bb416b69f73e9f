import type { EventsEvent, RecordedEvent } from './messages.ts';

export interface EventLogLimits {
  /** Distinct events kept per pod. */
  perPodMax: number;
  /** Distinct events kept about the node itself. */
  nodeMax: number;
  /** Pods with events; beyond it the pod whose last event is oldest is forgotten. */
  podsMax: number;
}
export const EVENT_LOG_LIMITS: EventLogLimits = { perPodMax: 50, nodeMax: 200, podsMax: 2000 };
/** Text beyond this is cut: an event is a sentence. The API server's own bound on an event's note. */
const EVENT_MESSAGE_CHARS_MAX = 1024;

/** Owner key of events about the node: no UID is empty. */
const NODE = '';

export interface EventLog {
  /** Adds one occurrence. `repeated`: it only raised the count of a kept one. */
  record(event: EventsEvent['event'], atMs: number): { event: RecordedEvent; repeated: boolean };
  /** UIDs of pods that have events. */
  pods(): string[];
  forget(uid: string): void;
  /** All kept events, the latest occurrence last. A fresh array; its members are never changed afterwards. */
  list(): readonly RecordedEvent[];
}

/** Starts from `kept` (what an earlier incarnation published), oldest first. */
export function createEventLog(limits: EventLogLimits = EVENT_LOG_LIMITS, kept: readonly RecordedEvent[] = []): EventLog {
  // Both orders are those of insertion; a repeat is taken out and put in again, so the first is always the oldest.
  const all = new Map<string, RecordedEvent>();
  const byOwner = new Map<string, Set<string>>();

  const drop = (owner: string, key: string) => {
    all.delete(key);
    byOwner.get(owner)?.delete(key);
  };
  const forget = (owner: string) => {
    for (const key of byOwner.get(owner) ?? []) all.delete(key);
    byOwner.delete(owner);
  };
  const put = (owner: string, key: string, event: RecordedEvent) => {
    const keys = byOwner.get(owner) ?? new Set<string>();
    byOwner.delete(owner);
    byOwner.set(owner, keys);
    keys.delete(key);
    all.delete(key);
    keys.add(key);
    all.set(key, event);
    const max = owner === NODE ? limits.nodeMax : limits.perPodMax;
    for (const oldest of keys) {
      if (keys.size <= max) break;
      drop(owner, oldest);
    }
    for (const uid of byOwner.keys()) {
      if (byOwner.size <= limits.podsMax + 1) break;
      if (uid !== NODE) forget(uid);
    }
  };

  for (const e of kept) put(e.pod?.uid ?? NODE, keyOf(e), e);
  return {
    record(given, atMs) {
      const message =
        given.message.length > EVENT_MESSAGE_CHARS_MAX ? `${given.message.slice(0, EVENT_MESSAGE_CHARS_MAX - 1)}…` : given.message;
      const key = keyOf({ ...given, message });
      const before = all.get(key);
      const event: RecordedEvent = {
        ...given,
        message,
        atMs,
        count: (before?.count ?? 0) + 1,
        firstAtMs: before?.firstAtMs ?? before?.atMs ?? atMs,
      };
      put(given.pod?.uid ?? NODE, key, event);
      return { event, repeated: before !== undefined };
    },
    pods: () => [...byOwner.keys()].filter((uid) => uid !== NODE),
    forget,
    list: () => [...all.values()],
  };
}

function keyOf(e: EventsEvent['event']): string {
  return JSON.stringify([
    e.pod?.uid ?? NODE,
    ...(e.about === undefined ? [] : [e.about.uid]),
    e.type,
    e.reason,
    e.fieldPath ?? '',
    e.message,
  ]);
}

/** With the part of the pod that it is about, as kubectl shows it. */
export function eventMessage({ fieldPath = '', message }: Pick<RecordedEvent, 'fieldPath' | 'message'>): string {
  return fieldPath === '' ? message : `${fieldPath}: ${message}`;
}
