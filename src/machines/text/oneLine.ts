/** Foreign text in lines for people. Pure. */

/** C0 and C1 controls, line and paragraph separators, what turns the direction of text around, and tags, which nobody sees. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\udb40[\udc00-\udc7f]/g;
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
