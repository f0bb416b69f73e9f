/** What the reference kubelet told of a few static pods, for a comparison without it: values136.json, written by compare.ts. */
import { join } from 'node:path';
import { classOf } from './classes.ts';
import { isKnown } from './known.ts';
import type { Rows } from './rows.ts';
import { STATIC } from './shapes.ts';

export const RECORDING = join(import.meta.dirname, 'recorded/values136.json');
/** Pods of the recording, by name. */
export const RECORDED = Object.fromEntries(
  ['guaranteed', 'sidecars', 'writes', 'host-all', 'secure'].map((name) => [
    `static-${name}`,
    STATIC[`static-${name}`] ?? { containers: [] },
  ]),
);
/** Pages of the recording. */
export const RECORDED_PAGES = ['/metrics/cadvisor', '/metrics/resource', '/stats/summary'];

const ROW = new RegExp(`^(?:page )?(?:${RECORDED_PAGES.join('|')}) .*(?:${Object.keys(RECORDED).join('|')})-e2e`);
/** Rows of interfaces of the host have the names that it has there. */
const OF_THE_HOST = /interface="(?!eth0)|interfaces\[(?!eth0)/;

/** Values by row; null where only the row counts. */
export type Recording = Readonly<Record<string, readonly string[] | null>>;

export function isRecorded(where: string): boolean {
  return ROW.test(where) && !OF_THE_HOST.test(where) && !isKnown(where);
}
export function recordingOf(rows: Rows): Recording {
  const kept = [...rows].filter(([where]) => isRecorded(where)).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(kept.map(([where, values]) => [where, classOf(where) === 'any' ? null : values]));
}
/** Null is as good as any value. */
export function rowsOfRecording(recording: Recording, told: Rows): Rows {
  return new Map(Object.entries(recording).map(([where, values]) => [where, values ?? told.get(where) ?? ['any']]));
}
