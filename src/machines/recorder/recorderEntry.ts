/** One entry of the flight recorder as data: what `actorctl recorder -o json` prints; and as a line. */
import type { Cause } from '../supervision/address.ts';

export interface RecorderEntry {
  /** Counts up from 0 over the life of the recorder. */
  n: number;
  atMs: number;
  kind:
    | 'message'
    | 'transition'
    | 'child.started'
    | 'child.exited'
    | 'child.restarting'
    | 'child.asleep'
    | 'child.woken'
    | 'supervisor.escalated'
    | 'quarantined'
    | 'dead-letter'
    | 'note';
  path: string;
  /** A message's type, a transition's states, a crash's error. */
  what: string;
  /** A message's key, a transition's event and reason. */
  detail: string;
  /** Path of a message's sender; '' where there is none. */
  from: string;
  causes: readonly Cause[];
}

/** Longest text kept of one error or cause. */
const TEXT_CHARS_MAX = 300;

/** Whether `path` is the actor at `root` or below it. */
export function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}

export function entryLine(e: RecorderEntry): string {
  const why = e.causes.map((c) => `${c.by}: ${cutEntry(c.what)}`).join(' < ');
  return [new Date(e.atMs).toISOString(), e.kind, e.path, e.what, e.detail, why === '' ? '' : `because ${why}`]
    .filter((s) => s !== '')
    .join(' ');
}

/** The first line of a text, as much of it as is kept. */
export function cutEntry(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length > TEXT_CHARS_MAX ? `${line.slice(0, TEXT_CHARS_MAX - 1)}…` : line;
}

const CAME = /^on (\S+)(?: \((.*)\))?$/s;

/** What a transition's entry says: from where to where, on what, and the reason of the state. */
export function transitionOf(e: Pick<RecorderEntry, 'what' | 'detail'>): { from: string; to: string; event: string; reason: string } {
  const cut = e.what.indexOf(' -> ');
  const said = CAME.exec(e.detail);
  return {
    from: cut < 0 ? '' : e.what.slice(0, cut),
    to: cut < 0 ? e.what : e.what.slice(cut + ' -> '.length),
    event: said?.[1] ?? '',
    reason: said?.[2] ?? '',
  };
}
