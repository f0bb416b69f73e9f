/** A few places for which many wait: first come, first served among those of one peer, and one after the other among peers. */
import type { Clock } from '../../../ports/ports.ts';

export interface TurnsOptions {
  /** How many have a place at the same time. */
  atOnceMax: number;
  /** How many of one peer may wait. */
  waitingMax: number;
  waitMs: number;
}
/** `crowded`: too many of this peer wait already. `late`: its turn did not come in time, or its caller gave up. */
export type Turn = { kind: 'place'; leave(): void } | { kind: 'crowded' } | { kind: 'late' };
export type Turns = (peer: string, signal: AbortSignal) => Promise<Turn>;

type Waiter = (turn: Turn) => void;

export function createTurns(o: TurnsOptions, clock: Clock): Turns {
  /** By peer, in the order in which it is their turn: whose one was served goes to the end. */
  const waiting = new Map<string, Set<Waiter>>();
  let taken = 0;
  const place = (): Turn => {
    let held = true;
    return {
      kind: 'place',
      leave() {
        if (!held) return;
        held = false;
        taken -= 1;
        serve();
      },
    };
  };
  const remove = (peer: string, waiter: Waiter): void => {
    const ofPeer = waiting.get(peer);
    ofPeer?.delete(waiter);
    if (ofPeer?.size === 0) waiting.delete(peer);
  };
  const serve = (): void => {
    for (const [peer, ofPeer] of waiting) {
      if (taken >= o.atOnceMax) return;
      const [next] = ofPeer;
      if (next === undefined) continue;
      waiting.delete(peer);
      ofPeer.delete(next);
      // Behind those who wait now; the loop comes to it again while there is room.
      if (ofPeer.size > 0) waiting.set(peer, ofPeer);
      taken += 1;
      next(place());
    }
  };
  return async (peer, signal) => {
    if (signal.aborted) return { kind: 'late' };
    const ofPeer = waiting.get(peer) ?? new Set<Waiter>();
    if (ofPeer.size >= o.waitingMax) return { kind: 'crowded' };
    waiting.set(peer, ofPeer);
    return new Promise((resolve) => {
      const settle: Waiter = (turn) => {
        clock.clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        resolve(turn);
      };
      const giveUp = (): void => {
        remove(peer, settle);
        settle({ kind: 'late' });
      };
      const timer = clock.setTimeout(giveUp, o.waitMs);
      signal.addEventListener('abort', giveUp, { once: true });
      ofPeer.add(settle);
      serve();
    });
  };
}
