/** One pod that somebody watches, gathered from published views, the recorder and its history. Nothing of its environment. */

import { exitOf, stateOf } from '@actorlet/kubelet/actors/recorder/containerSpans.ts';
import { chartOf } from '@actorlet/kubelet/machines/chart/definition.ts';
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { type PodRecord, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { podLifeMachine } from '@actorlet/kubelet/machines/pods/manager/podLifeMachine.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { probesView } from '@actorlet/kubelet/machines/services/probes/messages.ts';
import { volumesView } from '@actorlet/kubelet/machines/services/volumes/messages.ts';
import { whyPod } from '@actorlet/shown/src/why/whyOf.ts';
import { workerWords } from '@actorlet/shown/src/workerWords.ts';
import type { ContainerRow, LifeFrame, PodFrame } from './frames.ts';
import { isAbout, MESSAGES_MAX, nothingKnown } from './podFacts.ts';

export const LIFE_FRAME: LifeFrame = { t: 'life', chart: chartOf(podLifeMachine) };

const EVENTS_MAX = 60;
/** A pod that is forgotten may still have a history. */
const NO_HISTORY = { steps: [], calls: [], containers: [], left: 0, kept: false };

export function podFrame(m: Moment, uid: string): PodFrame {
  const record = m.read(podsView)?.records.get(uid);
  const { kept, ...history } = m.timeline(uid) ?? NO_HISTORY;
  const messages = m
    .recorder({})
    .entries.filter((e) => isAbout(e, uid))
    .slice(-MESSAGES_MAX);
  if (record === undefined) {
    const known = kept && history.steps.length + history.calls.length > 0;
    return { t: 'pod', uid, pod: known ? { ...nothingKnown(uid, `${workersAddr.path}/${uid}`), history, messages } : null };
  }
  const status = m.read(statusesView)?.get(uid)?.status ?? record.pod.status;
  const probes = [...(m.read(probesView)?.values() ?? [])].filter((p) => p.uid === uid);
  const { worker, pod } = record;
  return {
    t: 'pod',
    uid,
    pod: {
      namespace: pod.metadata.namespace,
      name: pod.metadata.name,
      source: record.source,
      seenAtMs: record.seenAtMs,
      way: record.way ?? [],
      phase: status?.phase ?? 'Pending',
      reason: status?.reason ?? '',
      message: status?.message ?? '',
      worker:
        worker === null
          ? null
          : {
              phase: worker.phase,
              ...workerWords(uid, worker, { actorAt: (path) => m.stateAt(path), nowMs: m.nowMs }),
            },
      conditions: (status?.conditions ?? []).map((c) => ({
        type: c.type,
        status: c.status,
        sinceMs: timeOf(c.lastTransitionTime),
        reason: c.reason ?? '',
        message: c.message ?? '',
      })),
      containers: containersOf(record, status),
      probes: probes.flatMap((p) =>
        (['startup', 'readiness', 'liveness'] as const).flatMap((type) => {
          const result = p[type];
          return result === undefined ? [] : [{ container: p.container, type, result: String(result) }];
        }),
      ),
      volumes: m.read(volumesView)?.get(uid) ?? [],
      causes: worker?.causes ?? [],
      why: whyPod(m, uid, { events: false }).lines,
      events: (m.read(eventsView) ?? []).filter((e) => e.pod?.uid === uid).slice(-EVENTS_MAX),
      history,
      messages,
    },
  };
}

function containersOf({ pod, worker }: PodRecord, status: PodStatus | undefined): ContainerRow[] {
  const all = [
    ...(pod.spec.initContainers ?? []).map((c) => ({ c, init: true, seen: status?.initContainerStatuses })),
    ...pod.spec.containers.map((c) => ({ c, init: false, seen: status?.containerStatuses })),
  ];
  return all.map(({ c, init, seen }) => {
    const told = seen?.find((s) => s.name === c.name);
    const summary = worker?.containers.find((s) => s.name === c.name && s.init === init);
    return {
      name: c.name,
      init,
      state: summary?.state ?? stateOf(told),
      reason: summary?.reason ?? told?.state.waiting?.reason ?? told?.state.terminated?.reason ?? '',
      message: summary?.message ?? told?.state.waiting?.message ?? '',
      restartCount: Math.max(summary?.restartCount ?? 0, told?.restartCount ?? 0),
      ...(summary?.nextStartAtMs === undefined ? {} : { nextStartAtMs: summary.nextStartAtMs }),
      image: c.image ?? '',
      ready: told?.ready === true,
      startedAtMs: timeOf(told?.state.running?.startedAt),
      lastExit: exitOf(told),
    };
  });
}

function timeOf(text: string | null | undefined): number {
  const ms = text === null || text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? 0 : ms;
}
