/** Pods made by bare CRI calls, with no node agent there: what the runtime itself needs on this machine at this hour. */

import type { Containerd } from '../../test/e2e/lab/containerd.ts';
import { BUSYBOX_IMAGES } from '../../test/e2e/lab/images.ts';

const ms = (nanos: string): number => Number(BigInt(nanos) / 1000n) / 1000;

/** `count` pods at the same moment; gives of each the milliseconds until the runtime says that it started. Leaves nothing. */
export async function bareBurst(lab: Containerd, o: { count: number; round: number; logs: string; script: string }): Promise<number[]> {
  const from = Date.now();
  const { cri } = lab;
  const long = { timeoutMs: 120_000, signal: new AbortController().signal };
  const one = async (i: number): Promise<{ podSandboxId: string; startedMs: number }> => {
    const name = `bare${o.round}x${i}`;
    const config = {
      metadata: { name, namespace: 'default', uid: name, attempt: 0 },
      hostname: name,
      logDirectory: `${o.logs}/${name}`,
      linux: {
        cgroupParent: lab.cgroupParent,
        securityContext: { namespaceOptions: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } },
      },
    } as const;
    const { podSandboxId } = await cri.call('RunPodSandbox', { config }, long);
    const main = {
      metadata: { name: 'main', attempt: 0 },
      image: { image: BUSYBOX_IMAGES[1] },
      command: ['sh', '-c', o.script],
      logPath: 'main.log',
    };
    const { containerId } = await cri.call('CreateContainer', { podSandboxId, config: main, sandboxConfig: config }, long);
    await cri.call('StartContainer', { containerId }, long);
    const { status } = await cri.call('ContainerStatus', { containerId }, long);
    if (status === null) throw new Error(`container ${containerId} has no status`);
    return { podSandboxId, startedMs: ms(status.startedAt) - from };
  };
  const made = await Promise.all(Array.from({ length: o.count }, (_, i) => one(i)));
  for (const { podSandboxId } of made) {
    await cri.call('StopPodSandbox', { podSandboxId }, long);
    await cri.call('RemovePodSandbox', { podSandboxId }, long);
  }
  return made.map((m) => m.startedMs);
}
