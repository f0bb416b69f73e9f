/** Small CRI requests for tests: a sandbox and a busybox container with the labels the node itself would set. */
import { type ContainerConfig, CRI_LABELS, type PodSandboxConfig } from '../../../src/machines/wire/cri.ts';
import type { CriMethod, CriRequest, CriResponse } from '../../../src/machines/wire/criCalls.ts';
import type { Cri } from '../../../src/ports/ports.ts';
import { BUSYBOX_IMAGES } from './images.ts';

export function sandboxConfig(o: {
  name: string;
  uid: string;
  cgroupParent: string;
  hostNetwork?: boolean;
  logDirectory?: string;
}): PodSandboxConfig {
  return {
    metadata: { name: o.name, uid: o.uid, namespace: 'default', attempt: 0 },
    hostname: o.hostNetwork ? '' : o.name,
    ...(o.logDirectory === undefined ? {} : { logDirectory: o.logDirectory }),
    labels: { [CRI_LABELS.podName]: o.name, [CRI_LABELS.podNamespace]: 'default', [CRI_LABELS.podUid]: o.uid },
    annotations: {},
    linux: {
      cgroupParent: `${o.cgroupParent}/pod${o.uid}`,
      securityContext: { namespaceOptions: { network: o.hostNetwork ? 'NODE' : 'POD', pid: 'CONTAINER', ipc: 'POD' } },
    },
  };
}

export function containerConfig(o: { name: string; pod: string; uid: string; command: string[] }): ContainerConfig {
  return {
    metadata: { name: o.name, attempt: 0 },
    image: { image: BUSYBOX_IMAGES[0] },
    command: o.command,
    labels: {
      [CRI_LABELS.podName]: o.pod,
      [CRI_LABELS.podNamespace]: 'default',
      [CRI_LABELS.podUid]: o.uid,
      [CRI_LABELS.containerName]: o.name,
    },
    annotations: {},
    linux: { securityContext: { namespaceOptions: { network: 'POD', pid: 'CONTAINER', ipc: 'POD' } } },
  };
}

/** A call with a deadline and nothing to cancel it. */
export function call<M extends CriMethod>(cri: Cri, method: M, request: CriRequest<M>, timeoutMs = 30_000): Promise<CriResponse<M>> {
  return cri.call(method, request, { timeoutMs, signal: new AbortController().signal });
}

/** Sandbox, container, started. */
export async function runPod(
  cri: Cri,
  o: { name: string; uid: string; cgroupParent: string; command: string[]; hostNetwork?: boolean },
): Promise<{ sandboxId: string; containerId: string; config: PodSandboxConfig }> {
  const config = sandboxConfig(o);
  const { podSandboxId } = await call(cri, 'RunPodSandbox', { config });
  const container = containerConfig({ name: 'main', pod: o.name, uid: o.uid, command: o.command });
  const { containerId } = await call(cri, 'CreateContainer', { podSandboxId, config: container, sandboxConfig: config });
  await call(cri, 'StartContainer', { containerId });
  return { sandboxId: podSandboxId, containerId, config };
}
