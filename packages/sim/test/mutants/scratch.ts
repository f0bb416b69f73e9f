/** A copy of the sources in which one mutant at a time is planted, and runs of the simulation in it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { copySources } from '../../../../test/copyOfSources.ts';
import type { Mutant } from './mutants.ts';

/** Size of one run: small, for there are many. */
const SIZE = ['--minutes=1', '--pods=6'];

export interface SeedResult {
  seed: number;
  /** Null: every invariant held. */
  invariant: string | null;
  what: string;
}
export type Outcome = { kind: 'caught'; by: SeedResult } | { kind: 'missed' } | { kind: 'unusable'; why: string };

export interface Scratch extends Disposable {
  /** '' when the mutant's line is in its file exactly once, else what is there instead. */
  fits(m: Mutant): string;
  /** Runs seeds from `first` until `take` says stop. Answers what the process said when it broke down, else ''. */
  run(range: { first: number; count: number }, take: (r: SeedResult) => boolean): Promise<string>;
  /** Runs `actorctl` of the copy, with the size of a seed where it is to run one. */
  ctl(args: readonly string[]): Promise<{ code: number | null; out: string }>;
  /** The copy's daemon, as a command. */
  readonly program: readonly string[];
  /** Plants the mutant for as long as `fn` takes. */
  planted<T>(m: Mutant, fn: () => Promise<T>): Promise<T>;
  /** Plants the mutant, runs seeds until one fails that passes without it, and takes it out again. The seed `before` goes first. */
  hunt(m: Mutant, range: { first: number; count: number; before?: number | undefined }): Promise<Outcome>;
}

/** '' when the mutant's line is in its file below `root` exactly once, else what is there instead. */
export function fitsIn(root: string, m: Mutant): string {
  const found = readFileSync(join(root, m.file), 'utf8').split(m.find).length - 1;
  return found === 1 ? '' : `its line is there ${found} times in ${m.file}`;
}

/** Disposing it, and SIGINT or SIGTERM to this process, ends what runs in it and removes it. */
export function scratch(): Scratch {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-mutants-'));
  const children = new Set<ChildProcess>();
  const clear = (): void => {
    for (const c of children) c.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true, maxRetries: 3 });
  };
  const interrupted = (signal: NodeJS.Signals): void => {
    clear();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  process.once('SIGINT', interrupted);
  process.once('SIGTERM', interrupted);
  try {
    copySources(dir);
  } catch (error) {
    clear();
    throw error;
  }

  const run: Scratch['run'] = ({ first, count }, take) =>
    new Promise((resolve) => {
      const argv = [
        '--disable-warning=ExperimentalWarning',
        'packages/ctl/src/main.ts',
        'sim',
        '--lines',
        `--seed=${first}`,
        `--seeds=${count}`,
      ];
      // Types are stripped from each file once, not once for each run.
      const env = { ...process.env, NODE_COMPILE_CACHE: join(dir, '.compiled') };
      const child = spawn(process.execPath, [...argv, ...SIZE], { cwd: dir, env });
      children.add(child);
      let words = '';
      let stopped = false;
      child.stderr.on('data', (b: Buffer) => {
        words += String(b);
      });
      createInterface({ input: child.stdout }).on('line', (text) => {
        if (stopped || !take(JSON.parse(text) as SeedResult)) return;
        stopped = true;
        child.kill('SIGKILL');
      });
      child.on('error', (error) => resolve(error.message));
      child.on('close', (code) => {
        children.delete(child);
        resolve(stopped || code === 0 ? '' : words.slice(-500) || `it ended with ${code}`);
      });
    });

  const ctl: Scratch['ctl'] = (args) =>
    new Promise((resolve) => {
      const argv = ['--disable-warning=ExperimentalWarning', 'packages/ctl/src/main.ts', ...args, ...(args[0] === 'sim' ? SIZE : [])];
      const env = { ...process.env, NODE_COMPILE_CACHE: join(dir, '.compiled') };
      const child = spawn(process.execPath, argv, { cwd: dir, env });
      children.add(child);
      let out = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (b: Buffer) => {
          out += String(b);
        });
      child.on('error', (error) => resolve({ code: null, out: error.message }));
      child.on('close', (code) => {
        children.delete(child);
        resolve({ code, out });
      });
    });

  const planted: Scratch['planted'] = async (m, fn) => {
    const path = join(dir, m.file);
    const text = readFileSync(path, 'utf8');
    writeFileSync(
      path,
      text.replace(m.find, () => m.replace),
    );
    try {
      return await fn();
    } finally {
      writeFileSync(path, text);
    }
  };

  const unmutated = async (seed: number): Promise<boolean> => {
    let invariant: string | null = 'did not run';
    await run({ first: seed, count: 1 }, (r) => {
      invariant = r.invariant;
      return true;
    });
    return invariant === null;
  };
  /** By seed: half of the mutants are caught by the same one. */
  const controls = new Map<number, Promise<boolean>>();
  const passes = (seed: number): Promise<boolean> => {
    const known = controls.get(seed) ?? unmutated(seed);
    controls.set(seed, known);
    return known;
  };

  const hunt: Scratch['hunt'] = async (m, { first, count, before }) => {
    if (before !== undefined && (before < first || before >= first + count)) throw new Error(`seed ${before} is not of the range`);
    if (before !== undefined && (before > first || count > 1)) {
      const outcome = await hunt(m, { first: before, count: 1 });
      if (outcome.kind !== 'missed') return outcome;
    }
    const why = fitsIn(dir, m);
    if (why !== '') return { kind: 'unusable', why };
    let seed = first;
    while (seed < first + count) {
      let by: SeedResult | null = null;
      const range = { first: seed, count: first + count - seed };
      const broke = await planted(m, () =>
        run(range, (r) => {
          seed = r.seed + 1;
          if (r.invariant === null) return false;
          by = r;
          return true;
        }),
      );
      const caught = by as SeedResult | null;
      if (caught === null) return broke === '' ? { kind: 'missed' } : { kind: 'unusable', why: `it does not even run: ${broke}` };
      // A seed that fails without the mutant too says nothing about it.
      if (await passes(caught.seed)) return { kind: 'caught', by: caught };
    }
    return { kind: 'missed' };
  };

  return {
    run,
    fits: (m) => fitsIn(dir, m),
    program: [process.execPath, '--disable-warning=ExperimentalWarning', join(dir, 'src/boot/main.ts')],
    ctl,
    planted,
    hunt,
    [Symbol.dispose]() {
      process.off('SIGINT', interrupted);
      process.off('SIGTERM', interrupted);
      clear();
    },
  };
}
