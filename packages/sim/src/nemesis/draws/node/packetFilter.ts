/** Nodes that keep their chains in the packet filter of their machine, and trouble with it. */
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';

const KEEPS = 0.3;

export function drawPacketFilter(rng: SimRng): boolean {
  return rng.chance(KEEPS);
}

/** Commands fail, hang, or find the lock of the tables held, also at the first start; another program removes the chains. */
export function packetFilterTrouble(rng: SimRng, o: { spanMs: number }, add: Add): void {
  for (let left = 1 + rng.int(4); left > 0; left--) {
    const at = rng.next() * o.spanMs;
    const always = { probability: 1, select: {} };
    if (rng.chance(0.5)) add(at, { kind: 'iptables.flush', ...always });
    const action = rng.pick(['error', 'hang', 'locked', 'locked'] as const) ?? 'locked';
    const some = { probability: rng.chance(0.5) ? 1 : rng.next(), select: {} };
    if (rng.chance(0.7)) add(at + 10, { kind: 'iptables', ...some, action }, Math.round(rng.between(1_000, 70_000)));
    const path = 'node/services/iptables';
    if (rng.chance(0.4)) add(at + 20, { kind: 'actor.kill', probability: 1, select: { actors: [path] }, pick: 'one' });
  }
}
