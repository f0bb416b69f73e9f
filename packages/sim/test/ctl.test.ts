/** `actorctl sim`: in this process, from sources, and bundled in several, with a scenario and with a wrong one. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCtl } from '@actorlet/ctl/src/cli.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CTL } from '../../../test/programs.ts';
import { toldTo } from '../../replay/test/toldTo.ts';

const root = join(import.meta.dirname, '../../..');
const PROGRAM_TIMEOUT_MS = 180_000;
let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-sim-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const OPTIONS = { cwd: root, timeout: PROGRAM_TIMEOUT_MS, encoding: 'utf8' } as const;

interface Ended {
  code: number;
  out: string;
  err: string;
}
function sim(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [CTL, 'sim', ...args], OPTIONS, (error, out, err) => {
      resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, out, err });
    });
  });
}
/** In this process, from sources. */
async function here(...args: string[]): Promise<Ended> {
  const [out, err] = [toldTo(), toldTo()];
  const code = await runCtl({ ...out, err: err.err, argv: ['sim', ...args] });
  return { code, out: out.told(), err: err.told() };
}

interface Totals {
  first: number;
  runs: number;
  failed: number;
  steps: number;
  virtualMs: number;
  faults: Record<string, number>;
  hits?: Record<string, number>;
  failures: unknown[];
}
/** Without what depends on the machine. */
function totals(ended: Ended): Totals {
  // A run that takes seconds tells how far it is.
  expect(ended.err.replace(/^\d+\/\d+ runs, 0 failed\n/gm, '')).toBe('');
  expect(ended.code).toBe(0);
  const { first, runs, failed, steps, virtualMs, faults, hits, failures } = JSON.parse(ended.out) as Totals;
  const sorted = Object.fromEntries(Object.entries(faults).sort(([a], [b]) => (a < b ? -1 : 1)));
  return { first, runs, failed, steps, virtualMs, faults: sorted, ...(hits === undefined ? {} : { hits }), failures };
}

describe('actorctl sim', () => {
  it('runs a scenario, comes to the same in one process from sources and in several bundled, and says what each fault hit', {
    timeout: PROGRAM_TIMEOUT_MS,
  }, async () => {
    const file = join(dir, 'two.yaml');
    writeFileSync(
      file,
      'apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata: {name: two}\nspec:\n  duration: 6s\n  faults:\n' +
        '  - {name: cut, kind: hints.cut, at: 1s, every: 2s, count: 2}\n  - {name: nobody, kind: actor.kill, select: {actors: [no/such]}}\n' +
        '  simulation: {pods: 1}\n',
    );
    const args = ['--scenario', file, '--seed', '1', '--seeds', '2'];
    const one = totals(await here(...args, '--json'));
    expect(one).toMatchObject({ first: 1, runs: 2, failed: 0, failures: [], hits: { cut: 4, nobody: 0 } });
    // The simulation is a chunk of its own, and each job runs the program it was started as.
    expect(totals(await sim(...args, '--json', '--jobs', '2'))).toEqual(one);
    const { out, code } = await here(...args);
    expect(code).toBe(0);
    expect(out).toContain('  cut: at 1s every 2s 2 times: hints.cut\n');
    expect(out).toContain('faults of the scenario:\n  cut: 4 hits\n  nobody: hit nothing\n');
    expect(out).toMatch(/faults injected: 4\n {2}hints.cut +4\nworkload: .*pod.put \d+/);
  });

  it.each([
    ['in one process', []],
    ['in several', ['--seeds', '2', '--jobs', '2']],
  ])('ends at Ctrl-C %s, in the middle of a seed, with exit code 130', { timeout: PROGRAM_TIMEOUT_MS }, async (_, more) => {
    const started = Promise.withResolvers<void>();
    // A seed of ten virtual hours, which takes real minutes.
    const child = spawn(process.execPath, [CTL, 'sim', '--seed', '5', '--minutes', '600', ...more]);
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
      started.resolve();
    });
    try {
      await started.promise;
      const ended = once(child, 'close');
      child.kill('SIGINT');
      expect(await ended).toEqual([130, null]);
      expect(out).toContain('\n0 runs, 0 failed;');
    } finally {
      child.kill('SIGKILL');
    }
  });

  it('refuses a wrong scenario with file, line and field, and exit code 2', { timeout: PROGRAM_TIMEOUT_MS }, async () => {
    const file = join(dir, 'wrong.yaml');
    writeFileSync(
      file,
      'apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata: {name: w}\nspec:\n  faults:\n  - kind: disk.ful\n  - {kind: hints.cut, for: 3s}\n',
    );
    const { code, err, out } = await sim('--scenario', file);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toBe(
      `actorctl: 2 errors in the scenario\n${file}:6: spec.faults[0].kind: unknown value "disk.ful" (did you mean disk.full?)\n` +
        `${file}:7: spec.faults[1].for: has no effect: hints.cut happens in one instant\n`,
    );
    const gone = await sim('--scenario', join(dir, 'gone.yaml'));
    expect(gone.code).toBe(2);
    expect(gone.err).toContain('gone.yaml cannot be read');
  });
});
