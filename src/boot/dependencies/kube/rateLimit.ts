/** A client-side rate limit that makes callers wait their turn, first come first served. */
import type { Clock } from '../../../ports/ports.ts';

export interface RateLimiter {
  /** Resolves when the caller may go; rejects with the signal's reason when it gave up first. */
  acquire(signal: AbortSignal): Promise<void>;
}

export const UNLIMITED: RateLimiter = { acquire: async () => {} };

/** What the reference's client library takes for 0 (boot-and-node 6.1). */
const QPS_DEFAULT = 5;
const BURST_DEFAULT = 10;

/** `qps` calls a second on average, `burst` at once. 0 = the defaults above; a negative `qps` = no limit. */
export function createRateLimiter(o: { qps: number; burst: number; clock: Clock }): RateLimiter {
  const { clock } = o;
  const qps = o.qps === 0 ? QPS_DEFAULT : o.qps;
  const burst = o.burst <= 0 ? BURST_DEFAULT : o.burst;
  if (qps < 0) return UNLIMITED;
  const waiting: (() => void)[] = [];
  let tokens = burst;
  let atMs = clock.monoMs();
  let armed = false;

  const refill = (): void => {
    const now = clock.monoMs();
    tokens = Math.min(burst, tokens + (Math.max(0, now - atMs) / 1000) * qps);
    atMs = now;
  };
  const arm = (): void => {
    if (armed || waiting.length === 0) return;
    armed = true;
    clock.setTimeout(
      () => {
        armed = false;
        refill();
        while (tokens >= 1 && waiting.length > 0) {
          tokens -= 1;
          waiting.shift()?.();
        }
        arm();
      },
      Math.max(1, Math.ceil(((1 - tokens) / qps) * 1000)),
    );
  };
  return {
    acquire(signal) {
      signal.throwIfAborted();
      refill();
      if (waiting.length === 0 && tokens >= 1) {
        tokens -= 1;
        return Promise.resolve();
      }
      return new Promise<void>((resolve, reject) => {
        const go = (): void => {
          signal.removeEventListener('abort', giveUp);
          resolve();
        };
        const giveUp = (): void => {
          const at = waiting.indexOf(go);
          if (at >= 0) waiting.splice(at, 1);
          reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
        };
        signal.addEventListener('abort', giveUp, { once: true });
        waiting.push(go);
        arm();
      });
    },
  };
}
