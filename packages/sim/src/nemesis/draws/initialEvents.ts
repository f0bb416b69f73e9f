/** API servers that stream initial events, and such as do not; and trouble in the middle of a stream. */
import type { InitialEvents } from '@actorlet/world/src/kube/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../entries.ts';

export function drawInitialEvents(rng: SimRng): InitialEvents {
  return rng.pick(['send', 'send', 'send', 'send', 'send', 'refuse', 'refuse', 'ignore'] as const) ?? 'send';
}

/** How often a node of a cluster has such trouble. */
const TROUBLED = 0.3;
const RESOURCES = ['pods', 'pods', 'services', 'nodes'] as const;

/**
 * The API source and its like begin anew while their streams go wrong: lines come twice, or each stream ends
 * somewhere between its first object and its end.
 */
export function initialEventsTrouble(rng: SimRng, o: { spanMs: number }, add: Add): void {
  if (!rng.chance(TROUBLED)) return;
  for (let left = 1 + rng.int(3); left > 0; left--) {
    const at = rng.next() * o.spanMs;
    const forMs = Math.round(rng.between(1_000, 15_000));
    const action = rng.pick(['duplicate', 'duplicate', 'truncate', 'close'] as const) ?? 'duplicate';
    const select = { resources: [rng.pick(RESOURCES) ?? 'pods'] };
    add(at, { kind: 'api.watch', delayMs: 0, probability: rng.between(0.1, 0.6), select, action }, forMs);
    if (rng.chance(0.5)) add(at + 50, { kind: 'history.compact' });
    if (rng.chance(0.5)) add(at + 100, { kind: 'actor.kill', probability: 1, select: { actors: ['node/pods/sources/api'] }, pick: 'one' });
  }
}
