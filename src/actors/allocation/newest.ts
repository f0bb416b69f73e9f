/** Takes what a peer says again and again: words that come in quick succession are taken as one. */
import type { Ports } from '../../ports/ports.ts';

/** After a word the next one waits this many times as long as it took, within a bound. */
const REST_FACTOR = 25;
const REST_MAX_MS = 1_000;

/**
 * The first word after a rest is taken at once. `joined`: what two words say together; default: the newer one, which says all.
 * `drop`: nothing is taken any more.
 */
export function newestOnly<T>(
  { clock }: Pick<Ports, 'clock'>,
  take: (word: T) => void,
  joined: (before: T, word: T) => T = (_, word) => word,
): { put(word: T): void; drop(): void } {
  let timer: unknown = null;
  let waiting: { word: T } | null = null;
  let over = false;
  const put = (word: T): void => {
    if (over) return;
    if (timer !== null) {
      waiting = { word: waiting === null ? word : joined(waiting.word, word) };
      return;
    }
    const beganMs = clock.monoMs();
    take(word);
    const restMs = Math.min(REST_MAX_MS, (clock.monoMs() - beganMs) * REST_FACTOR);
    if (restMs < 1) return;
    timer = clock.setTimeout(() => {
      timer = null;
      const next = waiting;
      waiting = null;
      if (next !== null) put(next.word);
    }, restMs);
  };
  return {
    put,
    drop: () => {
      over = true;
      waiting = null;
      if (timer !== null) clock.clearTimeout(timer);
    },
  };
}
