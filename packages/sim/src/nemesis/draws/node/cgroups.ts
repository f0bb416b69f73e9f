/** Nodes that keep cgroups of their own, one in six. */

import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { CgroupTuning } from '@actorlet/world/src/runtime/cgroupTrouble.ts';

const GROUPS = 1 / 6;
const LATENCIES_MS = [0, 1, 50, 400] as const;
const FAILING = [0, 0.05, 0.3] as const;
const TAKEN = 0.3;
/** A world's first minutes. */
const YOUNG_MS = 70_000;

export function drawCgroups(rng: SimRng): CgroupTuning | null {
  if (!rng.chance(GROUPS)) return null;
  return {
    latencyMs: rng.pick(LATENCIES_MS) ?? 0,
    failing: rng.pick(FAILING) ?? 0,
    healsAtMs: rng.between(5_000, YOUNG_MS),
    takenAtMs: rng.chance(TAKEN) ? rng.between(5_000, YOUNG_MS) : null,
    podPidsLimit: rng.chance(0.5) ? 1_000 : -1,
    // A stream of its own draws this: seeds keep their other draws.
    systemd: rng.fork('driver').chance(0.5),
  };
}
