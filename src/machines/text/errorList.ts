/** Errors about what others wrote, bounded: a document can have as many as it has bytes. Pure. */

/** Errors of one document or object that are told; the others are counted. */
const ERRORS_MAX = 10;
/** Characters of one error, and of a value that it quotes. */
const ERROR_CHARS_MAX = 400;
const QUOTE_CHARS_MAX = 100;

/** The text, or its beginning with `...`. */
export function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax)}...`;
}

/** The value as JSON, cut. */
export function quoted(value: unknown): string {
  return JSON.stringify(typeof value === 'string' ? cut(value, QUOTE_CHARS_MAX) : value) ?? String(value);
}

/** The first ones and how many more, in one line. */
export function enumerated(errors: readonly string[]): string {
  const list = new ErrorList();
  for (const error of errors) list.add(error);
  return list.list().join('; ');
}

/** Keeps the first errors and counts the rest. */
export class ErrorList {
  readonly #first: string[] = [];
  #count = 0;

  get count(): number {
    return this.#count;
  }
  /** What is added is only counted. */
  get isFull(): boolean {
    return this.#first.length >= ERRORS_MAX;
  }
  add(error: string): void {
    this.#count += 1;
    if (this.#first.length < ERRORS_MAX) this.#first.push(cut(error, ERROR_CHARS_MAX));
  }
  /** Takes over another list, with what it counted and did not keep, in the words of `say`. */
  addAll(other: ErrorList, say = (error: string) => error): void {
    for (const error of other.#first) this.add(say(error));
    this.#count += other.#count - other.#first.length;
  }
  /** The first errors, then `and N more`. */
  list(): string[] {
    const more = this.#count - this.#first.length;
    return more === 0 ? [...this.#first] : [...this.#first, `and ${more} more`];
  }
}
