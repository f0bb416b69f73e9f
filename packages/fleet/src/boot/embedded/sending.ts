/** Sends answers to clients that may read slowly, or not at all. What waits for them is bounded in bytes. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

/** A text is written in parts of this size: the socket of a reader that does not read holds one of them. */
const PART_CHARS = 64 * 1024;
/** A reader that takes nothing for so long is cut off. */
const READ_TIMEOUT_MS = 60_000;
/** Of all answers together. While more waits for readers, requests are answered with 429. */
const UNREAD_CHARS_MAX = 128 * 1024 * 1024;

export class Sending {
  #unread = 0;

  /** So much waits for readers that no other answer should be made. */
  get isFull(): boolean {
    return this.#unread > UNREAD_CHARS_MAX;
  }

  async answer(res: ServerResponse, code: number, body: unknown): Promise<void> {
    const text = JSON.stringify(body);
    this.#unread += text.length;
    try {
      res.writeHead(code, { 'content-type': 'application/json' });
      await this.write(res, text);
      res.end();
    } finally {
      this.#unread -= text.length;
    }
  }

  /** Waits for the reader. One that does not read is cut off. */
  async write(res: ServerResponse, text: string): Promise<void> {
    for (let at = 0; at < text.length && !res.destroyed; ) {
      let end = Math.min(text.length, at + PART_CHARS);
      // No character of two units is cut in half.
      if (end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end -= 1;
      const isTaken = res.write(text.slice(at, end));
      at = end;
      if (!isTaken) await drained(res);
    }
  }
}

async function drained(res: ServerResponse): Promise<void> {
  const over = new AbortController();
  const close = (): void => over.abort();
  const late = setTimeout(() => res.destroy(), READ_TIMEOUT_MS);
  res.once('close', close);
  try {
    await once(res, 'drain', { signal: over.signal });
  } catch (error) {
    if (!over.signal.aborted) throw error;
  } finally {
    clearTimeout(late);
    res.off('close', close);
  }
}
