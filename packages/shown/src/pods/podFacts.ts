/** What `why` says of a pod, as data for programs. Pure. */

import { eventMessage } from '@actorlet/kubelet/machines/foundation/eventLog.ts';
import type { PodRecord } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { PodExplained } from '../answers.ts';
import { explainedContainers } from '../why/containers.ts';
import { errorsOfPod, leftAloneOf, type WhyInput } from '../why/whySources.ts';
import { summarizePod } from './podSummary.ts';

/** `runtime`: what is wrong with it, in words. */
export function podFacts(uid: string, record: PodRecord, { runtime, ...i }: WhyInput & { runtime: readonly string[] }): PodExplained {
  const { pod, source } = record;
  const status = i.statuses?.get(uid)?.status ?? pod.status;
  const { phase, ready, containers, reason, message, workerState } = summarizePod(uid, record, i);
  return {
    ...{ uid, namespace: pod.metadata.namespace, name: pod.metadata.name, source, phase },
    ...{ ready: ready === containers && phase === 'Running', reason, message, worker: workerState },
    containers: explainedContainers(record, status, { observed: i.observer !== undefined }).map(({ data }) => data),
    runtime: [...runtime],
    manifests: errorsOfPod(pod, i).map((e) => ({ where: e.where, message: e.message, usable: e.note === true })),
    leftAlone: [...leftAloneOf(record)],
    causes: (record.worker?.causes ?? []).map(({ atMs, by, what }) => ({ atMs, by, what })),
    events: (i.events ?? [])
      .filter((e) => e.pod?.uid === uid)
      .map((e) => ({ atMs: e.atMs, count: e.count, type: e.type, reason: e.reason, message: eventMessage(e) })),
  };
}
