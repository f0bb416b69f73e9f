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

/** Waits for a condition, looking every `everyMs` (default 10); fails with `what` after `timeoutMs` (default 90 s). */
export async function until<T>(
  what: string,
  probe: () => T | Promise<T>,
  o: { timeoutMs?: number; everyMs?: number } = {},
): Promise<NonNullable<Exclude<T, false>>> {
  const deadline = performance.now() + (o.timeoutMs ?? 90_000);
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value) return value as NonNullable<Exclude<T, false>>;
      last = value;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline) throw new Error(`gave up waiting for ${what}; last: ${String(last)}`);
    await new Promise((resolve) => setTimeout(resolve, o.everyMs ?? 10));
  }
}
