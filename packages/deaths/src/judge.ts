/** Whether what was seen is a death, once it is known what the node said and did about it. Pure. */
import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { type PodRecord, verdictOf } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { Death } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { isUnexplained } from './keeping.ts';

/** Clocks of runtime and node may differ, and times of the API are cut to seconds. */
const MARGIN_MS = 2_000;
const PROBE_FAILED = /failed (liveness|startup) probe/;

/** What this node said about the end of a container: it stops one for a reason, and says so before. */
export function stopSaid(death: Death, events: readonly RecordedEvent[]): RecordedEvent | undefined {
  const { end, container, pod } = death;
  if (end === undefined) return undefined;
  return events.findLast(
    (e) =>
      e.reason === 'Killing' &&
      e.pod?.uid === pod.uid &&
      (e.fieldPath ?? '').endsWith(`{${container}}`) &&
      e.atMs >= end.startedAtMs - MARGIN_MS &&
      e.atMs <= end.finishedAtMs + MARGIN_MS,
  );
}

/** Null: it is none. A container that the node stopped for a change, or because somebody asked, did not end badly. */
export function judged(
  death: Death,
  o: { events: readonly RecordedEvent[]; record: PodRecord | undefined; outOfMemory: boolean },
): Death | null {
  const verdict = o.record === undefined ? null : verdictOf(o.record);
  if (death.kind === 'evicted' || death.kind === 'refused') {
    if (verdict === null) return death;
    return { ...death, kind: verdict.kind === 'evicted' ? 'evicted' : death.kind };
  }
  if (death.end === undefined) return death;
  const said = stopSaid(death, o.events);
  if (said !== undefined && PROBE_FAILED.test(said.message)) return death.kind === 'oom' ? death : { ...death, kind: 'probe' };
  if (death.doubtful === true) return null;
  if (death.kind === 'oom' || death.kind === 'start') return death;
  // A pod that this node ends has a bundle as a whole.
  if (said !== undefined || verdict?.kind === 'evicted' || verdict?.kind === 'refused') return null;
  return isUnexplained(death) && o.outOfMemory ? { ...death, kind: 'oom' } : death;
}
