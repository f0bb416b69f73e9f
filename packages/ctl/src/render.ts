/** The daemon's JSON answers as text. Pure. */

import { eventMessage } from '@actorlet/kubelet/machines/foundation/eventLog.ts';
import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { renderTable } from '@actorlet/kubelet/machines/text/table.ts';
import { podStatus } from '@actorlet/shown/src/pods/podStatus.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';

/** `wide`: with what else is known of each. `namespace`: pods of others are left out; '' or absent: none are. `of`: of how many these were chosen. */
export function renderPods(pods: readonly PodSummary[], o: { wide?: boolean; namespace?: string; of?: number } = {}): string[] {
  const { namespace = '', of = 0 } = o;
  if (pods.length === 0 && namespace === '' && of > 0) return [`None of the ${of} pods of this node has these labels.`];
  if (pods.length === 0) return [namespace === '' ? 'No pods on this node.' : `No pods in namespace ${namespace} on this node.`];
  const rows = pods.map((p) => [
    p.namespace,
    p.name,
    `${p.ready}/${p.containers}`,
    podStatus(p),
    String(p.restarts),
    shortDuration(p.ageMs),
    p.workerState === '' ? p.worker : p.workerState,
    ...(o.wide === true ? [p.podIP === '' ? '-' : p.podIP, p.source, p.uid] : []),
    [p.reason, p.message].filter((s) => s !== '').join(': '),
  ]);
  const more = o.wide === true ? ['IP', 'SOURCE', 'UID'] : [];
  return renderTable(['NAMESPACE', 'NAME', 'READY', 'STATUS', 'RESTARTS', 'AGE', 'WORKER', ...more, 'REASON'], rows);
}

export function renderEvents(events: readonly RecordedEvent[], nowMs: number): string[] {
  if (events.length === 0) return ['No events.'];
  const rows = events.map((e) => [
    shortDuration(nowMs - e.atMs),
    String(e.count),
    e.type,
    e.reason,
    e.pod === undefined ? '(node)' : `${e.pod.namespace}/${e.pod.name}`,
    eventMessage(e),
  ]);
  return renderTable(['LAST SEEN', 'COUNT', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'], rows);
}

const RED = '\u001b[31m';
const OFF = '\u001b[0m';
const BAD = /^\[-\]| (restarting|failed|parked|quarantined|stopped)( |$)| (Warning|Refused|Failed) /;

/** `shown`, in red where the whole `line` tells of something broken; the text itself is unchanged. */
export function paint(line: string, shown: string, colour: boolean): string {
  return colour && BAD.test(line) ? RED + shown + OFF : shown;
}
