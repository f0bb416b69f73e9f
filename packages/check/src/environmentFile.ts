/** Environment files as systemd reads them (systemd.exec(5), `EnvironmentFile=`). Pure. */

const SPACE = ' \t\n\r';
const LINE_END = '\n\r';
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

type State = 'preKey' | 'key' | 'preValue' | 'value' | 'escape' | 'single' | 'double' | 'doubleEscape' | 'comment';

/** Variables with names that are names. A quote that is not closed holds the rest of the file. */
export function environmentOf(text: string): Map<string, string> {
  const reader = new Reader();
  for (const c of text) reader.take(c);
  return reader.end();
}

/** Quotes count at the beginning of a value and behind other quotes alone: in the middle of a value they belong to it. */
class Reader {
  readonly #found = new Map<string, string>();
  #state: State = 'preKey';
  #key = '';
  #value = '';
  /** Length of the value without spaces at its end. */
  #kept = 0;

  take(c: string): void {
    switch (this.#state) {
      case 'preKey':
        if (c === '#' || c === ';') this.#state = 'comment';
        else if (!SPACE.includes(c)) {
          this.#state = 'key';
          this.#key = c;
        }
        return;
      case 'key':
        if (LINE_END.includes(c)) this.#state = 'preKey';
        else if (c === '=') this.#state = 'preValue';
        else this.#key += c;
        return;
      case 'comment':
        if (LINE_END.includes(c)) this.#state = 'preKey';
        return;
      case 'preValue':
        if (LINE_END.includes(c)) this.#push();
        else if (c === "'") this.#state = 'single';
        else if (c === '"') this.#state = 'double';
        else if (c === '\\') this.#state = 'escape';
        else if (!SPACE.includes(c)) {
          this.#state = 'value';
          this.#add(c);
        }
        return;
      case 'value':
        if (LINE_END.includes(c)) this.#push();
        else if (c === '\\') {
          this.#state = 'escape';
          this.#kept = this.#value.length;
        } else if (SPACE.includes(c)) this.#value += c;
        else this.#add(c);
        return;
      default:
        this.#inside(c);
    }
  }

  end(): Map<string, string> {
    if (this.#state !== 'preKey' && this.#state !== 'key' && this.#state !== 'comment') this.#push();
    return this.#found;
  }

  /** Of quotes, and behind backslashes. A line end behind one goes with it. */
  #inside(c: string): void {
    switch (this.#state) {
      case 'escape':
        this.#state = 'value';
        if (!LINE_END.includes(c)) this.#add(c);
        return;
      case 'single':
        if (c === "'") this.#state = 'preValue';
        else this.#add(c);
        return;
      case 'double':
        if (c === '"') this.#state = 'preValue';
        else if (c === '\\') this.#state = 'doubleEscape';
        else this.#add(c);
        return;
      default:
        this.#state = 'double';
        if ('"\\`$'.includes(c)) this.#add(c);
        else if (c !== '\n') this.#add(`\\${c}`);
    }
  }

  #add(text: string): void {
    this.#value += text;
    this.#kept = this.#value.length;
  }

  #push(): void {
    const key = this.#key.trim();
    if (NAME.test(key)) this.#found.set(key, this.#value.slice(0, this.#kept));
    [this.#state, this.#key, this.#value, this.#kept] = ['preKey', '', '', 0];
  }
}
