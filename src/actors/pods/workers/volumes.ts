/** What a worker asks of the volume manager. A lost answer is no failure of the pod's: it is asked again. */
import type { Answer, ReplyTo } from '../../../machines/address.ts';
import type { Mount } from '../../../machines/cri.ts';
import type { Container, Pod } from '../../../machines/k8s.ts';
import type { Built } from '../../../machines/pods/config/result.ts';
import { addr, type SubPathsResult, type VolumesResult, view } from '../../../machines/protocol.ts';
import { containerMounts } from '../../../machines/volumes/containerMounts.ts';
import { usedVolumes } from '../../../machines/volumes/spec.ts';
import { subPathParts } from '../../../machines/volumes/subPaths.ts';
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
 * mounts none waits for those of its pod, too: what runs keeps them from being taken for leftovers. Parts of volumes are
 * bound now, for this container.
 */
export async function volumeMounts(
  registry: Registry,
  o: { pod: Pod; container: Container; variables(): Built<ReadonlyMap<string, string>> },
  signal: AbortSignal,
): Promise<Built<Mount[]>> {
  const { pod, container } = o;
  const answer = await askForVolumes(registry, pod, signal);
  if (!answer.ok) return { ok: false, message: answer.failure.message };
  const parts = subPathParts(container, o.variables);
  if (!parts.ok) return parts;
  if (parts.value.length === 0) return containerMounts(container, answer.mounts);
  const { uid } = pod.metadata;
  const question = (replyTo: ReplyTo<SubPathsResult>) => ({
    type: 'volumes.bind' as const,
    uid,
    container: container.name,
    parts: parts.value,
    replyTo,
  });
  const bound = await registry.ask(addr.volumes, question, { timeoutMs: ANSWER_MS, signal });
  if (bound.kind !== 'reply') return { ok: false, message: unanswered(bound.reason) };
  return bound.value.ok ? containerMounts(container, answer.mounts, bound.value.value) : bound.value;
}

function unanswered(reason: string): string {
  return `the volume manager did not answer: ${reason}; it is asked again`;
}
function result(answer: Answer<VolumesResult>): VolumesResult {
  if (answer.kind === 'reply') return answer.value;
  return { ok: false, failure: { reason: 'VolumesUnavailable', message: unanswered(answer.reason) } };
}
