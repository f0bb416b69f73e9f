/** The containers of a test node: asked of its runtime, or, where that has no socket, read from the status of its pods. */
import { join } from 'node:path';
import { CRI_ANNOTATIONS, CRI_LABELS } from '@actorlet/kubelet/machines/wire/cri.ts';
import { containersOf, type PodView } from './history.ts';
import type { Charge } from './reaper/charge.ts';
import { isOwn } from './reaper/cleanup.ts';

/** A container as the runtime has it; on the hollow runtime, as the status of its pod has it. */
export interface ContainerView {
  id: string;
  /** Name of its pod without the node's suffix. */
  pod: string;
  name: string;
  state: 'created' | 'running' | 'exited' | 'unknown';
  /** 0 for the first run. */
  restartCount: number;
}

const STATES: Readonly<Record<string, ContainerView['state']>> = {
  CONTAINER_CREATED: 'created',
  CONTAINER_RUNNING: 'running',
  CONTAINER_EXITED: 'exited',
};

/** The same order each time, whatever the runtime's. */
function sorted(list: ContainerView[]): ContainerView[] {
  const key = (c: ContainerView): string => JSON.stringify([c.pod, c.name, String(c.restartCount).padStart(10, '0'), c.id]);
  return list.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** `short`: the name of a pod without the node's. */
export async function heldContainers(charge: Charge, short: (full: string) => string): Promise<ContainerView[]> {
  // gRPC is loaded by those who ask.
  const { connectTo } = await import('@actorlet/runtimes/src/process/admin.ts');
  const cri = connectTo(charge.runtime === 'containerd' ? charge.socket : join(charge.rootDir, 'sandbox', 'sandbox.sock'));
  try {
    const { containers } = await cri.call('ListContainers', {});
    return sorted(
      containers
        .filter((c) => isOwn(c.labels, charge.nodeName))
        .map((c) => ({
          id: c.id,
          pod: short(c.labels[CRI_LABELS.podName] ?? ''),
          name: c.metadata?.name ?? '',
          state: STATES[c.state] ?? 'unknown',
          restartCount: Number(c.annotations[CRI_ANNOTATIONS.restartCount] ?? 0),
        })),
    );
  } finally {
    cri.close();
  }
}

export function statedContainers(pods: readonly PodView[], short: (full: string) => string): ContainerView[] {
  return sorted(
    pods.flatMap((p) =>
      containersOf(p)
        .filter((c) => c.containerID !== undefined)
        .map((c) => ({
          id: (c.containerID ?? '').replace(/^.*:\/\//, ''),
          pod: short(p.name),
          name: c.name,
          state:
            c.state.running !== undefined ? 'running' : (c.state.terminated ?? c.lastState.terminated) !== undefined ? 'exited' : 'created',
          restartCount: c.restartCount,
        })),
    ),
  );
}
