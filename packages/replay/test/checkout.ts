/** Another checkout, in which one changed line can be planted. */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copySources } from '../../../test/copyOfSources.ts';
import { MUTANTS } from '../../sim/test/mutants/mutants.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const PARTS = [
  'vitest.config.ts',
  'scripts/tests',
  'test/cost.json',
  'packages/replay/test/replayed.ts',
  'packages/replay/test/regression.ts',
];

export class Checkout implements Disposable {
  readonly dir = mkdtempSync(join(tmpdir(), 'actorlet-checkout-'));

  constructor() {
    for (const name of PARTS) cpSync(join(ROOT, name), join(this.dir, name), { recursive: true });
    copySources(this.dir);
    mkdirSync(join(this.dir, 'packages/replay/test/found'), { recursive: true });
  }

  /** The bug of the mutant table into the checkout, or out of it. */
  plant(id: string, bug: boolean): void {
    const mutant = MUTANTS.find((m) => m.id === id);
    if (mutant === undefined) throw new Error(`no mutant ${id}`);
    const text = readFileSync(join(ROOT, mutant.file), 'utf8');
    writeFileSync(join(this.dir, mutant.file), bug ? text.replace(mutant.find, mutant.replace) : text);
  }

  ctl(...args: string[]): { code: number | null; out: string } {
    const argv = ['--disable-warning=ExperimentalWarning', 'packages/ctl/src/main.ts', ...args];
    const env = { ...process.env, NODE_COMPILE_CACHE: join(this.dir, '.compiled') };
    const { status, stdout, stderr } = spawnSync(process.execPath, argv, { cwd: this.dir, encoding: 'utf8', env });
    return { code: status, out: stdout + stderr };
  }

  /** Runs the test as `npm run unit` does. */
  passes(test: string): boolean {
    try {
      execFileSync(process.execPath, [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'unit', test], {
        cwd: this.dir,
        stdio: 'ignore',
      });
      return true;
    } catch {
      return false;
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}
