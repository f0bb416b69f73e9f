/** What a hollow runtime had when its process ended, from the pods' statuses: state of a fleet is in the API server alone. Pure. */
import type { Container } from '@actorlet/kubelet/machines/kube/podTable.ts';
import type { ContainerStatus, Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { ANNOTATION_AGENT } from '@actorlet/kubelet/machines/pod/names.ts';
import { pathName } from '@actorlet/kubelet/machines/pod/pathName.ts';
import { containerLogPath, podFolder, podLogDir } from '@actorlet/kubelet/machines/pod/runtime/logNames.ts';
import { containerAnnotations } from '@actorlet/kubelet/machines/pods/workers/config/containerConfig.ts';
import { podLabels } from '@actorlet/kubelet/machines/pods/workers/config/sandboxConfig.ts';
import { sandboxSecurity } from '@actorlet/kubelet/machines/pods/workers/config/security.ts';
import { CRI_LABELS } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { HollowHeld, HollowHeldContainer } from '@actorlet/runtimes/src/hollow/index.ts';

/** Null: it had nothing of this pod, or the pod has ended. */
export function heldOf(pod: Pod, logsDir: string): HollowHeld | null {
  const { metadata, spec, status } = pod;
  if (status.phase === 'Succeeded' || status.phase === 'Failed') return null;
  const all: [readonly Container[] | undefined, readonly ContainerStatus[] | undefined][] = [
    [spec.initContainers, status.initContainerStatuses],
    [spec.containers, status.containerStatuses],
    [spec.ephemeralContainers, status.ephemeralContainerStatuses],
  ];
  const containers = all.flatMap(([ones = [], statuses = []]) => ones.flatMap((container) => containerOf(pod, container, statuses) ?? []));
  if (containers.length === 0) return null;
  return {
    config: {
      metadata: { name: metadata.name, namespace: metadata.namespace, uid: metadata.uid, attempt: 0 },
      logDirectory: podLogDir(logsDir, podFolder(metadata)),
      labels: { ...metadata.labels, ...podLabels(pod) },
      annotations: { ...metadata.annotations, [ANNOTATION_AGENT]: 'actorlet' },
      linux: { securityContext: sandboxSecurity(pod) },
    },
    runtimeHandler: '',
    ip: spec.hostNetwork === true ? '' : (status.podIP ?? ''),
    createdAtMs: Math.min(...containers.map((c) => c.startedAtMs)),
    containers,
  };
}

/** Its newest instance. One that waits for its next start is shown as it ended. */
function containerOf(pod: Pod, container: Container, statuses: readonly ContainerStatus[]): HollowHeldContainer | undefined {
  const status = statuses.find((s) => s.name === container.name);
  if (status === undefined) return undefined;
  const { running, terminated = status.state.waiting === undefined ? undefined : status.lastState.terminated } = status.state;
  const id = /^.*:\/\/(.+)$/.exec(terminated?.containerID ?? status.containerID ?? '')?.[1];
  if (id === undefined || (running === undefined && terminated === undefined)) return undefined;
  const { restartCount } = status;
  const ms = (time: string | undefined | null): number => Date.parse(time ?? '') || 0;
  return {
    id,
    config: {
      metadata: { name: container.name, attempt: restartCount },
      image: { image: container.image ?? '', userSpecifiedImage: container.image ?? '' },
      labels: { [CRI_LABELS.containerName]: container.name, ...podLabels(pod) },
      annotations: containerAnnotations(pod, container, restartCount),
      logPath: containerLogPath(pathName(container.name), restartCount),
    },
    state: running === undefined ? 'CONTAINER_EXITED' : 'CONTAINER_RUNNING',
    startedAtMs: ms((running ?? terminated)?.startedAt),
    finishedAtMs: ms(terminated?.finishedAt),
    exitCode: terminated?.exitCode ?? 0,
    reason: terminated?.reason ?? '',
  };
}
