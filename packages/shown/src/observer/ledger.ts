/** What an observing node keeps, as a view and in words. */

import type { Disagreement, ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { viewKey } from '@actorlet/kubelet/machines/supervision/address.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';

/** Of a node that observes; others have none. */
export const observerView = viewKey<ObserverLedger>('observer');

/** What is under way takes this long. */
const UNDER_WAY_MS = 2_000;

/** `the kubelet has not made the sandbox (attempt 0) for 41s`, of what it has not done for a while. */
export function notYet(ledger: ObserverLedger | undefined, nowMs: number, of: { uid: string }): string[] {
  const differing = standing(ledger).filter((d) => d.uid === of.uid && d.sort === 'differs');
  const late = (ledger?.expected ?? []).filter(
    (act) => act.uid === of.uid && nowMs - act.sinceMs >= UNDER_WAY_MS && !differing.some((d) => d.kind === act.kind),
  );
  return late.map((act) => `the kubelet has not ${act.what} for ${shortDuration(nowMs - act.sinceMs)}`);
}

/** In words that a line has room for. */
export function disagreementText(d: Disagreement, nowMs: number): string {
  const end =
    d.settledMs === null ? `for ${shortDuration(nowMs - d.sinceMs)}` : `(settled after ${shortDuration(d.settledMs - d.sinceMs)})`;
  switch (d.sort) {
    case 'missing':
      return `the kubelet has not ${d.expected} ${end}`;
    case 'differs':
      return `the kubelet has not ${d.expected} as this tree would ${end}: ${brief(d.came)}`;
    case 'unexpected':
      return `${d.came}, and this tree ${d.expected} ${end}`;
  }
}

const CAME_CHARS_MAX = 400;
function brief(came: string): string {
  return came.length > CAME_CHARS_MAX ? `${came.slice(0, CAME_CHARS_MAX)}…` : came;
}

/** What stands, and is on no list of differences. */
export function standing(ledger: ObserverLedger | undefined): Disagreement[] {
  return (ledger?.disagreements ?? []).filter((d) => d.settledMs === null && d.known === null);
}
