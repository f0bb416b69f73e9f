/**
 * Pods made and removed by bare CRI calls, with no node agent there: what the runtime itself needs on this machine at this hour.
 * They have what every kubelet gives each pod and container: a cgroup parent of its own, masked paths, shares, the mounts of
 * /etc/hosts, of the termination message and of a token.
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MASKED_PATHS, READONLY_PATHS } from '../../src/machines/pods/workers/config/security.ts';
import type { Containerd } from '../../test/e2e/lab/containerd.ts';
import { BUSYBOX_IMAGES } from '../../test/e2e/lab/images.ts';

const ms = (nanos: string): number => Number(BigInt(nanos) / 1000n) / 1000;

export interface BarePod {
  podSandboxId: string;
  containerId: string;
  /** From the start of the burst until the moment that the runtime names as the container's start. */
  startedMs: number;
}

const STOP_ATTEMPTS = 5;
const long = () => ({ timeoutMs: 120_000, signal: new AbortController().signal });

const TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Of a container without requests, as the reference has it. */
const RESOURCES = { cpuShares: 2, cpuPeriod: 100_000, cpuQuota: 0, oomScoreAdj: 1_000 } as const;

/** In `dir`, which is made: files and folders that a container finds mounted. */
function mountsIn(dir: string) {
  mkdirSync(join(dir, 'token'), { recursive: true });
  for (const file of ['hosts', 'termination-log']) writeFileSync(join(dir, file), '');
  return [
    { containerPath: TOKEN, hostPath: join(dir, 'token'), readonly: true },
    { containerPath: '/etc/hosts', hostPath: join(dir, 'hosts'), readonly: false },
    { containerPath: '/dev/termination-log', hostPath: join(dir, 'termination-log'), readonly: false },
  ];
}

/** `count` pods at the same moment. Leaves them running: {@link bareRemoval}. */
export async function bareBurst(lab: Containerd, o: { count: number; round: number; logs: string; script: string }): Promise<BarePod[]> {
  const from = Date.now();
  const { cri } = lab;
  const namespaceOptions = { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } as const;
  const one = async (i: number): Promise<BarePod> => {
    const name = `bare${o.round}x${i}`;
    const config = {
      metadata: { name, namespace: 'default', uid: name, attempt: 0 },
      hostname: name,
      logDirectory: `${o.logs}/${name}`,
      linux: {
        cgroupParent: `${lab.cgroupParent}/${name}`,
        securityContext: { namespaceOptions },
      },
    } as const;
    const { podSandboxId } = await cri.call('RunPodSandbox', { config }, long());
    const main = {
      metadata: { name: 'main', attempt: 0 },
      image: { image: BUSYBOX_IMAGES[1] },
      command: ['sh', '-c', o.script],
      logPath: 'main.log',
      mounts: mountsIn(join(o.logs, name)),
      linux: {
        resources: RESOURCES,
        securityContext: { namespaceOptions, maskedPaths: [...MASKED_PATHS], readonlyPaths: [...READONLY_PATHS] },
      },
    };
    const { containerId } = await cri.call('CreateContainer', { podSandboxId, config: main, sandboxConfig: config }, long());
    await cri.call('StartContainer', { containerId }, long());
    const { status } = await cri.call('ContainerStatus', { containerId }, long());
    if (status === null) throw new Error(`container ${containerId} has no status`);
    return { podSandboxId, containerId, startedMs: ms(status.startedAt) - from };
  };
  return Promise.all(Array.from({ length: o.count }, (_, i) => one(i)));
}

/** Stops them at the same moment; gives of each the milliseconds until container and sandbox are stopped, as long as a pod is in the API. */
export function bareStop(lab: Containerd, pods: readonly BarePod[], graceSeconds: number): Promise<number[]> {
  return each(pods, async ({ podSandboxId, containerId }) => {
    await stopContainer(lab, containerId, graceSeconds);
    await lab.cri.call('StopPodSandbox', { podSandboxId }, long());
  });
}

/** containerd answers "ttrpc: closed" when the last process of a shim ends while it is sent a signal. The next call finds the container ended. */
async function stopContainer(lab: Containerd, containerId: string, graceSeconds: number): Promise<void> {
  for (let left = STOP_ATTEMPTS; ; left--) {
    try {
      await lab.cri.call('StopContainer', { containerId, timeout: graceSeconds }, long());
      return;
    } catch (error) {
      if (left <= 1 || !String(error).includes('ttrpc: closed')) throw error;
    }
  }
}

/** Removes what {@link bareStop} stopped; gives of each the milliseconds until nothing of it is left in the runtime. */
export function bareRemoval(lab: Containerd, pods: readonly BarePod[]): Promise<number[]> {
  return each(pods, async ({ podSandboxId, containerId }) => {
    await lab.cri.call('RemoveContainer', { containerId }, long());
    await lab.cri.call('RemovePodSandbox', { podSandboxId }, long());
  });
}

function each(pods: readonly BarePod[], calls: (pod: BarePod) => Promise<void>): Promise<number[]> {
  const from = performance.now();
  return Promise.all(
    pods.map(async (pod) => {
      await calls(pod);
      return performance.now() - from;
    }),
  );
}
