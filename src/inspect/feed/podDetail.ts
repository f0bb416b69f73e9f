/** One pod that somebody watches, gathered from published views, the recorder and its history. Nothing of its environment. */

import { chartOf } from '../../machines/chart/definition.ts';
import { eventsView } from '../../machines/foundation/messages.ts';
import type { PodStatus } from '../../machines/kube/types.ts';
import { waitingPodsView } from '../../machines/pods/admission/messages.ts';
import { type PodRecord, podsView } from '../../machines/pods/manager/messages.ts';
import { podLifeMachine } from '../../machines/pods/manager/podLifeMachine.ts';
import { sourceErrorsView } from '../../machines/pods/podConfig/messages.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';
import { workersAddr } from '../../machines/pods/workers/messages.ts';
import { criView } from '../../machines/runtime/cri/messages.ts';
import { runtimePodsView } from '../../machines/runtime/pleg/messages.ts';
import { probesView } from '../../machines/services/probes/messages.ts';
import { volumesView } from '../../machines/services/volumes/messages.ts';
import { explainPod } from '../../machines/shown/why/why.ts';
import { workerWords } from '../../machines/shown/workerWords.ts';
import { exitOf, stateOf } from '../../recorder/containerSpans.ts';
import type { Inspected } from '../../recorder/source.ts';
import type { ContainerRow, LifeFrame, PodFrame } from './frames.ts';
import { isAbout, MESSAGES_MAX, nothingKnown } from './podFacts.ts';

export const LIFE_FRAME: LifeFrame = { t: 'life', chart: chartOf(podLifeMachine) };

const EVENTS_MAX = 60;
/** A pod that is forgotten may still have a history. */
const NO_HISTORY = { steps: [], calls: [], containers: [], left: 0 };

/** What a pod's page is made of. */
export type PodSource = Pick<Inspected, 'recorder' | 'history' | 'clock'> & { tree: Pick<Inspected['tree'], 'registry' | 'stateAt'> };

/** `past: false`: without its history and messages, which are searched for. */
export function podFrame(node: PodSource, uid: string, { past = true } = {}): PodFrame {
  const { registry } = node.tree;
  const record = registry.read(podsView)?.value.records.get(uid);
  const history = (past ? node.history.of(uid) : undefined) ?? NO_HISTORY;
  const messages = past ? node.recorder.last(MESSAGES_MAX, (e) => isAbout(e, uid)) : [];
  if (record === undefined) {
    const path = `${workersAddr.path}/${uid}`;
    const kept = history.steps.length + history.calls.length > 0;
    return {
      t: 'pod',
      uid,
      pod: kept ? { ...nothingKnown(uid, path), history, messages } : null,
    };
  }
  const status = registry.read(statusesView)?.value.get(uid)?.status ?? record.pod.status;
  const probes = [...(registry.read(probesView)?.value.values() ?? [])].filter((p) => p.uid === uid);
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
              ...workerWords(uid, worker, { actorAt: (path) => node.tree.stateAt(path), nowMs: node.clock.wallMs() }),
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
      volumes: registry.read(volumesView)?.value.get(uid) ?? [],
      causes: worker?.causes ?? [],
      why: whyOf(node, uid),
      events: (registry.read(eventsView)?.value ?? []).filter((e) => e.pod?.uid === uid).slice(-EVENTS_MAX),
      history,
      messages,
    },
  };
}

function whyOf(node: PodSource, uid: string): readonly string[] {
  const { registry } = node.tree;
  return explainPod({
    query: uid,
    nowMs: node.clock.wallMs(),
    monoMs: node.clock.monoMs(),
    pods: registry.read(podsView)?.value,
    waiting: registry.read(waitingPodsView)?.value,
    statuses: registry.read(statusesView)?.value,
    events: [],
    sourceErrors: registry.read(sourceErrorsView)?.value,
    listed: registry.read(runtimePodsView)?.value.pods,
    cri: registry.read(criView)?.value,
    volumes: registry.read(volumesView)?.value,
    actorAt: (path) => node.tree.stateAt(path),
  }).lines;
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
