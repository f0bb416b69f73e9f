/** Images that a container waits for: its own, and those that it mounts as volumes (resources and volumes 8.20). */

import type { PullPolicy } from '../../../../machines/kube/words.ts';
import { podRef } from '../../../../machines/pod/names.ts';
import { eventFieldPath } from '../../../../machines/pod/runtime/killOrder.ts';
import { mountedImages } from '../../../../machines/pod/volumes/volumes.ts';
import type { StartJob } from '../../../../machines/pods/workers/container/startJob.ts';
import { type ImageResult, imagePullerAddr } from '../../../../machines/runtime/imagePuller/messages.ts';
import type { ReplyTo } from '../../../../machines/supervision/address.ts';
import type { ImageSpec, PodSandboxConfig } from '../../../../machines/wire/cri.ts';
import { credentialsFor, serviceAccountOf } from '../../../services/client.ts';
import type { ActorCtx } from '../../../supervision/types.ts';

/** A pull has no deadline of its own; this only bounds how long an answer is waited for if the puller is lost. */
const PULL_ANSWER_MS = 24 * 3_600_000;

export interface ImagesWanted {
  job: StartJob;
  sandboxConfig: PodSandboxConfig;
  /** Where the images of volumes go, by container and volume: {@link imageKey}. */
  volumes: Map<string, ImageSpec>;
  /** To the events of the pod. */
  warn(reason: string, message: string): void;
}
type Ctx = Pick<ActorCtx, 'ports' | 'registry'>;

export function imageKey(container: string, volume: string): string {
  return `${container}/${volume}`;
}

/** Images of volumes come first, each by its own policy; the first that cannot be had is what the container waits for. */
export async function ensureImages(ctx: Ctx, o: ImagesWanted, signal: AbortSignal): Promise<ImageResult> {
  const { container, pod } = o.job;
  const { annotations = {} } = pod.metadata;
  for (const { volume, reference, policy } of mountedImages(pod, container)) {
    const result = await ensure(ctx, { ...o, image: reference, policy }, signal);
    if (!result.ok) return result;
    o.volumes.set(imageKey(container.name, volume), { image: result.imageRef, userSpecifiedImage: reference, annotations });
  }
  return ensure(ctx, { ...o, image: container.image ?? '', policy: container.imagePullPolicy ?? 'IfNotPresent' }, signal);
}

async function ensure(ctx: Ctx, o: ImagesWanted & { image: string; policy: PullPolicy }, signal: AbortSignal): Promise<ImageResult> {
  const { job, image, policy, sandboxConfig } = o;
  const { credentials, missing } = await credentialsFor(ctx, { pod: job.pod, image }, signal);
  if (missing.length > 0) {
    const message = `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`;
    o.warn('FailedToRetrieveImagePullSecret', message);
  }
  const answer = await ctx.registry.ask(
    imagePullerAddr,
    (replyTo: ReplyTo<ImageResult>) => ({
      type: 'image.ensure' as const,
      uid: job.pod.metadata.uid,
      podRef: podRef(job.pod),
      container: job.container.name,
      fieldPath: eventFieldPath(job.pod, job.container.name),
      image,
      annotations: job.pod.metadata.annotations ?? {},
      policy,
      sandboxConfig,
      credentials,
      serviceAccount: serviceAccountOf(job.pod),
      causes: job.causes,
      replyTo,
    }),
    { timeoutMs: PULL_ANSWER_MS, signal },
  );
  if (answer.kind === 'reply') return answer.value;
  const message = `the image puller did not answer: ${answer.reason}; it is asked again`;
  return { ok: false, failure: { reason: 'ErrImagePull', message } };
}
