/**
 * Which edges of the node's statecharts seeds take. Prints what is taken and what is not, with the reason that `untaken.ts`
 * gives, and exits 1 when an edge is never taken without a reason, or a reason stands for one that is.
 * Usage: node test/sim/edges/run.ts [SEEDS (default 200)] [FIRST (default 1)]
 */
import { addCoverage, type Coverage, coverageOf, runSim } from '../../../src/sim/index.ts';
import { RARE, UNTAKEN } from './untaken.ts';

/** What is wanted of the simulation as a whole, and the most exceptions one machine may have. */
const SHARE_MIN = 0.95;
const EXCEPTIONS_MAX = 10;

const seeds = Number(process.argv[2] ?? 200);
const first = Number(process.argv[3] ?? 1);
if (!Number.isInteger(seeds) || seeds < 1 || !Number.isSafeInteger(first)) {
  console.error('usage: node test/sim/edges/run.ts [SEEDS] [FIRST]');
  process.exit(2);
}

const sum: Coverage = {};
for (let seed = first; seed < first + seeds; seed++) {
  const r = await runSim({ seed, minutes: 1, pods: 6, coverage: true });
  if (r.coverage !== null) addCoverage(sum, r.coverage);
  if (r.violation !== null) console.log(`seed ${seed} broke the claim ${r.violation.claim}: ${r.violation.what}`);
}

const complaints: string[] = [];
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
