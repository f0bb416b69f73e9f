/** What `why` says of lower layers: drivers, plugins and the image service that failed or do not answer. Pure. */

import { type PeerWord, peerViews } from '@actorlet/kubelet/machines/pod/peers/peers.ts';
import { waitingPodsView } from '@actorlet/kubelet/machines/pods/admission/messages.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';

/** A call that takes longer is worth a word. */
const SLOW_MS = 5_000;
/** An error of no pod's call is told of for so long: the asker may never ask again. */
const OLD_MS = 3_600_000;

/** What is to be told now, of pods that are known; the oldest first. */
export function peerWords(m: Moment): PeerWord[] {
  const [pods, awaited] = [m.read(podsView)?.records, m.read(waitingPodsView)];
  const isTold = (w: PeerWord): boolean => {
    if (w.uid !== '' && pods?.has(w.uid) !== true && awaited?.has(w.uid) !== true) return false;
    if (isSlow(w, m.nowMs)) return true;
    return w.error !== '' && (w.uid !== '' || m.nowMs - w.failedMs < OLD_MS);
  };
  const all = Object.values(peerViews).flatMap((view) => [...(m.read(view)?.values() ?? [])].filter(isTold));
  return all.sort((a, b) => (a.waitingMs ?? a.failedMs) - (b.waitingMs ?? b.failedMs));
}

function isSlow(w: PeerWord, nowMs: number): boolean {
  return w.waitingMs !== null && nowMs - w.waitingMs >= SLOW_MS;
}

/** `nameOf`: a pod's name, by its UID. Absent: it goes without saying. */
export function peerText(w: PeerWord, nowMs: number, nameOf?: (uid: string) => string): string {
  const named = w.name === '' || w.peer.includes(w.name) || w.about === w.name ? '' : ` (${w.name})`;
  const about = w.about === '' ? '' : ` of ${w.about}`;
  const pod = w.uid === '' || nameOf === undefined ? '' : ` for ${nameOf(w.uid)}`;
  const waits = isSlow(w, nowMs) && w.waitingMs !== null ? [`no answer for ${shortDuration(nowMs - w.waitingMs)}`] : [];
  const times = w.failures > 1 ? ` (${w.failures} times)` : '';
  const failed = w.error === '' ? [] : [`failed ${shortDuration(nowMs - w.failedMs)} ago${times}: ${w.error}`];
  return `${w.peer}${named}: ${w.call}${about}${pod}: ${[...waits, ...failed].join('; ')}`;
}

/** Those that concern one pod: its own calls, and those of what is named in what is said of it already. */
export function peersOfPod(all: readonly PeerWord[], { uid, said }: { uid: string; said: readonly string[] }): PeerWord[] {
  const text = said.join('\n');
  return all.filter((w) => (w.uid === uid || isNamed(text, w.name)) && !isSaid(w, text));
}

/** An error that stands above already is not told twice. */
export function unsaid(all: readonly PeerWord[], said: readonly string[]): PeerWord[] {
  const text = said.join('\n');
  return all.filter((w) => !isSaid(w, text));
}

function isSaid(w: PeerWord, text: string): boolean {
  return w.waitingMs === null && w.error !== '' && text.includes(w.error);
}

/** As a name of its own, not as a part of another. */
function isNamed(text: string, name: string): boolean {
  if (name === '') return false;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (!isPart(text[at - 1]) && !isPart(text[at + name.length])) return true;
  }
  return false;
}
function isPart(char: string | undefined): boolean {
  return char !== undefined && /[\w-]/.test(char);
}
