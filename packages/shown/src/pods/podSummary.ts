/** One line about each pod, for the admin socket's /pods and `actorctl pods`. Pure. */
import type { ContainerStatus, Pod, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { isRefused, isWanted, type PodRecord, type PodsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { StatusView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { WorkerPhase } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { exitText, heldBackBy } from '../why/containers.ts';
import { type ActorAt, workerWords } from '../workerWords.ts';
import { type KubectlPod, kubectlPod } from './kubectlPod.ts';

export interface PodSummary extends KubectlPod {
  uid: string;
  namespace: string;
  name: string;
  source: PodRecord['source'];
  /** Phase of the API status; `Pending` before the first status. */
  phase: string;
  worker: WorkerPhase | 'none';
  workerState: string;
  /** The most telling reason: of the status, of a container that waits, or of the worker. */
  reason: string;
  message: string;
  podIP: string;
  /** The running container that came back last after it had failed. Absent: none did. */
  crashed?: { name: string; times: number; how: string; atMs: number };
  removed: boolean;
  rejected: boolean;
  /** Milliseconds since it was made: by the API server, else since it started; a restart of the daemon does not change it. */
  ageMs: number;
}

interface Known {
  statuses: StatusView | undefined;
  nowMs: number;
  actorAt: ActorAt;
}

export function summarizePods(pods: PodsView, known: Known): PodSummary[] {
  return [...pods.records]
    .map(([uid, record]) => summarizePod(uid, record, known))
    .sort((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name) || compare(a.uid, b.uid));
}

export function summarizePod(uid: string, record: PodRecord, o: Known): PodSummary {
  const status = o.statuses?.get(uid)?.status ?? record.pod.status;
  const list = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  const waiting = list.find((c) => c.state.waiting?.reason !== undefined && c.state.waiting.reason !== 'PodInitializing');
  const seen = record.worker?.containers ?? [];
  const words = record.worker === null ? null : workerWords(uid, record.worker, o);
  const backing = seen.find((c) => c.state === 'waiting' && c.reason !== '');
  const unready = record.worker?.phase === 'syncing' ? unreadyText(record.pod, status) : '';
  const failed = status?.phase === 'Failed' ? list.find((c) => (c.state.terminated?.exitCode ?? 0) !== 0) : undefined;
  // The worker knows at once; the status follows. Whichever says why something does not run comes first.
  const [reason, message] =
    status?.reason !== undefined && status.reason !== ''
      ? [status.reason, status.message ?? '']
      : failed?.state.terminated !== undefined
        ? [failed.state.terminated.reason ?? '', `${failed.name} ended with ${exitText(failed.state.terminated)}`]
        : backing !== undefined
          ? [backing.reason, backing.message]
          : waiting?.state.waiting !== undefined
            ? [waiting.state.waiting.reason ?? '', waiting.state.waiting.message ?? '']
            : unready !== ''
              ? ['ContainersNotReady', unready]
              : [words?.reason ?? '', words?.message ?? ''];
  const counted = (of: readonly ContainerStatus[] = []) =>
    of.map((c) => ({ ...c, restartCount: Math.max(c.restartCount, seen.find((s) => s.name === c.name)?.restartCount ?? 0) }));
  const { initContainerStatuses, containerStatuses } = status ?? {};
  const shown = kubectlPod({
    spec: record.pod.spec,
    status: { ...status, initContainerStatuses: counted(initContainerStatuses), containerStatuses: counted(containerStatuses) },
    deleted: !isWanted(record),
  });
  return {
    uid,
    namespace: record.pod.metadata.namespace,
    name: record.pod.metadata.name,
    source: record.source,
    phase: status?.phase ?? 'Pending',
    ...shown,
    worker: record.worker?.phase ?? 'none',
    workerState: words?.state ?? '',
    reason,
    message,
    podIP: status?.podIP ?? '',
    ...crashedOf(list),
    removed: !isWanted(record),
    rejected: isRefused(record),
    ageMs: Math.max(0, o.nowMs - bornAtMs(record, status)),
  };
}

/** The first container that a probe keeps from Ready. */
function unreadyText({ spec }: Pod, status: PodStatus | undefined): string {
  for (const container of spec.containers) {
    const told = heldBackBy(
      container,
      status?.containerStatuses?.find((c) => c.name === container.name),
    );
    if (told !== '') return `${container.name} is ${told}`;
  }
  return '';
}

function crashedOf(list: readonly ContainerStatus[]): Pick<PodSummary, 'crashed'> {
  const ended = list.flatMap(({ name, restartCount: times, state, lastState: { terminated } }) => {
    const atMs = Date.parse(terminated?.finishedAt ?? '');
    if (state.running === undefined || terminated === undefined || terminated.exitCode === 0 || !Number.isFinite(atMs)) return [];
    return [{ name, times, how: exitText(terminated), atMs }];
  });
  const [last] = ended.sort((a, b) => b.atMs - a.atMs);
  return last === undefined ? {} : { crashed: last };
}

/** Its creation, else its start, else when this daemon saw it first. */
function bornAtMs({ pod, seenAtMs }: PodRecord, status: PodStatus | undefined): number {
  const times = [pod.metadata.creationTimestamp, status?.startTime].map((t) => Date.parse(t ?? ''));
  return times.find(Number.isFinite) ?? seenAtMs;
}

/** By code unit: the same order on every machine. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
