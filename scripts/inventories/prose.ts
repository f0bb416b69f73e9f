/** The prose of a page: sentences of paragraphs and lists, and rows of tables that people write. */

export interface Claim {
  /** The line on which it begins, from 1. */
  line: number;
  text: string;
}

/** A page without its code and without the lists that a script makes: as many lines as before. */
function withoutMade(text: string): string {
  const blank = (block: string) => block.replace(/[^\n]+/g, '');
  return text
    .replace(/^ *```[\s\S]*?^ *```.*$/gm, blank)
    .replace(/^ *<!-- made: [\s\S]*?<!-- end -->$/gm, blank)
    .replace(/^ *<!-- costs: [\s\S]*?<!-- end of costs -->$/gm, blank);
}

/** Of a table of contents: it claims nothing. */
const LINK = /^\[[^\]]*\]\([^)]*\)$/;
/** A label in bold (`**Lanes.**`) begins a sentence and is none. */
const SENTENCE = /(?<=[.!?][)"]*)\s+/;

export function claimsOf(page: string): Claim[] {
  const lines = withoutMade(page).split('\n');
  const claims: Claim[] = [];
  let paragraph: { line: number; text: string }[] = [];
  const close = () => {
    claims.push(...sentencesOf(paragraph));
    paragraph = [];
  };
  for (const [i, raw] of lines.entries()) {
    const text = raw.trim();
    const item = /^(?:[-*]|\d+\.) /.exec(text);
    const apart = text === '' || /^[|#<!]/.test(text);
    if (apart || item !== null) close();
    if (!apart) paragraph.push({ line: i + 1, text: text.slice(item?.[0].length ?? 0) });
    else if (isRow(text) && !isRule(text) && !isRule(lines[i + 1] ?? '')) claims.push({ line: i + 1, text });
  }
  close();
  return claims;
}

const isRow = (text: string): boolean => text.startsWith('|');
/** The line below a table's titles. */
const isRule = (text: string): boolean => /^\s*\|[-|: ]+\|$/.test(text);

function sentencesOf(paragraph: readonly { line: number; text: string }[]): Claim[] {
  const whole = paragraph.map(({ text }) => text).join(' ');
  let at = 0;
  return whole.split(SENTENCE).flatMap((text) => {
    const begin = whole.indexOf(text, at);
    at = begin + text.length;
    return text === '' || LINK.test(text) ? [] : [{ line: lineOf(paragraph, begin), text }];
  });
}

function lineOf(paragraph: readonly { line: number; text: string }[], at: number): number {
  let end = 0;
  for (const { line, text } of paragraph) {
    end += text.length + 1;
    if (at < end) return line;
  }
  return paragraph.at(-1)?.line ?? 0;
}
