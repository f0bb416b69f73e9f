/** What a worker asks of the volume manager. A lost answer is no failure of the pod's: it is asked again. */

import type { Container } from '../../../../machines/kube/podTable.ts';
import type { Pod } from '../../../../machines/kube/types.ts';
import { containerDevices, containerMounts, type MountedVolume } from '../../../../machines/pod/volumes/containerMounts.ts';
import { usedVolumes } from '../../../../machines/pod/volumes/mounting.ts';
import { podManagerAddr } from '../../../../machines/pods/manager/messages.ts';
import { type Built, built } from '../../../../machines/result.ts';
import { criView } from '../../../../machines/runtime/cri/messages.ts';
import {
  ATTACHMENT_LIMIT,
  type SubPathsResult,
  VOLUMES_WAIT_MS,
  type VolumesResult,
  volumesAddr,
  volumesView,
} from '../../../../machines/services/volumes/messages.ts';
import { type SubPathPart, subPathParts } from '../../../../machines/services/volumes/subPaths.ts';
import type { Answer, ReplyTo } from '../../../../machines/supervision/address.ts';
import type { Device, ImageSpec, Mount } from '../../../../machines/wire/cri.ts';
import type { ActorCtx, Registry } from '../../../supervision/types.ts';
import { runtimeHandler } from '../sandbox/runtimeClass.ts';
import { imageKey } from './images.ts';

/** Somewhat more than the volume manager's own wait: it tells what is missing. */
const ANSWER_MS = VOLUMES_WAIT_MS + 10_000;

/** Waits until everything that the pod's containers mount is set up. Without volumes nobody is asked. */
export async function askForVolumes(registry: Registry, pod: Pod, signal: AbortSignal): Promise<VolumesResult> {
  if (usedVolumes(pod).size === 0) return { ok: true, mounts: new Map() };
  const { uid } = pod.metadata;
  const question = (replyTo: ReplyTo<VolumesResult>) => ({ type: 'volumes.mount' as const, uid, pod, replyTo });
  const answer = result(await registry.ask(volumesAddr, question, { timeoutMs: ANSWER_MS, signal }));
  // Waiting is of no use.
  if (!answer.ok && answer.failure.reason === ATTACHMENT_LIMIT)
    registry.send(podManagerAddr, { type: 'pods.refuse', uid, refused: answer.failure });
  return answer;
}

/** Waits until nothing of them is left. A manager that knows of no volume has none to take down; one that has not looked yet is asked. */
export async function giveBackVolumes(registry: Registry, pod: Pod, signal: AbortSignal): Promise<VolumesResult> {
  const { uid } = pod.metadata;
  if (usedVolumes(pod).size === 0 && registry.read(volumesView)?.value.has(uid) === false) return { ok: true, mounts: new Map() };
  const question = (replyTo: ReplyTo<VolumesResult>) => ({ type: 'volumes.unmount' as const, uid, replyTo });
  return result(await registry.ask(volumesAddr, question, { timeoutMs: ANSWER_MS, signal }));
}

/** Nobody waits for what comes of it: containers end, or the stop is tried again. */
export function severVolumes(registry: Registry, pod: Pod): void {
  if (usedVolumes(pod).size > 0) registry.send(volumesAddr, { type: 'volumes.sever', uid: pod.metadata.uid });
}

/** As {@link askForVolumes}; none where they are not there, which its other question says. */
export async function mountedVolumes(registry: Registry, pod: Pod, signal: AbortSignal): Promise<ReadonlyMap<string, MountedVolume>> {
  const answer = await askForVolumes(registry, pod, signal);
  return answer.ok ? answer.mounts : new Map();
}

export interface MountsWanted {
  pod: Pod;
  container: Container;
  /** Its environment. */
  variables(): Built<ReadonlyMap<string, string>>;
  /** Images of volumes, as they were pulled. */
  images: ReadonlyMap<string, ImageSpec>;
  /** See {@link StartJob}. */
  handler?: string | undefined;
}

export interface MountsGiven {
  mounts: readonly Mount[];
  groups: readonly number[];
}

/**
 * Volumes were set up before the sandbox, or by an earlier daemon: this is the question for where they are. A container that mounts none
 * waits for those of its pod, too: what runs keeps them from being taken for leftovers. Parts of volumes are bound now, for this container.
 */
export async function volumeMounts(
  ctx: Pick<ActorCtx, 'ports' | 'registry' | 'signal'>,
  o: MountsWanted,
  signal: AbortSignal,
): Promise<Built<MountsGiven>> {
  const { pod, container } = o;
  const answer = await askForVolumes(ctx.registry, pod, signal);
  if (!answer.ok) return { ok: false, message: answer.failure.message };
  const parts = subPathParts(container, o.variables);
  if (!parts.ok) return parts;
  const bound = await boundParts(ctx.registry, { pod, container, mounted: answer.mounts, parts: parts.value }, signal);
  if (!bound.ok) return bound;
  const recursive = await recursiveReadOnly(ctx, o, signal);
  if (!recursive.ok) return recursive;
  const images = new Map<string, ImageSpec>();
  for (const { name } of container.volumeMounts ?? []) {
    const image = o.images.get(imageKey(container.name, name));
    if (image !== undefined) images.set(name, image);
  }
  const mounts = containerMounts(container, answer.mounts, { parts: bound.value, images, recursiveReadOnly: recursive.value });
  if (!mounts.ok) return mounts;
  return built({ mounts: mounts.value, groups: [...answer.mounts.values()].flatMap(({ group }) => group ?? []) });
}

/** The devices of volumes that a container names. */
export async function volumeDevices(
  registry: Registry,
  { pod, container }: Pick<MountsWanted, 'pod' | 'container'>,
  signal: AbortSignal,
): Promise<Built<Device[]>> {
  if ((container.volumeDevices ?? []).length === 0) return { ok: true, value: [] };
  const answer = await askForVolumes(registry, pod, signal);
  return answer.ok ? containerDevices(container, answer.mounts) : { ok: false, message: answer.failure.message };
}

/** Binds parts of volumes. The runtime itself finds the part of an image. */
async function boundParts(
  registry: Registry,
  o: { pod: Pod; container: Container; mounted: ReadonlyMap<string, MountedVolume>; parts: readonly SubPathPart[] },
  signal: AbortSignal,
): Promise<Built<ReadonlyMap<number, string>>> {
  const ofImages = o.parts.filter((p) => o.mounted.get(p.volume)?.image === true);
  const parts = o.parts.filter((p) => !ofImages.includes(p));
  const paths = new Map(ofImages.map((p) => [p.index, p.subPath]));
  if (parts.length === 0) return { ok: true, value: paths };
  const { uid } = o.pod.metadata;
  const question = (replyTo: ReplyTo<SubPathsResult>) => ({
    type: 'volumes.bind' as const,
    uid,
    container: o.container.name,
    parts,
    replyTo,
  });
  const bound = await registry.ask(volumesAddr, question, { timeoutMs: ANSWER_MS, signal });
  if (bound.kind !== 'reply') return { ok: false, message: unanswered(bound.reason) };
  return bound.value.ok ? { ok: true, value: new Map([...paths, ...bound.value.value]) } : bound.value;
}

/** What the runtime says of the handler that the pod runs under. The class is asked for only where a mount wants it and the runtime does not say. */
async function recursiveReadOnly(
  ctx: Pick<ActorCtx, 'ports' | 'registry' | 'signal'>,
  { pod, container, handler: present }: Pick<MountsWanted, 'pod' | 'container' | 'handler'>,
  signal: AbortSignal,
): Promise<Built<boolean>> {
  const wanted = (container.volumeMounts ?? []).some((m) => (m.recursiveReadOnly ?? 'Disabled') !== 'Disabled');
  if (!wanted) return { ok: true, value: false };
  const runtime = present === undefined ? await runtimeHandler(ctx, { pod }, signal) : { ok: true as const, handler: present };
  if (!runtime.ok) return runtime;
  const { handlers = [] } = ctx.registry.read(criView)?.value ?? {};
  return { ok: true, value: handlers.find((h) => h.name === runtime.handler)?.recursiveReadOnlyMounts === true };
}

function unanswered(reason: string): string {
  return `the volume manager did not answer: ${reason}; it is asked again`;
}
function result(answer: Answer<VolumesResult>): VolumesResult {
  if (answer.kind === 'reply') return answer.value;
  return { ok: false, failure: { reason: 'VolumesUnavailable', message: unanswered(answer.reason) } };
}
