/**
 * Names of lives. A UID may be wound down and wanted again at once (a static pod that brings its own), and the pod manager
 * may begin anew; what was said of one life must never pass for another's. So a number is never given twice on one node,
 * and tells which pod manager gave it.
 */

/** More lives than one incarnation of the pod manager will ever give out. */
const LIVES_PER_MANAGER = 2 ** 32;

/** The number before the first that this incarnation of the pod manager (from 1) gives out. */
export function livesBefore(incarnation: number): number {
  return (incarnation - 1) * LIVES_PER_MANAGER;
}

/**
 * What was said of life `said` holds for life `now` of the same UID: it is the same one, or goes on from an earlier pod
 * manager, which did not tell its successor what it had given out.
 */
export function goesOn(said: number, now: number): boolean {
  return said === now || managerOf(said) !== managerOf(now);
}

function managerOf(life: number): number {
  return Math.floor((life - 1) / LIVES_PER_MANAGER);
}
