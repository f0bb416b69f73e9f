/** What is beside the daemon of a node: each by chances of its own. */
import type { BesideTuning } from '@actorlet/world/src/beside/beside.ts';
import type { LogTuning } from '@actorlet/world/src/beside/logs.ts';
import type { ProgramTuning } from '@actorlet/world/src/beside/programs.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';

const PROGRAMS = 0.15;
const LOGS = 0.2;
/** Share of nodes whose API is served: nobody asks the others. */
const USAGE = 0.5;
const JOURNAL = 0.4;

/** `served`: the node's API is. */
export function drawBeside(rng: SimRng, { served }: { served: boolean }): BesideTuning {
  return {
    programs: drawPrograms(rng.fork('programs')),
    usage: served && rng.fork('usage').chance(USAGE),
    journal: served && rng.fork('journal').chance(JOURNAL),
    logs: drawLogs(rng.fork('logs')),
  };
}

function drawPrograms(rng: SimRng): ProgramTuning | null {
  if (!rng.chance(PROGRAMS)) return null;
  return {
    latencyMs: rng.pick([0, 20, 800] as const) ?? 0,
    tokens: rng.pick(['none', 'ServiceAccount', 'Token'] as const) ?? 'none',
  };
}

function drawLogs(rng: SimRng): LogTuning | null {
  if (!rng.chance(LOGS)) return null;
  return {
    maxBytes: rng.pick([1_000, 4_000, 12_000] as const) ?? 4_000,
    filesMax: rng.pick([2, 3, 5] as const) ?? 5,
    workers: rng.pick([1, 1, 3] as const) ?? 1,
    everyMs: rng.pick([3_000, 10_000] as const) ?? 10_000,
    growthBytes: rng.pick([200, 1_000] as const) ?? 200,
  };
}
