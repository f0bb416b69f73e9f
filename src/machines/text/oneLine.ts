/** Foreign text in lines for people. Pure. */

/** C0 and C1 controls, line and paragraph separators, and what turns the direction of text around. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Control characters written out, as JSON does: a line stays one line, and a terminal obeys none of it. */
export function oneLine(text: string): string {
  return text.replace(CONTROLS, (c) => SHORT[c] ?? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
