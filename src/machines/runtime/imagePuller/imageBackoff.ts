/** Back-off of failed image pulls, per pod and image (pod lifecycle 5.8). Bookkeeping only. */

const IMAGE_BACKOFF_MIN_MS = 10_000;
const IMAGE_BACKOFF_MAX_MS = 300_000;
/** An entry not touched for this long is forgotten: the next failure begins at the first step again. */
const FORGET_AFTER_MS = 2 * IMAGE_BACKOFF_MAX_MS;

export interface ImageBackoffEntry {
  delayMs: number;
  /** Monotonic milliseconds of the failure that set it. */
  failedAtMonoMs: number;
  /** Reason and text of that failure, for the waiting message. */
  previous: string;
}

/** The entry after one more failure. */
export function afterFailure(entry: ImageBackoffEntry | undefined, nowMonoMs: number, previous: string): ImageBackoffEntry {
  const fresh = entry === undefined || nowMonoMs - entry.failedAtMonoMs > FORGET_AFTER_MS;
  return {
    delayMs: fresh ? IMAGE_BACKOFF_MIN_MS : Math.min(IMAGE_BACKOFF_MAX_MS, entry.delayMs * 2),
    failedAtMonoMs: nowMonoMs,
    previous,
  };
}

/** Milliseconds until the next pull is allowed; 0 = now. Measured from the last failed pull. */
export function remainingMs(entry: ImageBackoffEntry | undefined, nowMonoMs: number): number {
  return entry === undefined ? 0 : Math.max(0, entry.failedAtMonoMs + entry.delayMs - nowMonoMs);
}

export class ImageBackoffs {
  readonly #entries = new Map<string, ImageBackoffEntry>();

  get(uid: string, image: string): ImageBackoffEntry | undefined {
    return this.#entries.get(`${uid}_${image}`);
  }
  failed(o: { uid: string; image: string; nowMonoMs: number; previous: string }): ImageBackoffEntry {
    const key = `${o.uid}_${o.image}`;
    const next = afterFailure(this.#entries.get(key), o.nowMonoMs, o.previous);
    this.#entries.set(key, next);
    return next;
  }
  /** Forgets what was not touched for ten minutes. */
  collect(nowMonoMs: number): void {
    for (const [key, entry] of this.#entries) if (nowMonoMs - entry.failedAtMonoMs > FORGET_AFTER_MS) this.#entries.delete(key);
  }
  size(): number {
    return this.#entries.size;
  }
}
