/**
 * Which edges of the node's statecharts seeds take. Prints what is taken and what is not, with the reason that `untaken.ts`
 * gives, and each seed that broke an invariant. Exits 1 when one did, when an edge is never taken without a reason, or a reason stands
 * for one that is taken.
 * Usage: node packages/sim/test/edges/run.ts [SEEDS (default 200)] [FIRST (default 1)] [PROCESSES (default: one per core)]
 */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { addCoverage, type Coverage, coverageOf, runSim } from '../../src/index.ts';
import { RARE, UNTAKEN } from './untaken.ts';

/** What is wanted of the simulation as a whole, and the most exceptions one machine may have. */
const SHARE_MIN = 0.95;
const EXCEPTIONS_MAX = 10;

/** What a process has to say of one seed. */
interface Said {
  coverage: Coverage;
  broken: string | null;
}

const [seeds = 0, first = Number.NaN, processes = 0, part = 0] = [
  process.argv[2] ?? 200,
  process.argv[3] ?? 1,
  process.argv[4] ?? availableParallelism(),
  process.argv[5] ?? -1,
].map(Number);
if (!Number.isInteger(seeds) || seeds < 1 || !Number.isSafeInteger(first) || !Number.isInteger(processes) || processes < 1) {
  console.error('usage: node packages/sim/test/edges/run.ts [SEEDS] [FIRST] [PROCESSES]');
  process.exit(2);
}
if (part >= 0) await measure();
else {
  const { sum, broken } = await gather();
  judge(sum, broken);
}

/** One process of several: every so many seeds are its own. */
async function measure(): Promise<void> {
  for (let seed = first + part; seed < first + seeds; seed += processes) {
    const { coverage, violation } = await runSim({ seed, minutes: 1, pods: 6, coverage: true });
    const broken = violation === null ? null : `seed ${seed} broke the invariant ${violation.invariant}: ${violation.what}`;
    process.send?.({ coverage: coverage ?? {}, broken } satisfies Said);
  }
  process.disconnect();
}

async function gather(): Promise<{ sum: Coverage; broken: number }> {
  const sum: Coverage = {};
  let broken = 0;
  const one = (index: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = fork(import.meta.filename, [seeds, first, processes, index].map(String));
      child.on('message', (said: Said) => {
        addCoverage(sum, said.coverage);
        if (said.broken === null) return;
        broken += 1;
        console.log(said.broken);
      });
      child.on('error', reject);
      child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`process ${index} ended with ${code}`))));
    });
  await Promise.all(Array.from({ length: processes }, (_, index) => one(index)));
  return { sum, broken };
}

function judge(sum: Coverage, broken: number): void {
  const complaints = broken === 0 ? [] : [`${broken} of ${seeds} seeds broke an invariant`];
  let taken = 0;
  let total = 0;
  for (const m of coverageOf(sum)) {
    taken += m.taken;
    total += m.total;
    const reasons = UNTAKEN[m.machine] ?? {};
    console.log(`${m.machine}: ${m.taken} of ${m.total}`);
    for (const edge of m.missing) {
      const reason = reasons[edge];
      console.log(`  never: ${edge}${reason === undefined ? '' : ` (${reason})`}`);
      if (reason === undefined) complaints.push(`${m.machine}: ${edge} was never taken, and nothing says why`);
    }
    for (const [edge, reason] of Object.entries(reasons)) {
      if (reason !== RARE && !m.missing.includes(edge))
        complaints.push(`${m.machine}: ${edge} is named as never taken, but it is taken or is not there`);
    }
    if (m.missing.length > EXCEPTIONS_MAX)
      complaints.push(`${m.machine}: ${m.missing.length} edges were never taken, ${EXCEPTIONS_MAX} may be`);
  }
  const share = taken / Math.max(1, total);
  console.log(`${taken} of ${total} edges (${(100 * share).toFixed(1)} %) in ${seeds} seeds`);
  if (share < SHARE_MIN) complaints.push(`${(100 * share).toFixed(1)} % is less than ${100 * SHARE_MIN} %`);
  for (const c of complaints) console.log(c);
  process.exitCode = complaints.length === 0 ? 0 : 1;
}
