/** A bug is found with a recording of a node without it, cut down to a test, and the test fails with the bug alone. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { recordSeed } from '../../src/ctl/commands/sim/record.ts';
import { MUTANTS } from '../sim/mutants/mutants.ts';
import { toldTo } from './toldTo.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const FOUND = 'test/replay/found/backOff';
let dir: string;
let checkout: string;
let inputs: string;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-keep-'));
  inputs = join(dir, 'inputs');
  await recordSeed(toldTo(), { seed: 8, minutes: 0.4, pods: 5 }, inputs);
  checkout = join(dir, 'checkout');
  for (const name of ['src', 'package.json', 'vitest.config.ts', 'test/replay/replayed.ts', 'test/replay/regression.ts'])
    cpSync(join(ROOT, name), join(checkout, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'));
  mkdirSync(join(checkout, 'test', 'replay', 'found'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** The bug into the checkout, or out of it. */
function plant(bug: boolean): void {
  const { file, find, replace } = MUTANTS.find((m) => m.id === 'a crashed container does not wait') ?? expect.unreachable();
  const text = readFileSync(join(ROOT, file), 'utf8');
  writeFileSync(join(checkout, file), bug ? text.replace(find, replace) : text);
}

function ctl(...args: string[]): { code: number | null; out: string } {
  const argv = ['--disable-warning=ExperimentalWarning', 'src/ctl/main.ts', ...args];
  const { status, stdout, stderr } = spawnSync(process.execPath, argv, { cwd: checkout, encoding: 'utf8' });
  return { code: status, out: stdout + stderr };
}

function passes(test: string): boolean {
  try {
    execFileSync(process.execPath, [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'unit', test], {
      cwd: checkout,
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}

it('is found, kept as a small test without names, fails with the bug and passes without', { timeout: 240_000 }, () => {
  plant(true);
  const [, second = ''] = readdirSync(inputs).sort();
  const whole = join(inputs, second);
  const found = ctl('replay', whole);
  expect(found).toMatchObject({ code: 1, out: expect.stringMatching(/DIVERGENCE.*then: a timer of \d+ ms/s) });
  const kept = ctl('replay', whole, '--to-test', `${FOUND}.test.ts`);
  expect(kept).toMatchObject({ code: 0, out: expect.stringMatching(/ 1 of \d+ pods/) });
  expect(statSync(join(checkout, `${FOUND}.inputs.zst`)).size).toBeLessThan(100 * 1024);
  const text = zstdDecompressSync(readFileSync(join(checkout, `${FOUND}.inputs.zst`))).toString();
  expect(text).not.toMatch(/\bp\d-n1\b|registry\.sim\//);
  expect(passes(`${FOUND}.test.ts`)).toBe(false);
  plant(false);
  expect(passes(`${FOUND}.test.ts`)).toBe(true);
});
