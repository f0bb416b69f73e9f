/** Messages of garbage collection and housekeeping. */
import { address, type Message, type ReplyTo, viewKey } from '../supervision/address.ts';

/**
 * UIDs of pods whose directories are being removed just now. The remover publishes a UID first and then asks once more
 * whether the pod is unknown; who wants a pod is known first and then waits until its UID is not in here. So neither takes
 * from the other, also when a static pod comes back under the UID that it had.
 */
export const removingDirs = viewKey<ReadonlySet<string>>('removingDirs');

/** `urgent`: the disk is nearly full. The sweep begins at once, and pods that have ended keep no container. */
export type ContainerGcEvent = Message & { type: 'gc.run'; why: string; urgent?: true };

/** Frees the room of every image that nobody uses; answered when that was tried. */
export type ImageGcEvent = Message & { type: 'images.free'; replyTo: ReplyTo<{ freedBytes: number }> };

export type HousekeepingEvent = Message & { type: 'housekeeping.run'; why: string };
export const containerGcAddr = address<ContainerGcEvent>('node/reclaim/containerGc');
export const imageGcAddr = address<ImageGcEvent>('node/reclaim/imageGc');
export const housekeepingAddr = address<HousekeepingEvent>('node/reclaim/housekeeping');
