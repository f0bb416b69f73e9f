/** What `why` says of a pod, as data for programs. Pure. */
import type { ContainerStatus, PodStatus } from '../kube/types.ts';
import { podFields } from '../pods/admission/supported.ts';
import type { PodRecord } from '../pods/manager/messages.ts';
import type { ContainerSummary } from '../pods/workers/messages.ts';
import type { PodExplained } from './answers.ts';
import { eventMessage } from './eventLog.ts';
import { summarizePod } from './podSummary.ts';
import { errorsOfPod, type WhyInput } from './why/whySources.ts';

type ContainerExplained = PodExplained['containers'][number];

/** `runtime`: what is wrong with it, in words. */
export function podFacts(uid: string, record: PodRecord, { runtime, ...i }: WhyInput & { runtime: readonly string[] }): PodExplained {
  const { pod, source } = record;
  const status = i.statuses?.get(uid)?.status ?? pod.status;
  const { phase, ready, containers, reason, message, workerState } = summarizePod(uid, record, i);
  return {
    ...{ uid, namespace: pod.metadata.namespace, name: pod.metadata.name, source, phase },
    ...{ ready: ready === containers && phase === 'Running', reason, message, worker: workerState },
    containers: containersOf(record, status),
    runtime: [...runtime],
    manifests: errorsOfPod(pod, i).map((e) => ({ where: e.where, message: e.message, usable: e.note === true })),
    leftAlone: [...podFields(pod, { api: source === 'api' }).leftAlone],
    causes: (record.worker?.causes ?? []).map(({ atMs, by, what }) => ({ atMs, by, what })),
    events: (i.events ?? [])
      .filter((e) => e.pod?.uid === uid)
      .map((e) => ({ atMs: e.atMs, count: e.count, type: e.type, reason: e.reason, message: eventMessage(e) })),
  };
}

function containersOf({ pod, worker }: PodRecord, status: PodStatus | undefined): ContainerExplained[] {
  const of = (list: readonly { name: string }[] | undefined, told: readonly ContainerStatus[] | undefined, init: boolean) =>
    (list ?? []).map(({ name }) =>
      container(name, init, {
        seen: worker?.containers.find((s) => s.name === name && s.init === init),
        api: told?.find((s) => s.name === name),
      }),
    );
  return [
    ...of(pod.spec.initContainers, status?.initContainerStatuses, true),
    ...of(pod.spec.containers, status?.containerStatuses, false),
  ];
}

/** The worker knows at once; the status follows. */
function container(
  name: string,
  init: boolean,
  { seen, api }: { seen: ContainerSummary | undefined; api: ContainerStatus | undefined },
): ContainerExplained {
  const { running, terminated, waiting } = api?.state ?? {};
  const ended = terminated ?? api?.lastState.terminated;
  const endedAtMs = Date.parse(ended?.finishedAt ?? '');
  return {
    ...{ name, init },
    state: seen?.state ?? (running ? 'running' : terminated ? 'terminated' : 'waiting'),
    reason: seen?.reason || waiting?.reason || terminated?.reason || '',
    message: seen?.message || waiting?.message || terminated?.message || '',
    restarts: Math.max(seen?.restartCount ?? 0, api?.restartCount ?? 0),
    ...(seen?.nextStartAtMs === undefined ? {} : { nextStartAtMs: seen.nextStartAtMs }),
    ...(ended === undefined
      ? {}
      : {
          lastExit: {
            exitCode: ended.exitCode,
            signal: ended.signal ?? 0,
            reason: ended.reason ?? '',
            ...(Number.isFinite(endedAtMs) ? { atMs: endedAtMs } : {}),
          },
        }),
  };
}
