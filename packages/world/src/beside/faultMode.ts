/** How a helper of a node is at the moment: a program, or a process that looks for it. */
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

/** `garbage`: it says what is no answer. */
export const FAULT_MODES = ['well', 'slow', 'fails', 'hangs', 'garbage'] as const;
export type FaultMode = (typeof FAULT_MODES)[number];

/** One call of one daemon: it ends at its deadline, and when nobody wants its answer any more. */
export interface HelperCall {
  clock: Clock;
  power: { on: boolean };
  timeoutMs: number;
  signal: AbortSignal;
}

/** Waits; null = for ever. Rejects at the deadline and when the caller gives up; what a dead daemon waits for never comes. */
export function working(afterMs: number | null, { clock, power, timeoutMs, signal }: HelperCall): Promise<void> {
  return new Promise((resolve, reject) => {
    const timers: unknown[] = [];
    const end = (fn: () => void): void => {
      for (const timer of timers) clock.clearTimeout(timer);
      signal.removeEventListener('abort', cancel);
      if (power.on) fn();
    };
    const cancel = (): void => end(() => reject(new Error('it was killed: nobody waits for it')));
    if (signal.aborted) return cancel();
    signal.addEventListener('abort', cancel, { once: true });
    if (afterMs !== null) timers.push(clock.setTimeout(() => end(resolve), afterMs));
    timers.push(clock.setTimeout(() => end(() => reject(new Error(`it was killed after ${timeoutMs} ms`))), timeoutMs));
  });
}
