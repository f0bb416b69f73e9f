/** Nodes that hold the kernel of their machine to settings, and trouble with those at a start of the daemon. */
import type { KernelTuning } from '@actorlet/world/src/host/kernelSettings.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';

const HOLDS = 0.2;
const PROTECTS = 0.4;

export function drawKernelSettings(rng: SimRng): KernelTuning | null {
  return rng.chance(HOLDS) ? { protect: rng.chance(PROTECTS) } : null;
}

/** Settings matter at a start alone: each trouble comes with one, and lasts over a few that fail. */
export function kernelSettingsTrouble(rng: SimRng, o: { spanMs: number }, add: Add): void {
  for (let left = 1 + rng.int(2); left > 0; left--) {
    const at = rng.next() * o.spanMs;
    const forMs = Math.round(rng.between(1_000, 12_000));
    const change = { kind: 'sysctl', probability: 1, select: {}, action: 'changed' } as const;
    const action = rng.pick(['changed', 'unreadable', 'readonly', 'forbidden'] as const) ?? 'changed';
    if (action === 'readonly' || action === 'forbidden') add(at, change, forMs);
    add(at + 10, { ...change, action, probability: rng.chance(0.6) ? 1 : rng.next() }, forMs);
    const how = rng.chance(0.7) ? 'process' : 'power';
    add(at + 20, { kind: 'node.kill', probability: 1, select: {}, action: how, downMs: Math.round(rng.between(0, 2_000)) });
  }
}
