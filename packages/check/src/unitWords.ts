/** Words, escapes, specifiers and variables as systemd reads them in units (systemd.syntax(7), systemd.unit(5), systemd.exec(5)). Pure. */

export interface Words {
  words: string[];
  /** Why the rest of the text is not read; '' = all of it is. */
  refused: string;
}
/** What becomes of a backslash. `c`: C escapes, others stay as they are. `strict`: others end the text. `plain`: the next sign counts. */
type Escapes = 'c' | 'strict' | 'plain';

const SPACE = ' \t\n\r';
const OPEN_QUOTE = 'a quote is not closed';

/** Takes one word after the other from a text. */
export class WordReader {
  readonly #text: string;
  readonly #escapes: Escapes;
  #at = 0;

  constructor(text: string, escapes: Escapes) {
    this.#text = text;
    this.#escapes = escapes;
    this.#skip();
  }

  /** What is not read yet. */
  get rest(): string {
    return this.#text.slice(this.#at);
  }
  /** Leaves so many signs out, and spaces behind them. */
  pass(signs: number): void {
    this.#at += signs;
    this.#skip();
  }

  /** Null: there is none. @throws on an open quote or an escape that is none, where that is not let pass */
  next(): string | null {
    if (this.#at >= this.#text.length) return null;
    let word = '';
    let quote = '';
    while (this.#at < this.#text.length) {
      const c = this.#text[this.#at] ?? '';
      this.#at += 1;
      if (c === '\\') word += this.#escaped(quote);
      else if (quote !== '') {
        if (c === quote) quote = '';
        else word += c;
      } else if (c === '"' || c === "'") quote = c;
      else if (SPACE.includes(c)) break;
      else word += c;
    }
    if (quote !== '' && this.#escapes !== 'plain') throw new Error(OPEN_QUOTE);
    this.#skip();
    return word;
  }

  /** Behind a backslash. */
  #escaped(quote: string): string {
    const c = this.#text[this.#at];
    if (this.#escapes === 'plain') {
      this.#at += 1;
      return c ?? '';
    }
    const known = escapeAt(this.#text, this.#at);
    if (known !== null) {
      this.#at += known.length;
      return known.text;
    }
    if (this.#escapes === 'strict') throw new Error(`\\${c ?? ''} is no escape`);
    if (c === undefined) {
      if (quote !== '') throw new Error(OPEN_QUOTE);
      return '\\';
    }
    this.#at += 1;
    return `\\${c}`;
  }

  #skip(): void {
    while (this.#at < this.#text.length && SPACE.includes(this.#text[this.#at] ?? '')) this.#at += 1;
  }
}

const LETTERS: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
  ...{ '\\': '\\', '"': '"', "'": "'", s: ' ' },
};
const NUMBERED = /x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})/y;

function escapeAt(text: string, at: number): { text: string; length: number } | null {
  const letter = text[at] ?? '';
  if (Object.hasOwn(LETTERS, letter)) return { text: LETTERS[letter] ?? '', length: 1 };
  NUMBERED.lastIndex = at;
  const found = NUMBERED.exec(text);
  if (found === null) return null;
  const [all, hex, short, long, octal] = found;
  const code = octal === undefined ? Number.parseInt(hex ?? short ?? long ?? '', 16) : Number.parseInt(octal, 8);
  return code === 0 || code > 0x10ffff ? null : { text: String.fromCodePoint(code), length: all.length };
}

/** All words of a text. */
export function wordsOf(text: string, escapes: Escapes): Words {
  const reader = new WordReader(text, escapes);
  const words: string[] = [];
  try {
    for (let word = reader.next(); word !== null; word = reader.next()) words.push(word);
  } catch (error) {
    return { words, refused: error instanceof Error ? error.message : String(error) };
  }
  return { words, refused: '' };
}

/** By its letter; undefined: it is not known here. */
export type Specifiers = (letter: string) => string | undefined;

/** @throws on a letter that is no specifier. What is no letter stands as it is. */
export function specified(text: string, of: Specifiers): string {
  return text.replace(/%(%|[A-Za-z])/g, (all, letter: string) => {
    if (letter === '%') return '%';
    const value = of(letter);
    if (value === undefined) throw new Error(`${all} is no specifier`);
    return value;
  });
}

/** `$NAME` alone becomes the words of its value; `${NAME}` becomes its value as it is, `$$` one `$`. What is not set is empty. */
export function expandedWords(words: readonly string[], variables: ReadonlyMap<string, string>): string[] {
  return words.flatMap((word) => {
    if (/^\$(?![{$])/.test(word)) return wordsOf(variables.get(word.slice(1)) ?? '', 'plain').words;
    return [
      word.replaceAll(/\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)\})/g, (_, name?: string) =>
        name === undefined ? '$' : (variables.get(name) ?? ''),
      ),
    ];
  });
}
