/** What changing a container's resources in place asks of the runtime. */
import type { Pod } from '../../../../machines/kube/types.ts';
import type { ResizeStep } from '../../../../machines/pod/resources/actuation.ts';
import { WHOLE_POD } from '../../../../machines/pod/resources/amounts.ts';
import type { MemoryUsage, UsageOf } from '../../../../machines/pods/workers/resizeMachine.ts';
import { CRI_LABELS } from '../../../../machines/wire/cri.ts';
import type { CriContainerStats } from '../../../../machines/wire/criStats.ts';
import { CriError } from '../../../../ports/ports.ts';
import { type CriClient, criCall } from '../../../runtime/client.ts';
import type { Inspector } from '../inspect.ts';

/** gRPC's. */
const UNIMPLEMENTED = 12;

interface UsageBy {
  cri: CriClient;
  /** The runtime sums up a pod itself (gate PodAndContainerStatsFromCRI). */
  statsFromCri: boolean;
}
type PodOf = Pick<UsageOf, 'pod' | 'sandboxId'>;

/** With the page cache, as the kubelet takes it. The working set where the runtime tells no more. */
export async function memoryUsage(by: UsageBy, { containerIds, ...of }: UsageOf, signal: AbortSignal): Promise<MemoryUsage> {
  const used = new Map<string, number>();
  for (const containerId of containerIds) {
    const bytes =
      containerId === WHOLE_POD
        ? await podUsage(by, of, signal)
        : bytesOf((await by.cri.read('ContainerStats', { containerId }, { signal })).stats);
    if (bytes !== null) used.set(containerId, bytes);
  }
  return used;
}

async function podUsage({ cri, statsFromCri }: UsageBy, { pod, sandboxId }: PodOf, signal: AbortSignal): Promise<number | null> {
  const told = statsFromCri && sandboxId !== '' ? await sandboxUsage(cri, sandboxId, signal) : null;
  if (told !== null) return told;
  const filter = { labelSelector: { [CRI_LABELS.podUid]: pod.metadata.uid } };
  const { stats } = await cri.read('ListContainerStats', { filter }, { signal });
  const bytes = stats.map(bytesOf).filter((b) => b !== null);
  return bytes.length === 0 ? null : bytes.reduce((sum, b) => sum + b, 0);
}

/** Memory that the sandbox uses. Null: the runtime does not know the call, or gives no figure. */
async function sandboxUsage(cri: CriClient, podSandboxId: string, signal: AbortSignal): Promise<number | null> {
  try {
    const { stats } = await cri.read('PodSandboxStats', { podSandboxId }, { signal });
    return bytesOf(stats?.linux ?? null);
  } catch (error) {
    if (error instanceof CriError && error.code === UNIMPLEMENTED) return null;
    throw error;
  }
}

function bytesOf(stats: Pick<CriContainerStats, 'memory'> | null): number | null {
  const bytes = stats?.memory?.usageBytes?.value ?? stats?.memory?.workingSetBytes?.value;
  return bytes === undefined ? null : Number(bytes);
}

/** All or nothing, and what is not named stays as it is. Null: it is set. */
export async function updateResources(
  by: { cri: CriClient; inspector: Pick<Inspector, 'changed'>; incarnation: number },
  { pod, step }: { pod: Pod; step: ResizeStep },
  signal: AbortSignal,
): Promise<string | null> {
  const { containerId, linux } = step;
  if (containerId === WHOLE_POD) return null;
  const call = criCall('UpdateContainerResources', { containerId, linux });
  const [result] = await by.cri.act(pod.metadata.uid, by.incarnation, [call], { signal });
  // Whatever the outcome: what was read before says nothing about it any more.
  by.inspector.changed(containerId);
  if (result?.ok === true) return null;
  return `${step.resource} of container ${step.name} could not be changed: ${result?.error.details ?? 'no answer'}`;
}
