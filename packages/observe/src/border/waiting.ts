/** Waiting until the world shows something. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

/** The first look after an act, and the longest time between two. */
const LOOK_MIN_MS = 100;
const LOOK_MAX_MS = 2_000;
const FACTOR = 1.5;

export type WaitEnd<T> = { kind: 'shown'; value: T } | { kind: 'late' } | { kind: 'given up' };

export interface Waiting<T> {
  /** Undefined: not yet. What it throws ends the wait. */
  look(): Promise<T | undefined>;
  /** Null: for as long as the signal lets it. */
  timeoutMs: number | null;
  signal?: AbortSignal;
}

export async function untilShown<T>(clock: Clock, o: Waiting<T>): Promise<WaitEnd<T>> {
  const began = clock.monoMs();
  for (let everyMs = LOOK_MIN_MS; ; everyMs = Math.min(everyMs * FACTOR, LOOK_MAX_MS)) {
    if (o.signal?.aborted === true) return { kind: 'given up' };
    const value = await o.look();
    if (value !== undefined) return { kind: 'shown', value };
    const leftMs = o.timeoutMs === null ? everyMs : o.timeoutMs - (clock.monoMs() - began);
    if (leftMs <= 0) return { kind: 'late' };
    await asleep(clock, Math.min(everyMs, leftMs), o.signal);
  }
}

/** Ends early when it is given up. */
function asleep(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clock.clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = clock.setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}
