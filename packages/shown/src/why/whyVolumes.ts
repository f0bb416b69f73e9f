/** What `why` says of volumes that do not stand as they should. Pure. */
import { pluginShown } from '@actorlet/kubelet/machines/pod/volumes/volumes.ts';
import type { VolumeSummary, VolumesView } from '@actorlet/kubelet/machines/services/volumes/messages.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';

const WORDS: Readonly<Record<string, string>> = {
  mounting: 'being set up',
  failed: 'cannot be set up, is tried again',
  stale: 'cannot be refreshed, keeps what it has',
  unmounting: 'being taken down',
  unmountFailed: 'cannot be taken down, is tried again',
};
/** A local volume is set up or taken down within it: one that takes longer is worth a word about the node. */
const SLOW_MS = 5_000;

function line({ name, plugin, state, message, sinceMs }: VolumeSummary, nowMs: number): string {
  const why = message === '' ? '' : `: ${message}`;
  return `${name} (${pluginShown({ plugin })}): ${WORDS[state] ?? state} for ${shortDuration(nowMs - sinceMs)}${why}`;
}

/** Volumes of one pod. */
export function volumeLines(volumes: readonly VolumeSummary[], nowMs: number): string[] {
  const shown = volumes.filter(({ state }) => Object.hasOwn(WORDS, state));
  return shown.length === 0 ? [] : ['Volumes', ...shown.map((v) => `  ${line(v, nowMs)}`)];
}

/** Volumes of all pods that wait or failed. `nameOf`: a pod's name, by its UID. */
export function stuckVolumes(volumes: VolumesView, nowMs: number, nameOf: (uid: string) => string): string[] {
  const stuck = (v: VolumeSummary) => Object.hasOwn(WORDS, v.state) && (v.message !== '' || nowMs - v.sinceMs >= SLOW_MS);
  return [...volumes].flatMap(([uid, all]) => all.filter(stuck).map((v) => `${nameOf(uid)}: ${line(v, nowMs)}`));
}
