/** What one node is sent of a shared watch: first what it listed, then what is newer than that. */

/** Lines that wait for a slow reader; beyond them it is told to begin anew. */
const WAITING_MAX = 10_000;

export interface Line {
  version: number;
  text: string;
}

/** Says that nothing up to this version is missing. A watcher that hears nothing for 90 s lists all anew. */
export function bookmarkAt(resourceVersion: string): Line {
  return { version: versionOf(resourceVersion), text: JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion } } }) };
}

export class Subscription {
  readonly #queue: string[] = [];
  /** Came before its list had. */
  #early: Line[] | null = [];
  /** What it listed is as new as this. */
  #from = 0;
  #ended = false;
  #wake: (() => void) | null = null;
  readonly #signal: AbortSignal;
  readonly #closed: (it: Subscription) => void;

  constructor(signal: AbortSignal, closed: (it: Subscription) => void) {
    this.#signal = signal;
    this.#closed = closed;
    signal.addEventListener('abort', this.close, { once: true });
  }

  /** A line of its own, before {@link begin}. */
  push(line: object): void {
    this.#queue.push(JSON.stringify(line));
  }

  /** From here on it is sent what is newer than this version. */
  begin(version: number): void {
    this.#from = version;
    const early = this.#early ?? [];
    this.#early = null;
    for (const line of early) this.offer(line);
  }

  offer(line: Line): void {
    if (this.#ended) return;
    if (this.#early !== null) {
      this.#early.push(line);
      return;
    }
    if (line.version <= this.#from) return;
    this.#send(line);
  }

  /** Also where nothing has changed since it listed. */
  mark(bookmark: Line): void {
    if (!this.#ended && this.#early === null && bookmark.version >= this.#from) this.#send(bookmark);
  }

  #send(line: Line): void {
    if (this.#queue.length < WAITING_MAX) this.#queue.push(line.text);
    else this.expire();
    this.#wake?.();
  }

  /** As the API server ends a watch whose history it no longer has. */
  expire(): void {
    this.#queue.push(EXPIRED);
    this.#ended = true;
    this.#wake?.();
  }

  readonly close = (): void => {
    this.#ended = true;
    this.#queue.length = 0;
    this.#signal.removeEventListener('abort', this.close);
    this.#closed(this);
    this.#wake?.();
  };

  async *lines(): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        const line = this.#queue.shift();
        if (line !== undefined) yield line;
        else if (this.#ended) return;
        else await this.#woken();
      }
    } finally {
      this.close();
    }
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = null;
        resolve();
      };
    });
  }
}

const EXPIRED = JSON.stringify({
  type: 'ERROR',
  object: { kind: 'Status', status: 'Failure', reason: 'Expired', code: 410, message: 'too old resource version of a shared watch' },
});

/** Versions of one API server can be compared as numbers. */
export function versionOf(resourceVersion: unknown): number {
  const version = Number(resourceVersion);
  return Number.isFinite(version) ? version : 0;
}
