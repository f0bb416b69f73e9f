/** What a process may be started with (execve(2)): a pod that asks for more is refused before the memory is taken. Pure. */
import { type Built, built, refused } from '../result.ts';

/** One argument or `NAME=value`, its zero byte included: MAX_ARG_STRLEN of Linux, 32 pages of 4 KiB. */
export const EXEC_STRING_BYTES_MAX = 128 * 1024;
/** All of them, each with its zero byte and a pointer: Linux never takes more (3/4 of _STK_LIM, fs/exec.c). */
export const EXEC_BYTES_MAX = 6 * 1024 * 1024;
const POINTER_BYTES = 8;

/** Bytes of one string for execve, its zero byte included; null: it is longer than one may be. */
function stringBytes(text: string | null): number | null {
  if (text === null || text.length >= EXEC_STRING_BYTES_MAX) return null;
  let bytes = text.length + 1;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    // Bytes of UTF-8; the two halves of a surrogate pair make four.
    if (unit > 0x7f) bytes += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return bytes > EXEC_STRING_BYTES_MAX ? null : bytes;
}

/** What stands between the values of one container and the limits above. */
export class ExecRoom {
  #bytes = 0;

  /**
   * Null: there is room for it; else why not. `text` null: too long to be written out. `replaces`: one counted earlier that
   * this one takes the place of.
   */
  take(text: string | null, replaces?: string): string | null {
    const bytes = stringBytes(text);
    if (bytes === null) return `is longer than the ${EXEC_STRING_BYTES_MAX} bytes that Linux takes as one string`;
    this.#bytes += bytes + POINTER_BYTES;
    if (replaces !== undefined) this.#bytes -= (stringBytes(replaces) ?? 0) + POINTER_BYTES;
    if (this.#bytes <= EXEC_BYTES_MAX) return null;
    return `takes environment, command and arguments beyond the ${EXEC_BYTES_MAX} bytes that Linux takes in all`;
  }
}

/**
 * Replaces `$(NAME)` by its value; an unknown name and an unclosed reference stay as written, `$$` is one `$`. What was
 * put in is not looked at again. Null: it is longer than one string may be, so it was not written out.
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string | null {
  let out = '';
  let from = 0;
  // Once no `)` follows, none will: it is not looked for again.
  let closes = true;
  for (let at = text.indexOf('$'); at >= 0 && at + 1 < text.length; at = text.indexOf('$', from)) {
    out += text.slice(from, at);
    const next = text[at + 1] ?? '';
    const end = next === '(' && closes ? text.indexOf(')', at + 2) : -1;
    if (next !== '(') {
      out += next === '$' ? '$' : `$${next}`;
      from = at + 2;
    } else if (end < 0) {
      closes = false;
      out += '$(';
      from = at + 2;
    } else {
      const name = text.slice(at + 2, end);
      out += lookup(name) ?? `$(${name})`;
      from = end + 1;
    }
    if (out.length >= EXEC_STRING_BYTES_MAX) return null;
  }
  out += text.slice(from);
  return out.length >= EXEC_STRING_BYTES_MAX ? null : out;
}

/** Command or arguments with their references replaced, as far as `room` has room. */
export function expandAll(
  list: readonly string[],
  lookup: (name: string) => string | undefined,
  o: { room: ExecRoom; what: string },
): Built<string[]> {
  const out: string[] = [];
  for (const [i, text] of list.entries()) {
    const value = expand(text, lookup);
    const why = o.room.take(value);
    if (value === null || why !== null) return refused(`${o.what}[${i}] ${why}`);
    out.push(value);
  }
  return built(out);
}
