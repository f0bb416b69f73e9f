/** Foreign text in lines for people, and on its way to a terminal. Pure. */

/**
 * C0 and C1 controls, line and paragraph separators, what turns the direction of text around, and what nobody sees: soft hyphens
 * and blanks of no width. Joiners stay, as some scripts need them. Line ends, tabs, returns and escape sequences are apart.
 */
const UNSEEN =
  '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001a\\u001c-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f' +
  '\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb';
/** Those, and tags, which nobody sees either. */
const CONTROLS = new RegExp(`[${UNSEEN}\\t\\n\\r\\u001b]|\\udb40[\\udc00-\\udc7f]`, 'g');
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Control characters written out, as JSON does: a line stays one line, and a terminal obeys none of it. */
export function oneLine(text: string): string {
  return escaped(text, (c) => SHORT[c] ?? unicode(c));
}

/** `as`: what is written for one of them. */
export function escaped(text: string, as: (char: string) => string): string {
  return text.replace(CONTROLS, as);
}

/** As JSON writes characters out. */
export function unicode(text: string): string {
  return Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('');
}

/** Colours, also those of container logs, and what programs of ours write: home, a clear screen, a clear line. */
const OURS = '\\u001b(?!\\[(?:[\\d;]{0,32}m|H|2J|K))';
/** A return that goes on in the same line is that of a line of progress. */
const RETURN = '\\r(?!\\n|\\u001b\\[K|\\[[#.])';
const NOT_OURS = new RegExp(`[${UNSEEN}\\u{e0000}-\\u{e007f}]|${OURS}|${RETURN}`, 'gu');

/** What would turn the direction of text around, move the cursor or say something to the terminal is written out, as in JSON. */
export function onTerminal(text: string): string {
  return text.replace(NOT_OURS, unicode);
}
