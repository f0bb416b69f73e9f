/** A text in double quotes as Go writes it (`%q`): what a downward API shows of labels and annotations. Pure. */

const NAMED: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
};
/** What Go shows as it is: no spaces but the plain one, nothing unseen. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;
const BYTE_MAX = 0x7f;
const SHORT_MAX = 0xffff;

export function goQuote(text: string): string {
  const parts = [...text].map((c) => {
    const named = NAMED[c];
    if (named !== undefined) return named;
    if (PRINTABLE.test(c)) return c;
    const code = c.codePointAt(0) ?? 0;
    const hex = code.toString(16);
    if (code <= BYTE_MAX) return `\\x${hex.padStart(2, '0')}`;
    return code <= SHORT_MAX ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
  });
  return `"${parts.join('')}"`;
}
