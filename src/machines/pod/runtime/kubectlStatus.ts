/** The STATUS column of `kubectl get pods`. Pure. */
import type { ContainerStatus, PodStatus } from '../../kube/types.ts';

export interface StatusOf {
  spec: { initContainers?: readonly { name: string; restartPolicy?: string }[] };
  status: Partial<PodStatus>;
  /** It has a deletion timestamp, or its manifest is gone. */
  deleted: boolean;
}

/** The reason that tells most: of the first init container that is not done, else of the first container that waits or has ended. */
export function kubectlStatus({ spec, status, deleted }: StatusOf): string {
  if (deleted) return 'Terminating';
  const inits = spec.initContainers ?? [];
  const sidecars = new Set(inits.filter((init) => init.restartPolicy === 'Always').map((init) => init.name));
  const isDone = (c: ContainerStatus): boolean => c.state.terminated?.exitCode === 0 || (c.started === true && sidecars.has(c.name));
  const initStatuses = status.initContainerStatuses ?? [];
  const done = initStatuses.findIndex((c) => !isDone(c));
  const initializing = initStatuses[done];
  if (initializing !== undefined && status.phase === 'Pending') {
    const reason = reasonOf(initializing);
    return `Init:${reason === undefined || reason === 'PodInitializing' ? `${done}/${inits.length}` : reason}`;
  }
  const containers = status.containerStatuses ?? [];
  const reason = containers.map(reasonOf).find((why) => why !== undefined);
  const phase = status.reason ?? status.phase ?? 'Pending';
  return reason === undefined || (reason === 'Completed' && containers.some((c) => c.ready)) ? phase : reason;
}

function reasonOf({ state: { waiting, terminated } }: ContainerStatus): string | undefined {
  if (terminated !== undefined) return terminated.reason ?? `ExitCode:${terminated.exitCode}`;
  return waiting?.reason;
}
