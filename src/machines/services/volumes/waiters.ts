/** Workers that wait for volumes of their pods, or for their end, and what they are answered. */

import type { Pod } from '../../kube/types.ts';
import { volumeKey } from '../../pod/volumes/volumePaths.ts';
import { podVolumes } from '../../pod/volumes/volumes.ts';
import { isClaimProblem } from './claims.ts';
import { isWait, NO_ATTACHER, NO_ROOM } from './csi/volume.ts';
import { ATTACHMENT_LIMIT, type VolumesResult } from './messages.ts';
import { type ActualState, isMounted, mountedVolumes, timedOut, unmountedNames, volumesOfPod } from './reconcile.ts';

export interface Waiter {
  /** Number of the question. */
  ask: number;
  uid: string;
  /** Null: waits for the end. */
  pod: Pod | null;
}
/** UIDs of pods whose end is waited for. */
export function givenBack(waiters: readonly Waiter[]): string[] {
  return waiters.filter((w) => w.pod === null).map((w) => w.uid);
}

const isRefusedForRoom = (error: string): boolean => error.endsWith(NO_ROOM);
const isUnattached = (error: string): boolean => isWait(error) || isRefusedForRoom(error) || error === NO_ATTACHER;

const LIMIT_REACHED = 'Node has reached its volume attachment limit, rejecting pod.';
/** What an answer follows from. */
interface Waited {
  rootDir: string;
  actual: ActualState;
  error: string;
}

/** `scanned`: what is on disk is known. */
interface Late extends Waited {
  scanned: boolean;
  unanswered: readonly string[];
}

/** Undefined: it waits on. */
export function outcome({ actual, rootDir }: Waited, waiter: Waiter): VolumesResult | undefined {
  if (waiter.pod === null) return volumesOfPod(actual, waiter.uid).length === 0 ? { ok: true, mounts: new Map() } : undefined;
  const [bad] = podVolumes(waiter.pod).failed;
  if (bad !== undefined) {
    const message = `Unable to attach or mount volumes: volume "${bad.name}": ${bad.message}`;
    return { ok: false, failure: { reason: 'FailedMount', message } };
  }
  if (unmountedNames(waiter.pod, actual, volumeKey).length > 0) return undefined;
  return { ok: true, mounts: mountedVolumes(waiter.pod, actual, rootDir) };
}

/** A volume, and who asks for it, are of one pod: the others have nothing new to hear. */
export function concerns(event: { type: string; key?: string; uid?: string }, uid: string): boolean {
  if (event.type === 'volume.changed') return event.key?.startsWith(`${uid}/`) === true;
  return event.type === 'volumes.mount' || event.type === 'volumes.unmount' ? event.uid === uid : true;
}

/** Its time is over. */
export function lateness(o: Late, waiter: Waiter): { reason: string; message: string } {
  const { actual, scanned, error } = o;
  const waits = o.unanswered.map((words) => `; ${words}`).join('');
  if (waiter.pod !== null) {
    const open = volumesOfPod(actual, waiter.uid).filter((a) => !isMounted(a.phase));
    const named = (is: (error: string) => boolean) => open.filter((a) => is(a.error)).map((a) => a.ref.name);
    const message = timedOut({
      unmounted: unmountedNames(waiter.pod, actual, volumeKey),
      unattached: named(isUnattached).sort(),
      unknown: named(isClaimProblem).sort(),
    });
    if (named(isRefusedForRoom).length > 0) return { reason: ATTACHMENT_LIMIT, message: `${LIMIT_REACHED} ${message}` };
    return { reason: 'FailedMount', message: scanned ? `${message}${waits}` : `${message}; ${error}` };
  }
  const left = volumesOfPod(actual, waiter.uid).map((a) => (a.error === '' ? a.ref.name : `${a.ref.name} (${a.error})`));
  return {
    reason: 'FailedUnmount',
    message: `volumes are still there: ${left.join(', ') || error || 'the disk was not read yet'}${waits}`,
  };
}
