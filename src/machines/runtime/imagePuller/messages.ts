/** What is asked of the image puller, and what it answers. */

import { parseImageRef } from '../../kube/imageRef.ts';
import type { PullPolicy } from '../../kube/words.ts';
import type { PodRef } from '../../pod/names.ts';
import type { StartFailure } from '../../pod/runtime/seen.ts';
import { address, type Message, type ReplyTo, viewKey } from '../../supervision/address.ts';
import type { Image, PodSandboxConfig, StringMap } from '../../wire/cri.ts';
import type { PullCredentials } from './keyring.ts';

export type ImageResult = { ok: true; imageRef: string; image: Image | null; pulled: boolean } | { ok: false; failure: StartFailure };
export type ImageEvent = Message & {
  type: 'image.ensure';
  uid: string;
  podRef: PodRef;
  container: string;
  /** The container in the pod's definition, which events are about. */
  fieldPath: string;
  image: string;
  /** The pod's. Snapshotters of a runtime read them. */
  annotations?: StringMap;
  policy: PullPolicy;
  sandboxConfig: PodSandboxConfig;
  /** The pod's pull secrets for this image; absent: none. Secret. */
  credentials?: PullCredentials;
  /** The pod's service account; absent or '': it has none. */
  serviceAccount?: string;
  replyTo: ReplyTo<ImageResult>;
};
/** An image was removed: what is known of its pulls may be forgotten. */
export type ImageRemovedEvent = Message & { type: 'image.removed'; imageRef: string };

/** By pod UID, from the first to the last pull for it by this incarnation of the puller; pods without one are not in it. */
export const imagePulls = viewKey<ReadonlyMap<string, Span>>('imagePulls');

/** Wall ms. */
export interface Span {
  fromMs: number;
  toMs: number;
}

/** In full, so that two ways to write one image are the same. */
export function fullNameOf(image: string): string {
  const parsed = parseImageRef(image);
  if (!parsed.ok) return image;
  const { domain, path, tag, digest } = parsed.ref;
  return `${domain}/${path}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`;
}

/** Folder of the records below the root directory. */
export function pullRecordsDir(rootDir: string): string {
  return `${rootDir}/image_manager`;
}

export const imagePullerAddr = address<ImageEvent | ImageRemovedEvent>('node/runtime/imagePuller');
