/**
 * Shows that the checkers bite: applies each mutant to a scratch copy and runs seeds until one fails that passes without
 * it. Usage: node test/sim/mutants/run.ts [SEEDS (default 200)] [TEXT: only mutants whose id has it]
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { MUTANTS, type Mutant } from './mutants.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const seeds = Number(process.argv[2] ?? 200);
const only = process.argv[3] ?? '';
const SIZE = ['--minutes=1', '--pods=6'];

interface Line {
  seed: number;
  claim: string | null;
  what: string;
}

const copy = mkdtempSync(join(tmpdir(), 'actorlet-mutants-'));
for (const name of ['src', 'package.json']) cpSync(join(root, name), join(copy, name), { recursive: true });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

/** Runs seeds until `take` says stop. Resolves with what the process said when it broke down. */
function run(count: number, take: (line: Line) => boolean): Promise<string> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['src/ctl/main.ts', 'sim', '--lines', '--seed=1', `--seeds=${count}`, ...SIZE], { cwd: copy });
    let words = '';
    let stopped = false;
    child.stderr.on('data', (b: Buffer) => {
      words += String(b);
    });
    createInterface({ input: child.stdout }).on('line', (text) => {
      if (stopped || !take(JSON.parse(text) as Line)) return;
      stopped = true;
      child.kill('SIGKILL');
    });
    child.on('close', (code) => resolve(stopped || code === 0 ? '' : words.slice(-500)));
  });
}

/** Null when caught, else why not. */
async function tried(m: Mutant, passing: ReadonlySet<number>): Promise<{ caught: string } | { missed: string }> {
  const path = join(copy, m.file);
  const text = readFileSync(path, 'utf8');
  const found = text.split(m.find).length - 1;
  if (found === 0) return { missed: 'its line is not there any more' };
  writeFileSync(
    path,
    text.replace(m.find, () => m.replace),
  );
  try {
    let caught = '';
    const broke = await run(seeds, (line) => {
      if (line.claim === null || !passing.has(line.seed)) return false;
      caught = `seed ${line.seed}: ${line.claim}`;
      return true;
    });
    if (caught !== '') return { caught };
    return broke === '' ? { missed: `not noticed in ${seeds} seeds` } : { caught: `it does not even run: ${broke.split('\n')[0]}` };
  } finally {
    writeFileSync(path, text);
  }
}

try {
  const passing = new Set<number>();
  await run(seeds, (line) => {
    if (line.claim === null) passing.add(line.seed);
    return false;
  });
  console.log(`without a mutant ${passing.size} of ${seeds} seeds pass`);
  let missed = 0;
  for (const m of MUTANTS.filter((one) => one.id.includes(only))) {
    const result = await tried(m, passing);
    if ('missed' in result) missed += 1;
    console.log('caught' in result ? `caught  ${m.id} (${result.caught})` : `MISSED  ${m.id}: ${result.missed}`);
  }
  console.log(`${missed} mutants missed`);
  process.exitCode = missed === 0 ? 0 : 1;
} finally {
  rmSync(copy, { recursive: true, force: true });
}
