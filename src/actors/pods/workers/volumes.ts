/** What a worker asks of the volume manager. A lost answer is no failure of the pod's: it is asked again. */
import type { Answer, ReplyTo } from '../../../machines/address.ts';
import type { Mount } from '../../../machines/cri.ts';
import type { Container, Pod } from '../../../machines/k8s.ts';
import type { Built } from '../../../machines/pods/config/result.ts';
import { addr, type VolumesResult, view } from '../../../machines/protocol.ts';
import { containerMounts } from '../../../machines/volumes/containerMounts.ts';
import { usedVolumes } from '../../../machines/volumes/spec.ts';
import { VOLUMES_WAIT_MS } from '../../../machines/volumes/volumesMachine.ts';
import type { Registry } from '../../kernel/types.ts';

/** Somewhat more than the volume manager's own wait: it tells what is missing. */
const ANSWER_MS = VOLUMES_WAIT_MS + 10_000;

/** Waits until everything that the pod's containers mount is set up. Without volumes nobody is asked. */
export async function askForVolumes(registry: Registry, pod: Pod, signal: AbortSignal): Promise<VolumesResult> {
  if (usedVolumes(pod).size === 0) return { ok: true, mounts: new Map() };
  const { uid } = pod.metadata;
  const question = (replyTo: ReplyTo<VolumesResult>) => ({ type: 'volumes.mount' as const, uid, pod, replyTo });
  return result(await registry.ask(addr.volumes, question, { timeoutMs: ANSWER_MS, signal }));
}

/** Waits until nothing of them is left. A manager that knows of no volume has none to take down; one that has not looked yet is asked. */
export async function giveBackVolumes(registry: Registry, pod: Pod, signal: AbortSignal): Promise<VolumesResult> {
  const { uid } = pod.metadata;
  if (usedVolumes(pod).size === 0 && registry.read(view.volumes)?.value.has(uid) === false) return { ok: true, mounts: new Map() };
  const question = (replyTo: ReplyTo<VolumesResult>) => ({ type: 'volumes.unmount' as const, uid, replyTo });
  return result(await registry.ask(addr.volumes, question, { timeoutMs: ANSWER_MS, signal }));
}

/**
 * They were set up before the sandbox, or by an earlier daemon: this is the question for where they are. A container that
 * mounts none waits for those of its pod, too: what runs keeps them from being taken for leftovers.
 */
export async function volumeMounts(
  registry: Registry,
  { pod, container }: { pod: Pod; container: Container },
  signal: AbortSignal,
): Promise<Built<Mount[]>> {
  const answer = await askForVolumes(registry, pod, signal);
  return answer.ok ? containerMounts(container, answer.mounts) : { ok: false, message: answer.failure.message };
}

function result(answer: Answer<VolumesResult>): VolumesResult {
  if (answer.kind === 'reply') return answer.value;
  const message = `the volume manager did not answer: ${answer.reason}; it is asked again`;
  return { ok: false, failure: { reason: 'VolumesUnavailable', message } };
}
