/**
 * Shows that the checkers bite: plants each mutant in a scratch copy and runs seeds until one fails that passes without it.
 * Prints a table; exits 1 when one is missed. Usage: node packages/sim/test/mutants/run.ts [--write] [SEEDS (default 200)] [TEXT: only
 * mutants whose id has it]. With --write the seeds that caught them are kept in caught.json, where the tests begin.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CAUGHT_BEFORE, MUTANTS, SEEDS_MAX } from './mutants.ts';
import { scratch } from './scratch.ts';

const argv = process.argv.slice(2);
const write = argv[0] === '--write';
const [count = String(SEEDS_MAX), only = ''] = write ? argv.slice(1) : argv;
const seeds = Number(count);
if (!Number.isInteger(seeds) || seeds < 1) {
  console.error('usage: node packages/sim/test/mutants/run.ts [--write] [SEEDS] [TEXT]');
  process.exit(2);
}

const row = (cells: readonly [string, string, string, string]): string =>
  `${cells[0].padEnd(82)} ${cells[1].padEnd(30)} ${cells[2].padStart(5)} ${cells[3].padStart(8)}`;

using copy = scratch();
console.log(row(['mutant', 'caught by invariant', 'seed', 'seconds']));
let missed = 0;
let tried = 0;
const caught: Record<string, number> = {};
for (const m of MUTANTS) {
  if (!m.id.includes(only)) {
    const before = CAUGHT_BEFORE[m.id];
    if (before !== undefined) caught[m.id] = before;
    continue;
  }
  const began = process.hrtime.bigint();
  const outcome = await copy.hunt(m, { first: 1, count: seeds });
  const seconds = (Number(process.hrtime.bigint() - began) / 1e9).toFixed(1);
  tried += 1;
  if (outcome.kind === 'caught') {
    caught[m.id] = outcome.by.seed;
    console.log(row([m.id, outcome.by.invariant ?? '', String(outcome.by.seed), seconds]));
  } else {
    missed += 1;
    console.log(row([m.id, outcome.kind === 'missed' ? `MISSED in ${seeds} seeds` : 'UNUSABLE', '-', seconds]));
    if (outcome.kind === 'unusable') console.log(`  ${outcome.why}`);
  }
}
if (write) writeFileSync(join(import.meta.dirname, 'caught.json'), `${JSON.stringify(caught, null, 2)}\n`);
console.log(`${tried - missed} of ${tried} mutants caught`);
process.exitCode = missed === 0 && tried > 0 ? 0 : 1;
