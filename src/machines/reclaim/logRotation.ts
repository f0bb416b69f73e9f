/** What becomes of a container's log that has grown too large, and of those before it (resources and volumes 5.5). Pure. */

const COMPRESSED = '.gz';
const UNFINISHED = '.tmp';
/** The log itself, and the newest of those that were rotated, which is compressed when the next one comes. */
const PLAIN_FILES = 2;
const SECOND_MS = 1_000;

export interface RotationPlan {
  /** Names that go: what an interrupted compression left, and what is over the number of files. */
  remove: readonly string[];
  /** Names that are compressed. */
  compress: readonly string[];
}

/** `name`: of the log; `names`: in its directory; `filesMax`: containerLogMaxFiles, the log itself counted. */
export function planRotation(o: { name: string; names: readonly string[]; filesMax: number }): RotationPlan {
  const rotated = o.names.filter((n) => n.startsWith(`${o.name}.`));
  const unusable = rotated.filter((n) => n.endsWith(UNFINISHED) || rotated.includes(`${n}${COMPRESSED}`));
  // Time stamps sort as their times do.
  const usable = rotated.filter((n) => !unusable.includes(n)).sort();
  const kept = usable.slice(Math.max(0, usable.length - Math.max(0, o.filesMax - PLAIN_FILES)));
  return { remove: [...unusable, ...usable.filter((n) => !kept.includes(n))], compress: kept.filter((n) => !n.endsWith(COMPRESSED)) };
}

export const compressedName = (name: string): string => `${name}${COMPRESSED}`;
export const unfinishedName = (name: string): string => `${name}${UNFINISHED}`;

/** The log's name from now on; a later second where that is taken, as when the clock was set back. */
export function rotatedName(o: { name: string; names: readonly string[]; wallMs: number }): string {
  for (let ms = o.wallMs; ; ms += SECOND_MS) {
    const name = `${o.name}.${stamp(ms)}`;
    if (!o.names.includes(name) && !o.names.includes(compressedName(name))) return name;
  }
}

/** Local time, as 20060102-150405. */
function stamp(wallMs: number): string {
  const d = new Date(wallMs);
  const two = (n: number) => String(n).padStart(2, '0');
  const day = `${String(d.getFullYear()).padStart(4, '0')}${two(d.getMonth() + 1)}${two(d.getDate())}`;
  return `${day}-${two(d.getHours())}${two(d.getMinutes())}${two(d.getSeconds())}`;
}
