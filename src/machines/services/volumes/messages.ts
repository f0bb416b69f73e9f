/** What is asked of the volume manager, what it answers, and what it publishes of volumes. */

import type { Pod } from '../../kube/types.ts';
import type { StartFailure } from '../../pod/runtime/seen.ts';
import type { MountedVolume } from '../../pod/volumes/containerMounts.ts';
import type { Stand } from '../../pod/volumes/volumePaths.ts';
import type { Built } from '../../result.ts';
import { address, type Message, type ReplyTo, viewKey } from '../../supervision/address.ts';
import type { SubPathPart } from './subPaths.ts';

/** What a worker gets for its question: `mounts` by volume name. */
export type VolumesResult = { ok: true; mounts: ReadonlyMap<string, MountedVolume> } | { ok: false; failure: StartFailure };
/** Reason of a failure that no wait mends: the pod fails, so that another node gets it. */
export const ATTACHMENT_LIMIT = 'VolumeAttachmentLimitExceeded';
export type SubPathsResult = Built<ReadonlyMap<number, string>>;
export type VolumesEvent = Message &
  /** Set up what this pod's containers mount; answered when all of it is, or after 2 min 3 s with what is missing. */
  (
    | { type: 'volumes.mount'; uid: string; pod: Pod; replyTo: ReplyTo<VolumesResult> }
    /** No container of this pod runs any more: take its volumes down; answered when nothing is left. */
    | { type: 'volumes.unmount'; uid: string; replyTo: ReplyTo<VolumesResult> }
    /** Bind these parts of volumes that are set up for a container of that name; answered with where they are, by index. */
    | { type: 'volumes.bind'; uid: string; container: string; parts: readonly SubPathPart[]; replyTo: ReplyTo<SubPathsResult> }
    /** Containers of this pod do not end, killed or not: a server that is dead, and serves such pods alone, is given up. */
    | { type: 'volumes.sever'; uid: string }
    /** Compare this pod's files with what they are made of; without a UID: every pod's. `changed`: that is another now, so a failed volume may succeed. */
    | { type: 'volumes.refresh'; uid?: string; changed?: boolean }
    /** Something that volumes waited for may be there: those that failed are tried at once. */
    | { type: 'volumes.retry' }
  );
export interface VolumeSummary {
  name: string;
  /** As in directory names, e.g. `kubernetes.io~empty-dir`. */
  plugin: string;
  /** What serves it, as metrics name it: `kubernetes.io/csi:DRIVER`. */
  servedBy: string;
  /** What a claim's volume is called on disk. Absent: as above, or it does not stand. */
  stands?: Stand;
  /** Phase of the volume's statechart: mounting, mounted, stale, failed, uncertain, unmounting, unmountFailed. */
  state: string;
  /** What went wrong last; '' when nothing did. */
  message: string;
  sinceMs: number;
}
/** By pod UID; a pod without volumes has no entry. */
export type VolumesView = ReadonlyMap<string, readonly VolumeSummary[]>;

/** How long a worker waits for its volumes, and for their end (resources and volumes 8.1). */
export const VOLUMES_WAIT_MS = 123_000;

export const volumesAddr = address<VolumesEvent>('node/services/volumes');
export const volumesView = viewKey<VolumesView>('volumes');

/** Names of attachable volumes that this node needs, sorted; not there before the disk was looked at. */
export const volumesInUseView = viewKey<readonly string[]>('volumesInUse');
