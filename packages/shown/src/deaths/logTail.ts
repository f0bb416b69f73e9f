/** The end of a container's log, as a bundle keeps it: whole lines, hidden before they are cut. Pure. */
import { parseLogLine } from '@actorlet/kubelet/machines/edge/https/logs/logLines.ts';
import { cut, type LogLine } from './bundle.ts';

/** Read of the end of a log file at most. */
export const LOG_BYTES_MAX = 64 * 1024;
const LINE_CHARS_MAX = 2_000;
const NEWLINE = 0x0a;

interface Line {
  at: string;
  stream: string;
  text: string;
}

/** `tail`: the last bytes of the file, `whole` if that is all of it. `hidden` is given all of the text at once: a secret may have several lines. */
export function logTail(
  tail: Uint8Array,
  o: { whole: boolean; linesMax: number; hidden(text: string): string },
): { lines: LogLine[]; note: string } {
  const decoder = new TextDecoder();
  const read: Line[] = [];
  let open: Line | null = null;
  let unreadable = 0;
  for (const bytes of splitLines(tail, o.whole)) {
    const entry = parseLogLine(bytes);
    if (entry === undefined) {
      unreadable += 1;
      continue;
    }
    const text = decoder.decode(entry.content).replace(/\n$/, '');
    if (open !== null && open.stream === entry.stream) open.text += text;
    else {
      open = { at: entry.time, stream: entry.stream, text };
      read.push(open);
    }
    if (!entry.partial) open = null;
  }
  const shown = read.length === 0 ? [] : o.hidden(read.map(({ text }) => text).join('\n')).split('\n');
  // A secret of several lines became one: times and streams no longer fit, so the lines stand alone.
  const lines =
    shown.length === read.length
      ? read.map((line, i) => ({ ...line, text: shown[i] ?? '' }))
      : shown.map((text) => ({ at: '', stream: '', text }));
  const kept = lines.slice(-o.linesMax).map((line) => ({ ...line, text: cut(line.text, LINE_CHARS_MAX) }));
  return { lines: kept, note: noteOf({ read: read.length, kept: kept.length, unreadable, whole: o.whole, empty: tail.length === 0 }) };
}

function noteOf(o: { read: number; kept: number; unreadable: number; whole: boolean; empty: boolean }): string {
  if (o.empty) return 'the container wrote nothing';
  if (o.read === 0)
    return o.unreadable > 0 ? 'the log has no line that can be read' : `its last line is longer than ${LOG_BYTES_MAX / 1024} KiB`;
  return o.whole && o.kept === o.read ? '' : `the last ${o.kept} lines`;
}

/** Whole lines: the first one of a tail may have lost its beginning. */
function splitLines(bytes: Uint8Array, whole: boolean): Uint8Array[] {
  const lines: Uint8Array[] = [];
  let from = whole ? 0 : bytes.indexOf(NEWLINE) + 1;
  if (!whole && from === 0) return [];
  while (from < bytes.length) {
    const end = bytes.indexOf(NEWLINE, from);
    const to = end < 0 ? bytes.length : end;
    if (to > from) lines.push(bytes.subarray(from, to));
    from = to + 1;
  }
  return lines;
}
