/** What changing a container's resources in place asks of the runtime. */
import type { Pod } from '../../../../machines/kube/types.ts';
import type { ResizeStep } from '../../../../machines/pod/resources/actuation.ts';
import { type CriClient, criCall } from '../../../runtime/client.ts';
import type { Inspector } from '../inspect.ts';

/** The working set, as the reference takes it; null: the runtime does not say. */
export async function memoryUsage(cri: CriClient, containerId: string, signal: AbortSignal): Promise<number | null> {
  const { stats } = await cri.read('ContainerStats', { containerId }, { signal });
  const bytes = stats?.memory?.workingSetBytes?.value ?? stats?.memory?.usageBytes?.value;
  return bytes === undefined ? null : Number(bytes);
}

/** All or nothing, and what is not named stays as it is. Null: it is set. */
export async function updateResources(
  by: { cri: CriClient; inspector: Pick<Inspector, 'changed'>; incarnation: number },
  { pod, step }: { pod: Pod; step: ResizeStep },
  signal: AbortSignal,
): Promise<string | null> {
  const { containerId, linux } = step;
  const call = criCall('UpdateContainerResources', { containerId, linux });
  const [result] = await by.cri.act(pod.metadata.uid, by.incarnation, [call], { signal });
  // Whatever the outcome: what was read before says nothing about it any more.
  by.inspector.changed(containerId);
  if (result?.ok === true) return null;
  return `${step.resource} of container ${step.name} could not be changed: ${result?.error.details ?? 'no answer'}`;
}
