/** The real ports of time, chance and turns: Clock, Rng, Entropy and Yield. */
import { hash, randomBytes } from 'node:crypto';
import type { Clock, Entropy, Rng, Yield } from '../../ports/ports.ts';

/** Longest wait a Node timer takes (2^31 - 1 ms, 24.8 days); a longer one would fire at once. */
const TIMER_MAX_MS = 2_147_483_647;

interface LongTimer {
  handle: NodeJS.Timeout;
}

export function createClock(): Clock {
  const arm = (timer: LongTimer | null, fn: () => void, ms: number): LongTimer => {
    const now = Math.min(ms, TIMER_MAX_MS);
    const rest = ms - now;
    const handle = setTimeout(() => (rest > 0 ? arm(own, fn, rest) : fn()), now);
    const own = timer ?? { handle };
    own.handle = handle;
    return own;
  };
  return {
    wallMs: () => Date.now(),
    monoMs: () => performance.now(),
    setTimeout: (fn, ms) => arm(null, fn, Math.max(0, ms)),
    clearTimeout: (id) => {
      if (typeof id === 'object' && id !== null && 'handle' in id) clearTimeout((id as LongTimer).handle);
    },
  };
}

/** Jitter only: no key and no name may come from it. */
export function createRng(): Rng {
  return { next: () => Math.random() };
}

export function createEntropy(): Entropy {
  return {
    bytes: (count) => new Uint8Array(randomBytes(count)),
    md5Hex: (text) => hash('md5', text),
    sha256Hex: (text) => hash('sha256', text),
  };
}

export function createYield(): Yield {
  return {
    defer: (fn) => {
      setImmediate(fn);
    },
  };
}
