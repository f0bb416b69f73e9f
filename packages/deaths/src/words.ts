/** Secrets that are too short to be looked for anywhere: they are hidden where they stand as words of their own. Pure, and linear in the text. */
import { FOUND_ANYWHERE_MIN } from '@actorlet/kubelet/machines/data/knownSecrets.ts';
import { MASKED } from '@actorlet/kubelet/machines/text/shownUrl.ts';

const LETTER = /[\p{L}\p{N}\p{M}_]/u;
/** A line's end as one line shows it: `\n` is no letter before a word. */
const ESCAPED = /\\[nrt]$/;

export function withoutWords(text: string, words: ReadonlySet<string>): string {
  if (words.size === 0) return text;
  let out = '';
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const word = wordAt(text, { at, words });
    if (word === undefined) continue;
    out += text.slice(from, at) + MASKED;
    from = at + word.length;
    at = from - 1;
  }
  return from === 0 ? text : out + text.slice(from);
}

/** The longest one that begins here. */
function wordAt(text: string, { at, words }: { at: number; words: ReadonlySet<string> }): string | undefined {
  const before = ESCAPED.test(text.slice(Math.max(0, at - 2), at)) ? '' : text.slice(Math.max(0, at - 1), at);
  const first = text[at] ?? '';
  if (!apart(first, before)) return undefined;
  for (let length = Math.min(FOUND_ANYWHERE_MIN - 1, text.length - at); length > 0; length--) {
    const word = text.slice(at, at + length);
    if (words.has(word) && apart(word.at(-1) ?? '', text.slice(at + length, at + length + 1))) return word;
  }
  return undefined;
}

/** A letter is no part of a longer word; another sign stands alone, before white space, a quote or an escape. */
function apart(edge: string, next: string): boolean {
  return next === '' || (LETTER.test(edge) ? !LETTER.test(next) : /[\s"'`\\]/.test(next));
}
