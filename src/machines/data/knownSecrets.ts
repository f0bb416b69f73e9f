/** Secrets with their stand-ins, and where they are in a text: also as programs write them in another way. Pure. */

/** Shorter ones may be a part of any word. */
export const FOUND_ANYWHERE_MIN = 8;
/** Of those that are found anywhere; then all are learned anew. Other ways of writing take ten times the memory. */
const LONG_MAX = 20_000;
const LONG_CHARS_MAX = 2 * 1024 * 1024;
/** Those below are kept for good: another stand-in would be another value. */
const SHORT_MAX = 100_000;
/** Longer ones have no other ways of writing that are looked for. */
const ENCODED_CHARS_MAX = 16_384;
/** Characters of secrets that are compared with one text: a quarter of a second. A pod may have thousands that begin alike. */
const COMPARED_CHARS_MAX = 50_000_000;

/** After a text that was cut: its end may be the first part of a secret. */
const CUT = /\.\.\.|…/g;

/** Programs quote the words of a command; so short ones are found there alone. */
const QUOTED = /(?<=["'`])[^"'`\\\s]{4,7}(?=\\?["'`])/g;

interface Found {
  readonly text: string;
  readonly made: string;
}

export class KnownSecrets {
  readonly #short = new Map<string, string>();
  readonly #long = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** By how they begin, and by their length; longest first. */
  readonly #byStart = new Map<string, { lengths: number[]; of: Map<number, Map<string, string>> }>();
  /** Of their first three characters. */
  readonly #starts = new Set<number>();
  #chars = 0;
  readonly #inAllWritings: boolean;

  /** Without other ways of writing (JSON, base64, URLs) a secret takes a tenth of the memory. Default: with them. */
  constructor(o: { inAllWritings: boolean } = { inAllWritings: true }) {
    this.#inAllWritings = o.inAllWritings;
  }

  /** Null: it is not known. */
  of(text: string): string | null {
    return (text.length < FOUND_ANYWHERE_MIN ? this.#short : this.#long).get(text) ?? null;
  }

  isTaken(made: string): boolean {
    return this.#taken.has(made);
  }

  add(text: string, made: string): void {
    if (text.length < FOUND_ANYWHERE_MIN) {
      if (this.#short.size >= SHORT_MAX) return;
      this.#short.set(text, made);
      this.#taken.add(made);
      return;
    }
    if (this.#long.size >= LONG_MAX || this.#chars > LONG_CHARS_MAX) this.#forget();
    if (!this.#long.has(text)) this.#chars += text.length;
    this.#long.set(text, made);
    this.#lookFor({ text, made });
    if (!this.#inAllWritings || text.length > ENCODED_CHARS_MAX) return;
    const seen = new Set([text]);
    for (const [i, written] of writings(text).entries()) {
      if (written.length < FOUND_ANYWHERE_MIN || seen.has(written)) continue;
      seen.add(written);
      this.#lookFor({ text: written, made: writings(made)[i] ?? made });
    }
  }

  /** With every one that is in it replaced. @param stays Whether a part of the text is no secret where it stands. */
  without(text: string, stays: (text: string, part: { from: number; to: number }) => boolean = () => false): string {
    const plain = (word: string, from: number): string =>
      stays(text, { from, to: from + word.length }) ? word : (this.#short.get(word) ?? word);
    return this.#withoutLong(this.#hasQuoted(text) ? text.replace(QUOTED, plain) : text, stays);
  }

  #hasQuoted(text: string): boolean {
    return this.#short.size > 0 && (text.match(QUOTED) ?? []).some((word) => this.#short.has(word));
  }

  #withoutLong(text: string, stays: (text: string, part: { from: number; to: number }) => boolean): string {
    let out = '';
    let from = 0;
    for (const { at, found } of this.#in(text)) {
      if (found === null) return out + '*'.repeat(text.length - from);
      if (stays(text, { from: at, to: at + found.text.length })) continue;
      out += text.slice(from, at) + found.made;
      from = at + found.text.length;
    }
    return from === 0 ? text : out + text.slice(from);
  }

  isIn(text: string): boolean {
    return this.#hasQuoted(text) || this.#in(text).next().done !== true;
  }

  /** `found` null: too much would have to be compared. */
  *#in(text: string): Generator<{ at: number; found: Found | null }> {
    let compared = 0;
    let cuts: number[] | null = null;
    for (let at = 0; at + FOUND_ANYWHERE_MIN <= text.length; at++) {
      if (!this.#starts.has(startOf(text, at))) continue;
      const begun = this.#byStart.get(text.slice(at, at + FOUND_ANYWHERE_MIN));
      let found: Found | undefined;
      for (const length of begun?.lengths ?? []) {
        if (at + length > text.length) continue;
        compared += length;
        const one = text.slice(at, at + length);
        const made = begun?.of.get(length)?.get(one);
        if (made !== undefined) found = { text: one, made };
        if (found !== undefined || compared > COMPARED_CHARS_MAX) break;
      }
      if (found === undefined && begun !== undefined) {
        cuts ??= Array.from(text.matchAll(CUT), ({ index }) => index).reverse();
        while ((cuts.at(-1) ?? text.length) < at + FOUND_ANYWHERE_MIN) cuts.pop();
        const end = cuts.at(-1) ?? Number.POSITIVE_INFINITY;
        for (const [length, alike] of end - at < (begun.lengths[0] ?? 0) ? begun.of : []) {
          if (found !== undefined || length <= end - at) continue;
          compared += alike.size * (end - at);
          found = cutOff(alike, text.slice(at, end));
        }
      }
      if (compared > COMPARED_CHARS_MAX) {
        yield { at, found: null };
        return;
      }
      if (found === undefined) continue;
      yield { at, found };
      at += found.text.length - 1;
    }
  }

  #lookFor({ text, made }: Found): void {
    const start = text.slice(0, FOUND_ANYWHERE_MIN);
    const begun = this.#byStart.get(start) ?? { lengths: [], of: new Map<number, Map<string, string>>() };
    this.#byStart.set(start, begun);
    this.#starts.add(startOf(start, 0));
    const alike = begun.of.get(text.length);
    if (alike !== undefined) {
      alike.set(text, made);
      return;
    }
    begun.of.set(text.length, new Map([[text, made]]));
    const at = begun.lengths.findIndex((length) => length < text.length);
    begun.lengths.splice(at < 0 ? begun.lengths.length : at, 0, text.length);
  }

  #forget(): void {
    this.#long.clear();
    this.#byStart.clear();
    this.#starts.clear();
    this.#chars = 0;
  }
}

/** The first part of one of them. */
function cutOff(alike: ReadonlyMap<string, string>, part: string): Found | undefined {
  for (const [text, made] of alike)
    if (text.startsWith(part)) return { text: part, made: made.length === text.length ? made.slice(0, part.length) : made };
  return undefined;
}

function startOf(text: string, at: number): number {
  return text.charCodeAt(at) * 961 + text.charCodeAt(at + 1) * 31 + text.charCodeAt(at + 2);
}

/** As it stands inside of JSON, of JSON in JSON, of a text of Go, of a URL, in base64 and in hexadecimal. */
function writings(text: string): readonly string[] {
  const json = JSON.stringify(text).slice(1, -1);
  const bytes = new TextEncoder().encode(text);
  let binary = '';
  let hex = '';
  for (const byte of bytes) {
    binary += String.fromCharCode(byte);
    hex += byte.toString(16).padStart(2, '0');
  }
  const base64 = btoa(binary).replace(/=+$/, '');
  const url = encodeURIComponent(text.toWellFormed());
  return [
    ...[json, JSON.stringify(json).slice(1, -1), goQuoted(text)],
    ...[url, url.replaceAll('%20', '+'), base64, base64.replaceAll('+', '-').replaceAll('/', '_'), hex, hex.toUpperCase()],
  ];
}

function goQuoted(text: string): string {
  return JSON.stringify(text)
    .slice(1, -1)
    .replace(/\\u00([0-9a-f]{2})/g, '\\x$1')
    .replace(/\\b/g, '\\b');
}
