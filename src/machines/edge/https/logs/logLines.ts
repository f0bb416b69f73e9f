/**
 * Lines of container log files, as bytes: CRI's (`TIME STREAM TAG CONTENT`) and the older JSON lines of docker. What a
 * container wrote need not be text, so contents are never decoded. Pure.
 */

import { jsonOf } from '../../../shape/lenient.ts';

export interface LogEntry {
  /** As it stands in the file. */
  time: string;
  stream: 'stdout' | 'stderr';
  /** The rest of the logical line follows in a later entry. */
  partial: boolean;
  /** With the newline that ends a logical line. */
  content: Uint8Array;
}

const NEWLINE = 0x0a;
const SPACE = 0x20;
const BRACE = 0x7b;
const PARTIAL_TAG = 'P';
/** 9 digits: nanoseconds. */
const FRACTION_DIGITS = 9;
const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)$/i;

/** Nanoseconds since the epoch of an RFC 3339 time; undefined for anything else. */
export function nanosOf(time: string): bigint | undefined {
  const m = STAMP.exec(time);
  if (m === null) return undefined;
  const seconds = Date.parse(`${m[1]}${m[3]}`.toUpperCase());
  if (Number.isNaN(seconds)) return undefined;
  return BigInt(seconds) * 1_000_000n + BigInt((m[2] ?? '').padEnd(FRACTION_DIGITS, '0') || '0');
}

/** The same time with exactly nine digits of fraction, in its own zone. An offset of zero is `Z`. */
export function fixedFraction(time: string): string {
  const m = STAMP.exec(time);
  return m === null ? time : `${m[1]}.${(m[2] ?? '').padEnd(FRACTION_DIGITS, '0')}${m[3]?.replace(/^[+-]00:00$/, 'Z')}`;
}

/** A line without its newline. Undefined where it is of neither format. */
export function parseLogLine(line: Uint8Array): LogEntry | undefined {
  return line[0] === BRACE ? parseJsonLine(line) : parseCriLine(line);
}

function parseCriLine(line: Uint8Array): LogEntry | undefined {
  const words: string[] = [];
  let at = 0;
  for (let i = 0; i < 3; i++) {
    const end = line.indexOf(SPACE, at);
    // An entry without content may lack the space after its tag.
    if (end < 0 && i < 2) return undefined;
    words.push(new TextDecoder().decode(line.subarray(at, end < 0 ? line.length : end)));
    at = end < 0 ? line.length : end + 1;
  }
  const [time = '', stream = '', tags = ''] = words;
  if ((stream !== 'stdout' && stream !== 'stderr') || !STAMP.test(time)) return undefined;
  const partial = tags.split(':')[0] === PARTIAL_TAG;
  const content = line.subarray(at);
  return { time, stream, partial, content: partial ? content : withNewline(content) };
}

function parseJsonLine(line: Uint8Array): LogEntry | undefined {
  const value = jsonOf(line);
  if (typeof value !== 'object' || value === null || !('log' in value) || !('time' in value)) return undefined;
  const { log, time } = value;
  const stream = 'stream' in value ? value.stream : 'stdout';
  if (typeof log !== 'string' || typeof time !== 'string' || (stream !== 'stdout' && stream !== 'stderr') || !STAMP.test(time))
    return undefined;
  return { time, stream, partial: !log.endsWith('\n'), content: new TextEncoder().encode(log) };
}

const withNewline = (content: Uint8Array): Uint8Array => concat([content, Uint8Array.of(NEWLINE)]);
export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, p) => sum + p.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export interface LogWriter {
  /** What one line of the file becomes; nothing where it is left out. `ends` false: the next call has what follows of this line. */
  line(line: Uint8Array, ends?: boolean): Uint8Array | undefined;
  /** The limit of bytes or lines is used up: no more is wanted. */
  readonly full: boolean;
  /** Lines that were of no known format. */
  readonly unreadable: number;
}

/** Applies since, stream, timestamps and the limits to the lines of a file, in its order. */
export function logWriter(o: LogOptions): LogWriter {
  let left = o.limitBytes ?? Number.POSITIVE_INFINITY;
  // What a container writes while its last lines are read is none of them.
  let linesLeft = o.follow ? Number.POSITIVE_INFINITY : (o.tailLines ?? Number.POSITIVE_INFINITY);
  let unreadable = 0;
  /** Streams in the middle of a logical line: what follows gets no time stamp. */
  const inLine = new Set<string>();
  /** The line of which only the beginning was there; without an entry where that was of no known format. */
  let begun: { entry: LogEntry | undefined } | null = null;
  const read = (bytes: Uint8Array, ends: boolean): LogEntry | undefined => {
    if (begun !== null) {
      const { entry } = begun;
      return entry && { ...entry, content: ends && !entry.partial ? withNewline(bytes) : bytes };
    }
    const entry = parseLogLine(bytes);
    if (entry === undefined && bytes.length > 0) unreadable++;
    return ends || entry === undefined || entry.partial ? entry : { ...entry, content: entry.content.subarray(0, -1) };
  };
  return {
    line(bytes, ends = true) {
      if (linesLeft <= 0) return undefined;
      const entry = read(bytes, ends);
      const first = begun === null;
      if (ends) begun = null;
      else begun ??= { entry };
      if (entry === undefined) return undefined;
      const continues = !first || inLine.has(entry.stream);
      if (ends) {
        linesLeft -= 1;
        if (entry.partial) inLine.add(entry.stream);
        else inLine.delete(entry.stream);
      }
      if (o.stream !== null && entry.stream !== o.stream) return undefined;
      if (o.sinceNs !== null && (nanosOf(entry.time) ?? 0n) < o.sinceNs) return undefined;
      const out =
        o.timestamps && !continues ? concat([new TextEncoder().encode(`${fixedFraction(entry.time)} `), entry.content]) : entry.content;
      const cut = out.length > left ? out.subarray(0, left) : out;
      left -= cut.length;
      return cut;
    },
    get full() {
      return left <= 0 || linesLeft <= 0;
    },
    get unreadable() {
      return unreadable;
    },
  };
}

export interface LogOptions {
  follow: boolean;
  previous: boolean;
  timestamps: boolean;
  /** Nanoseconds since the epoch; entries before it are left out. */
  sinceNs: bigint | null;
  /** Lines of the file counted from its end; null = all. */
  tailLines: number | null;
  /** null = no limit. */
  limitBytes: number | null;
  stream: 'stdout' | 'stderr' | null;
}
