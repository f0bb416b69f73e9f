/** What a node says of its pods through no port: their statuses and events. A node without an API server says it nowhere else. */
import type { Registry } from '@actorlet/kubelet/actors/supervision/types.ts';
import { eventsView, type RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { type StatusEntry, statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';

/** `what`: `status` or `event`. `key`: which one. `value`: null where it is gone. */
export type Publish = (what: string, key: string, value: unknown) => void;

/** Hears of each status and each event that is new or another one. */
export function publishing(registry: Pick<Registry, 'watch'>, publish: Publish): void {
  let statuses: ReadonlyMap<string, StatusEntry> = new Map();
  registry.watch(statusesView, (now) => {
    const before = statuses;
    statuses = now;
    for (const [uid, entry] of now) {
      if (before.get(uid)?.status !== entry.status) publish('status', uid, entry.status);
    }
    for (const uid of before.keys()) if (!now.has(uid)) publish('status', uid, null);
  });
  let events: ReadonlySet<RecordedEvent> = new Set();
  registry.watch(eventsView, (now) => {
    const before = events;
    events = new Set(now);
    for (const event of now) if (!before.has(event)) publish('event', keyOf(event), event);
  });
}

function keyOf({ reason, pod, fieldPath }: RecordedEvent): string {
  return [reason, pod === undefined ? '' : `${pod.namespace}/${pod.name}`, fieldPath ?? ''].filter((word) => word !== '').join(' ');
}
