/** Trouble with the watch of the node's own object, while other programs change it. */
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';

/** How often a node of a cluster has such trouble. */
const TROUBLED = 0.3;

/** The watch says nothing, says it late, or has expired. */
export function nodeWatchTrouble(rng: SimRng, o: { spanMs: number }, add: Add): void {
  if (!rng.chance(TROUBLED)) return;
  for (let left = 1 + rng.int(3); left > 0; left--) {
    const at = rng.next() * o.spanMs;
    const action = rng.pick(['silence', 'expire', 'expire', 'delay', 'delay'] as const) ?? 'expire';
    const delayMs = action === 'delay' ? Math.round(rng.between(200, 20_000)) : 0;
    const select = { resources: ['nodes'] };
    add(at, { kind: 'api.watch', probability: 1, select, action, delayMs }, Math.round(rng.between(1_000, 30_000)));
    if (rng.chance(0.5)) add(at + rng.between(0, 5_000), { kind: 'node.moved' });
    if (rng.chance(0.3)) add(at + 10, { kind: 'history.compact' });
  }
}
