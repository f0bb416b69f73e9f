/** `--seeds N`: the same run with the faults of many seeds, and the fewest faults of the first that breaks an expectation. */
import { fewest } from '@actorlet/world/src/fewest.ts';
import { drawnFaultsOf, type FleetSpec, withFaults } from '../../file.ts';
import { faultLine } from '../../proxy/faultLine.ts';
import type { ExpectReport } from '../../run/expectation.ts';
import type { FleetReport } from '../../run.ts';
import type { DrawnFault } from '../../spec/trouble.ts';

/** Runs that the search for the fewest faults may cost. */
const TRIES_MAX = 40;

export interface SeedsOptions {
  spec: FleetSpec;
  seeds: number;
  /** One run from nothing. Null: it was interrupted. */
  run(spec: FleetSpec): Promise<FleetReport | null>;
  nowMs(): number;
  say(text: string): void;
}

interface SeedReport {
  seed: number;
  green: boolean;
  seconds: number;
  hits: number;
}
interface Broken {
  seed: number;
  /** What was not met. */
  unmet: string;
  faults: readonly DrawnFault[];
  runs: number;
}
export interface SeedsReport {
  seeds: readonly SeedReport[];
  /** Null: all are green, as far as they ran. */
  broken: Broken | null;
  interrupted: boolean;
}

export async function runSeeds(o: SeedsOptions): Promise<SeedsReport> {
  const { spec, seeds, run, nowMs, say } = o;
  const done: SeedReport[] = [];
  for (let seed = spec.seed; seed < spec.seed + seeds; seed++) {
    const drawn = drawnFaultsOf({ ...spec, seed });
    const fromMs = nowMs();
    const report = await run(withFaults({ ...spec, seed }, drawn));
    if (report === null) return { seeds: done, broken: null, interrupted: true };
    const unmet = unmetOf(report);
    const seconds = Math.round((nowMs() - fromMs) / 100) / 10;
    const hits = (report.faults?.injected ?? []).reduce((sum, fault) => sum + fault.hits, 0);
    done.push({ seed, green: unmet === null, seconds, hits });
    say(`seed ${seed}: ${unmet === null ? 'green' : `RED: ${unmet}`} after ${seconds} s; ${drawn.length} faults hit ${hits} requests\n`);
    if (unmet === null) continue;
    const broken = await shrunk(o, { seed, unmet, drawn });
    return { seeds: done, broken, interrupted: broken === null };
  }
  return { seeds: done, broken: null, interrupted: false };
}

interface Found {
  seed: number;
  unmet: string;
  drawn: readonly DrawnFault[];
}

/** Null: it was interrupted. */
async function shrunk({ spec, run, say }: SeedsOptions, { seed, unmet, drawn }: Found): Promise<Broken | null> {
  let isOver = false;
  let runs = 0;
  const still = async (part: readonly DrawnFault[]): Promise<boolean> => {
    const report = await run(withFaults({ ...spec, seed }, part, drawn));
    isOver ||= report === null;
    runs += 1;
    const is = report !== null && unmetOf(report) === unmet;
    say(`  with ${part.length} of ${drawn.length} faults: ${is ? 'red' : 'green'}\n`);
    return is;
  };
  // What breaks without any fault is no matter of faults.
  if (drawn.length > 0 && (await still([]))) {
    say('it breaks without any fault, so the faults are not to blame: see the log of the controller, or give it more time\n');
    return { seed, unmet, faults: [], runs };
  }
  const faults = isOver ? [] : await fewest(drawn, still, { triesMax: TRIES_MAX, cancelled: () => isOver });
  if (isOver) return null;
  say(`fewest faults that break it, after ${runs} runs:\n${faults.map((fault) => `  - ${faultLine(fault)}\n`).join('')}`);
  return { seed, unmet, faults, runs };
}

/** The first that was decided and not met; null: none. A step that failed, or a node that did not start, is no matter of faults. */
function unmetOf({ expect }: FleetReport): string | null {
  const isUnmet = ({ decided, metMs }: ExpectReport): boolean => decided && metMs === null;
  return expect.find(isUnmet)?.expected.name ?? null;
}
