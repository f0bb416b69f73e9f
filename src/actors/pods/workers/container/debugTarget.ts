/** The container whose processes an ephemeral one is to see. */

import type { StartJob } from '../../../../machines/pods/workers/container/startJob.ts';
import { CRI_LABELS } from '../../../../machines/wire/cri.ts';
import type { CriClient } from '../../../runtime/client.ts';

/** Its newest instance, for the container's configuration; nothing where no container is aimed at, or there is none. */
export async function debugTarget(
  cri: CriClient,
  { pod, container }: StartJob,
  signal: AbortSignal,
): Promise<{ targetContainerId?: string }> {
  const name = pod.spec.ephemeralContainers?.find((c) => c.name === container.name)?.targetContainerName ?? '';
  if (name === '') return {};
  const labelSelector = { [CRI_LABELS.podUid]: pod.metadata.uid, [CRI_LABELS.containerName]: name };
  const { containers } = await cri.read('ListContainers', { filter: { labelSelector } }, { signal });
  const [newest] = [...containers].sort((a, b) => (BigInt(a.createdAt) > BigInt(b.createdAt) ? -1 : 1));
  return newest === undefined ? {} : { targetContainerId: newest.id };
}
