/**
 * Texts and bytes that look like others and say nothing of them. Each keeps its length in bytes, its white space, and what is a
 * letter, a digit or no UTF-8. So what checks, cuts, joins or decodes a value does the same with its likeness.
 */

/** Numbers from 0 up to, and without, this one. */
export type Draw = (below: number) => number;

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
/** Nothing in the tree gives these a meaning: no quotes, no braces, no `$`, `%`, `:`, `/`, `=` or `@`. */
const SIGNS = '-_~';
/** Where the three above are all taken. */
const MORE_SIGNS = '-_~^.+!';
const BLANKS = ' \t\n\r';
/** A byte that is no UTF-8 wherever it stands, and never begins a longer run of it. */
const LONE = [0xc0, 0xc1, ...Array.from({ length: 11 }, (_, i) => 0xf5 + i)];
const FIRST_CONTINUATION = 0x80;

/** @param more More signs may be used: the first ones were all taken. */
export function likeText(text: string, draw: Draw, more = false): string {
  let out = '';
  let changed = false;
  for (const c of text) {
    const code = c.codePointAt(0) ?? 0;
    if (code <= 0x20 || code === 0x7f) {
      out += c;
      continue;
    }
    changed = true;
    out += likeLetter(c, code, { draw, more });
  }
  return changed ? out : likeBlanks(text, draw);
}

function likeLetter(c: string, code: number, { draw, more }: { draw: Draw; more: boolean }): string {
  if (code >= 0x10000) return String.fromCodePoint(0x20000 + draw(256));
  if (code >= 0x800) return String.fromCodePoint(0x4e00 + draw(4_096));
  if (code >= 0x80) return String.fromCodePoint(0x410 + draw(64));
  if (c >= '0' && c <= '9') return String(draw(10));
  if (c >= 'a' && c <= 'z') return LETTERS[draw(26)] ?? 'x';
  if (c >= 'A' && c <= 'Z') return (LETTERS[draw(26)] ?? 'x').toUpperCase();
  const signs = more ? MORE_SIGNS : SIGNS;
  return signs[draw(signs.length)] ?? '-';
}

/** Of a text of nothing else. */
function likeBlanks(text: string, draw: Draw): string {
  return Array.from(text, (c) => (BLANKS.includes(c) ? (BLANKS[draw(BLANKS.length)] ?? ' ') : String.fromCharCode(1 + draw(8)))).join('');
}

/** Of bytes that are no UTF-8. They decode to as many letters and as many replacement characters. */
export function likeBytes(bytes: Uint8Array, draw: Draw): Uint8Array {
  const out = new Uint8Array(bytes.length);
  for (let at = 0; at < bytes.length; ) {
    const { length, valid } = partAt(bytes, at);
    if (valid)
      out.set(
        new TextEncoder().encode(likeText(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(at, at + length)), draw)),
        at,
      );
    else out.set(brokenPart(length, { draw, alone: bytes.length === 1 }), at);
    at += length;
  }
  return out;
}

/** The character, or the part that decodes to one replacement character, that begins here (Unicode 15, table 3-7). */
function partAt(bytes: Uint8Array, at: number): { length: number; valid: boolean } {
  const first = bytes[at] ?? 0;
  if (first < FIRST_CONTINUATION) return { length: 1, valid: true };
  const length = first >= 0xc2 && first <= 0xdf ? 2 : first >= 0xe0 && first <= 0xef ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 1;
  if (length === 1) return { length, valid: false };
  const low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  for (let i = 1; i < length; i++) {
    const byte = bytes[at + i] ?? 0;
    if (byte < (i === 1 ? low : 0x80) || byte > (i === 1 ? high : 0xbf)) return { length: i, valid: false };
  }
  return { length, valid: true };
}

function brokenPart(length: number, { draw, alone }: { draw: Draw; alone: boolean }): number[] {
  // What follows is never one of those that could complete it.
  if (length === 2) return [0xe1 + draw(12), FIRST_CONTINUATION + draw(64)];
  if (length === 3) return [0xf1 + draw(3), FIRST_CONTINUATION + draw(64), FIRST_CONTINUATION + draw(64)];
  return [alone ? FIRST_CONTINUATION + draw(64) : (LONE[draw(LONE.length)] ?? 0xff)];
}

/** How lines of a container's log begin: the time, the stream and whether it is whole. Also what a cut leaves of that. */
const HEAD = /^\S* (?:stdout|stderr) \S+ /;
const CUT_HEADS = ['stdout F ', 'stderr F ', 'stdout P ', 'stderr P '].flatMap((head) => Array.from(head, (_, i) => head.slice(i)));
const CUT_TIME = /^[\d.+:TZ-]{0,35}(?: [a-z]{0,6}(?: [FP]?)?)?$/;
const LINE_END = 0x0a;

/** A part of a log: its lines and their heads stay where they are. */
export function likePiece(bytes: Uint8Array, draw: Draw): Uint8Array {
  const out = Uint8Array.from(bytes);
  for (let from = 0; from < bytes.length; ) {
    const end = bytes.indexOf(LINE_END, from);
    const to = end < 0 ? bytes.length : end;
    const line = String.fromCharCode(...bytes.subarray(from, Math.min(to, from + 80)));
    const begin = from + headLength(line, { first: from === 0, last: end < 0 });
    out.set(likeLine(bytes.subarray(begin, to), draw), begin);
    from = to + 1;
  }
  return out;
}

function headLength(line: string, { first, last }: { first: boolean; last: boolean }): number {
  const whole = HEAD.exec(line)?.[0];
  if (whole !== undefined) return whole.length;
  if (last && CUT_TIME.test(line)) return line.length;
  return first ? (CUT_HEADS.find((head) => line.startsWith(head))?.length ?? 0) : 0;
}

function likeLine(bytes: Uint8Array, draw: Draw): Uint8Array {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.trim() === '' ? bytes : new TextEncoder().encode(likeText(text, draw));
  } catch {
    return bytes.map((byte) =>
      byte <= 0x20 ? byte : byte < FIRST_CONTINUATION ? LETTERS.charCodeAt(draw(26)) : (LONE[draw(LONE.length)] ?? 0xff),
    );
  }
}
