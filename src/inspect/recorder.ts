/**
 * The flight recorder: a bounded ring of what the kernel saw last. It keeps types, keys, states, error messages and the
 * text of causes, never the payload of a message, so a dump holds no secret of a pod.
 */
import type { SupervisionEvent } from '../actors/supervision/types.ts';
import type { Cause } from '../machines/supervision/address.ts';

/** Entries kept by default: some seconds of a busy node, hours of a quiet one. */
export const RECORDER_CAPACITY = 4096;
/** Longest text kept of one error or cause. */
const TEXT_CHARS_MAX = 300;

export interface DumpFilter {
  /** Only entries of this path and below it. */
  path?: string;
  /** Only the newest so many. */
  limit?: number;
  /** Only entries from this wall time on. */
  sinceMs?: number;
}
/** One entry as data. */
export interface RecorderEntry {
  /** Counts up from 0 over the life of the recorder. */
  n: number;
  atMs: number;
  kind: SupervisionEvent['kind'] | 'note';
  path: string;
  /** A message's type, a transition's states, a crash's error. */
  what: string;
  /** A message's key, a transition's event and reason. */
  detail: string;
  /** Path of a message's sender; '' where there is none. */
  from: string;
  causes: readonly Cause[];
}
export interface Recorder {
  /** Give this to `tree.observe`. Allocates nothing: columns of the ring are overwritten in place. */
  observe(e: SupervisionEvent): void;
  /** A line of its own, for what no event of the kernel tells. */
  note(o: { path: string; what: string; atMs: number }): void;
  /** Oldest first, one line each; the first line tells how many earlier ones the ring has overwritten. */
  dump(filter?: DumpFilter): string[];
  /** Entries from number `from` on that are still there, oldest first; of those the newest `max`. */
  since(from: number, max: number): RecorderEntry[];
  /** The newest `max` entries for which `wanted` answers true, oldest first. */
  last(max: number, wanted: (e: RecorderEntry) => boolean): RecorderEntry[];
  readonly recorded: number;
}

export function createRecorder(capacity: number = RECORDER_CAPACITY): Recorder {
  const events = new Array<SupervisionEvent['kind'] | 'note' | ''>(capacity).fill('');
  const atMs = new Float64Array(capacity);
  const path = new Array<string>(capacity).fill('');
  const a = new Array<string>(capacity).fill('');
  const b = new Array<string>(capacity).fill('');
  const sender = new Array<string>(capacity).fill('');
  const causes = new Array<readonly Cause[] | undefined>(capacity).fill(undefined);
  let count = 0;
  const entryAt = (n: number): RecorderEntry => {
    const i = n % capacity;
    const kind = events[i];
    return {
      n,
      atMs: atMs[i] ?? 0,
      kind: kind === undefined || kind === '' ? 'note' : kind,
      path: path[i] ?? '',
      what: a[i] ?? '',
      detail: b[i] ?? '',
      from: sender[i] ?? '',
      causes: causes[i] ?? [],
    };
  };

  return {
    get recorded() {
      return count;
    },
    observe(e) {
      const i = count % capacity;
      count++;
      events[i] = e.kind;
      atMs[i] = e.atMs;
      causes[i] = undefined;
      sender[i] = '';
      switch (e.kind) {
        case 'message':
          path[i] = e.to;
          a[i] = e.type;
          b[i] = e.key ?? '';
          sender[i] = e.from ?? '';
          causes[i] = e.causes;
          return;
        case 'transition':
          path[i] = e.path;
          a[i] = `${e.from} -> ${e.to}`;
          b[i] = e.reason === '' ? `on ${e.event}` : `on ${e.event} (${e.reason})`;
          return;
        case 'child.started':
          path[i] = e.path;
          a[i] = `incarnation ${e.incarnation}`;
          b[i] = '';
          return;
        case 'child.exited':
          path[i] = e.path;
          a[i] =
            e.reason.kind === 'error'
              ? `error: ${cut(e.reason.error.message)}`
              : e.reason.kind === 'killed'
                ? `killed by ${e.reason.by}`
                : e.reason.kind;
          b[i] = `incarnation ${e.incarnation}`;
          return;
        case 'child.restarting':
          path[i] = e.path;
          a[i] = `in ${Math.round(e.delayMs)} ms`;
          b[i] = `${e.restartsInWindow} restarts in the window`;
          return;
        case 'supervisor.escalated':
        case 'quarantined':
          path[i] = e.path;
          a[i] = cut(e.error);
          b[i] = '';
          return;
        case 'dead-letter':
          path[i] = e.letter.to;
          a[i] = `${e.letter.type} (${e.letter.reason})`;
          b[i] = e.letter.key ?? '';
          return;
        default:
          return assertNever(e);
      }
    },
    note(o) {
      const i = count % capacity;
      count++;
      events[i] = 'note';
      atMs[i] = o.atMs;
      path[i] = o.path;
      a[i] = cut(o.what);
      b[i] = '';
      sender[i] = '';
      causes[i] = undefined;
    },
    since(from, max) {
      const entries: RecorderEntry[] = [];
      for (let n = Math.max(from, count - capacity, count - max, 0); n < count; n++) entries.push(entryAt(n));
      return entries;
    },
    last(max, wanted) {
      const entries: RecorderEntry[] = [];
      const oldest = Math.max(0, count - capacity);
      for (let n = count - 1; n >= oldest && entries.length < max; n--) {
        const entry = entryAt(n);
        if (wanted(entry)) entries.push(entry);
      }
      return entries.reverse();
    },
    dump(filter = {}) {
      const kept = Math.min(count, capacity);
      // Without a path every entry is a line: those before the limit need not be written.
      const sinceMs = filter.sinceMs ?? Number.NEGATIVE_INFINITY;
      const wanted = filter.path === undefined ? Math.min(kept, filter.limit ?? kept) : kept;
      const lines: string[] = [];
      for (let n = count - wanted; n < count; n++) {
        const entry = entryAt(n);
        if (entry.atMs >= sinceMs && (filter.path === undefined || isBelow(entry.path, filter.path))) lines.push(entryLine(entry));
      }
      const shown = filter.limit === undefined ? lines : lines.slice(Math.max(0, lines.length - filter.limit));
      return count > capacity ? [`(${count - capacity} earlier entries overwritten)`, ...shown] : shown;
    },
  };
}

/** Whether `path` is the actor at `root` or below it. */
export function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}

/** One entry as one line. */
export function entryLine(e: RecorderEntry): string {
  const why = e.causes.map((c) => `${c.by}: ${cut(c.what)}`).join(' < ');
  return [new Date(e.atMs).toISOString(), e.kind, e.path, e.what, e.detail, why === '' ? '' : `because ${why}`]
    .filter((s) => s !== '')
    .join(' ');
}

function cut(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length > TEXT_CHARS_MAX ? `${line.slice(0, TEXT_CHARS_MAX - 1)}…` : line;
}
function assertNever(e: never): void {
  void e;
}
