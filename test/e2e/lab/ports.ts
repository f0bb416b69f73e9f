/** Real clock and loggers for tests that talk to a real runtime. */
import type { Clock, Logger } from '../../../src/ports/ports.ts';

export const realClock: Clock = {
  wallMs: () => Date.now(),
  monoMs: () => performance.now(),
  setTimeout: (fn, ms) => setTimeout(fn, ms),
  clearTimeout: (id) => clearTimeout(id as NodeJS.Timeout),
};

export const quietLog: Logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => quietLog,
};

/** A look costs the runtime and the daemon processor time. So a long wait looks less often than a short one. */
const FIRST_LOOK_MS = 10;
const LOOKS_GROW = 1.2;
const SELDOM_MS = 200;

/**
 * Waits for a condition; fails with `what` after `timeoutMs` (default 90 s). It looks every `everyMs`; without it after 10 ms, and then
 * less and less often, up to every 200 ms. Give `everyMs` where a moment must not be missed.
 */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  o: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + (o.timeoutMs ?? 90_000);
  let last: unknown;
  let pauseMs = o.everyMs ?? FIRST_LOOK_MS;
  for (;;) {
    try {
      const value = await probe();
      if (value) return value as NonNullable<Exclude<T, false>>;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) throw new Error(`gave up waiting for ${what}; last: ${String(last)}`);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    if (o.everyMs === undefined) pauseMs = Math.min(SELDOM_MS, pauseMs * LOOKS_GROW);
  }
}
