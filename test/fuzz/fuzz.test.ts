/** The fuzzer with the cases of this very content: a build that was green stays green, and the next change has its own. */
import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { COMPILED_ONCE } from '../compiled.ts';
import { RUNS_ALL } from '../rotation.ts';

const CASES = RUNS_ALL ? 20_000 : 500;
const LIMIT_MS = 900_000;
const ROOT = join(import.meta.dirname, '..', '..');

function ofContent(): number {
  try {
    const tree = execFileSync('git', ['rev-parse', 'HEAD^{tree}'], { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return 1 + (Number.parseInt(tree.slice(0, 7), 16) % 1_000_000_000);
  } catch {
    return 1;
  }
}

it(
  'finds nothing',
  async () => {
    const seed = process.env.ACTORLET_FUZZ_SEED ?? String(ofContent());
    const args = ['--disable-warning=ExperimentalWarning', join(import.meta.dirname, 'main.ts'), '--seed', seed, '--cases', String(CASES)];
    const run = await promisify(execFile)(process.execPath, args, {
      ...{ cwd: ROOT, maxBuffer: 1 << 24, env: { ...process.env, ...COMPILED_ONCE } },
    }).catch((error: { stdout: string; stderr: string }) => error);
    console.log(run.stdout);
    expect(run.stdout.split('\n').filter((line) => line.startsWith('FAIL'))).toEqual([]);
    expect(run.stdout).toMatch(/, 0 failed\n$/);
  },
  LIMIT_MS,
);
