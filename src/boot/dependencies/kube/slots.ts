/** How many may be at it at the same time; the others wait their turn, first come first served. */

export interface Slots {
  /** Resolves, when there is room, with what gives the place back (once); rejects with the signal's reason when the caller gave up first. */
  take(signal: AbortSignal): Promise<() => void>;
}

export function createSlots(max: number): Slots {
  const waiting: (() => void)[] = [];
  let taken = 0;
  const place = (): (() => void) => {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const next = waiting.shift();
      if (next === undefined) taken -= 1;
      else next();
    };
  };
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (taken < max) {
        taken += 1;
        return place();
      }
      return new Promise((resolve, reject) => {
        const go = (): void => {
          signal.removeEventListener('abort', giveUp);
          resolve(place());
        };
        const giveUp = (): void => {
          waiting.splice(waiting.indexOf(go), 1);
          reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
        };
        signal.addEventListener('abort', giveUp, { once: true });
        waiting.push(go);
      });
    },
  };
}
