/** What is asked of the image puller, and what it answers. */

import type { Image, PodSandboxConfig } from '../../cri.ts';
import type { PullPolicy } from '../../k8s.ts';
import type { StartFailure } from '../../pods/types.ts';
import type { PodRef } from '../../protocol.ts';
import type { Message, ReplyTo } from '../../supervision/address.ts';
import type { PullCredentials } from './keyring.ts';

export type ImageResult = { ok: true; imageRef: string; image: Image | null; pulled: boolean } | { ok: false; failure: StartFailure };
export type ImageEvent = Message & {
  type: 'image.ensure';
  uid: string;
  podRef: PodRef;
  container: string;
  /** Of the container, in the pod's definition: what events are about. */
  fieldPath: string;
  image: string;
  policy: PullPolicy;
  sandboxConfig: PodSandboxConfig;
  /** Of the pod's pull secrets, for this image; absent: none. Secret. */
  credentials?: PullCredentials;
  /** Of the pod; absent or '': it has none. */
  serviceAccount?: string;
  replyTo: ReplyTo<ImageResult>;
};
/** An image was removed: what is known of its pulls may be forgotten. */
export type ImageRemovedEvent = Message & { type: 'image.removed'; imageRef: string };
