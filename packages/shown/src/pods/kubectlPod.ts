/** A pod in the columns READY, STATUS and RESTARTS of `kubectl get pods`. Pure. */
import type { ContainerStatus, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';

interface PodOf {
  spec: { containers?: readonly unknown[]; initContainers?: readonly { name: string; restartPolicy?: string }[] };
  status: Partial<PodStatus>;
  /** It has a deletion timestamp, or its manifest is gone. */
  deleted: boolean;
}

export interface KubectlPod {
  ready: number;
  /** Sidecars are among them. */
  containers: number;
  /** The reason that tells most: of the first init container that is not done, else of the first container that waits or has ended. */
  status: string;
  /** While the pod is initialized of init containers, later of all others. */
  restarts: number;
}

export function kubectlPod({ spec, status, deleted }: PodOf): KubectlPod {
  const inits = spec.initContainers ?? [];
  const names = new Set(inits.filter((init) => init.restartPolicy === 'Always').map((init) => init.name));
  const { initContainerStatuses: told = [], containerStatuses: containers = [] } = status;
  const isUp = (c: ContainerStatus): boolean => names.has(c.name) && c.started === true;
  const next = told.findIndex((c) => c.state.terminated?.exitCode !== 0 && !isUp(c));
  const reached = next < 0 ? told : told.slice(0, next + 1);
  const sidecars = reached.filter((c) => names.has(c.name));
  const isInitializing = next >= 0 && !holds(status, 'Initialized');
  const running = isInitializing ? [] : containers.filter((c) => c.ready && c.state.running !== undefined);
  const initializing = told[next];
  return {
    ready: running.length + sidecars.filter((c) => isUp(c) && c.ready && c.state.terminated?.exitCode !== 0).length,
    containers: (spec.containers?.length ?? 0) + names.size,
    status:
      deleted && !isOver(status) ? 'Terminating' : isInitializing ? initStatus(initializing, `${next}/${inits.length}`) : statusOf(status),
    restarts: (isInitializing ? reached : [...sidecars, ...containers]).reduce((sum, c) => sum + c.restartCount, 0),
  };
}

function initStatus(c: ContainerStatus | undefined, done: string): string {
  const reason = c === undefined ? undefined : reasonOf(c);
  return `Init:${reason === undefined || reason === 'PodInitializing' ? done : reason}`;
}

function statusOf(status: Partial<PodStatus>): string {
  const { containerStatuses = [], conditions = [], phase = 'Pending' } = status;
  const reason = containerStatuses.map(reasonOf).find((why) => why !== undefined);
  if (reason === 'Completed') {
    const failed = containerStatuses.find((c) => (c.state.terminated?.exitCode ?? 0) !== 0);
    const runs = containerStatuses.some((c) => c.ready && c.state.running !== undefined);
    if (runs && holds(status, 'Ready')) return 'Running';
    return (failed && reasonOf(failed)) ?? (runs ? 'NotReady' : reason);
  }
  const isGated = conditions.some((c) => c.type === 'PodScheduled' && c.reason === 'SchedulingGated');
  return reason ?? (isGated ? 'SchedulingGated' : status.reason || phase);
}

function reasonOf({ state: { waiting, terminated } }: ContainerStatus): string | undefined {
  if (terminated === undefined) return waiting?.reason || undefined;
  return terminated.reason || (terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`);
}

const holds = ({ conditions = [] }: Partial<PodStatus>, type: string): boolean =>
  conditions.some((c) => c.type === type && c.status === 'True');
const isOver = ({ phase }: Partial<PodStatus>): boolean => phase === 'Failed' || phase === 'Succeeded';
