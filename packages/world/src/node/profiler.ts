/** Profiles of a simulated daemon: one at a time, over when its time is, and nothing in them but how long was looked. */
import type { Clock, Profiler } from '@actorlet/kubelet/ports/ports.ts';

/** One for each daemon: what an earlier one was taking ended with it. */
export function simProfiler(o: { clock: Clock; power: { on: boolean } }): Profiler {
  let busy = false;
  const take = (what: string, ms: number, signal: AbortSignal): Promise<string> => {
    if (busy) return Promise.reject(Object.assign(new Error('another profile is being taken'), { code: 'EBUSY' }));
    if (signal.aborted) return Promise.reject(new Error('nobody waits for the profile'));
    busy = true;
    return new Promise((resolve, reject) => {
      const over = (settle: () => void): void => {
        o.clock.clearTimeout(timer);
        signal.removeEventListener('abort', givenUp);
        busy = false;
        if (o.power.on) settle();
      };
      const givenUp = (): void => over(() => reject(new Error('nobody waits for the profile')));
      const timer = o.clock.setTimeout(() => over(() => resolve(JSON.stringify({ what, ms }))), ms);
      signal.addEventListener('abort', givenUp, { once: true });
    });
  };
  return { cpu: (ms, signal) => take('cpu', ms, signal), heap: (ms, signal) => take('heap', ms, signal) };
}
