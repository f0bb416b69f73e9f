/** A pod's life as far as it is kept. */

import { workersAddr } from '../../machines/pods/workers/messages.ts';
import type { Moment } from '../../machines/recorder/moment.ts';
import { transitionOf } from '../../machines/recorder/recorderEntry.ts';
import type { History } from './history.ts';
import type { Recorder } from './recorder.ts';

/** States that a timeline without a history shows at most. */
const TIMELINE_STATES_MAX = 160;

/** What the history kept of a pod, else what the flight recorder still holds of its worker. */
export function timelineOf(
  uid: string,
  from: { recorder: Pick<Recorder, 'last'>; history: Pick<History, 'of'> | null },
): ReturnType<Moment['timeline']> {
  const kept = from.history?.of(uid);
  if (kept !== undefined) return { ...kept, kept: true };
  const path = `${workersAddr.path}/${uid}`;
  const states = from.recorder.last(TIMELINE_STATES_MAX, (e) => e.kind === 'transition' && e.path === path);
  const steps = states.map((e) => ({ atMs: e.atMs, ...transitionOf(e) }));
  return { steps, calls: [], containers: [], left: 0, kept: false };
}
