/**
 * Which tests of `unit` see what changed since a commit: prints their paths, those with the shortest way of imports to a change first,
 * as many as take {@link CPU_SECONDS_MAX}. The first line says how many there are of how many, and since when.
 *
 * Imports of sources have no circles and no names that are computed, so the ways are exact. A file that no import names (a golden
 * file, a table that is found by its folder) belongs to the tests of its folder, and to those that name it. A test that starts a
 * program sees all that the program imports.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { importsOf, isOwn, sourceOf } from '../check-imports.mjs';
import { recordedCosts } from './costs.ts';

/** What two cores do in some 30 s: with the build, lint and types the first answer comes within 90 s. */
const CPU_SECONDS_MAX = 45;
/** Of a file that is not in the record. */
const CPU_SECONDS = 0.4;
/** What a program of the build is made from. */
const PROGRAMS: Readonly<Record<string, string>> = {
  'dist/actorlet.mjs': 'src/boot/main.ts',
  'dist/actorctl.mjs': 'packages/ctl/src/main.ts',
  'dist/fleet.mjs': 'packages/fleet/src/boot/main.ts',
  'dist/sandboxd.mjs': 'packages/runtimes/src/process/main.ts',
  'dist/lib/fleet.mjs': 'packages/fleet/src/index.ts',
  'dist/lib/harness.mjs': 'packages/harness/src/index.ts',
  'dist/lib/sim.mjs': 'packages/sim/src/index.ts',
};

const isTest = (file: string): boolean => file.endsWith('.test.ts') && !/^test\/(?:e2e|cluster)\//.test(file);

/** Files that import, or start, a file. */
function importers(root: string, files: readonly string[]): Map<string, Set<string>> {
  const by = new Map<string, Set<string>>();
  const add = (imported: string, importer: string) => {
    const set = by.get(imported) ?? new Set();
    by.set(imported, set.add(importer));
  };
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8');
    for (const { specifier } of importsOf(text) as { specifier: string }[])
      if (specifier.startsWith('.')) add(join(dirname(file), specifier), file);
      else if (isOwn(specifier)) add(sourceOf(specifier), file);
    for (const [program, source] of Object.entries(PROGRAMS)) if (text.includes(program) || text.includes(`'${source}'`)) add(source, file);
  }
  return by;
}

/** How many imports lie between a change and each file that sees it. */
export function distances(root: string, changed: readonly string[]): Map<string, number> {
  const files = globSync(['{src,packages,test,scripts,bench}/**/*.{ts,tsx,mjs}'], { cwd: root });
  const by = importers(root, files);
  const found = new Map<string, number>(changed.map((file) => [file, 0]));
  const tests = files.filter(isTest);
  const near = (file: string, test: string) => /^(?:packages\/[^/]+\/)?test\//.test(file) && file.startsWith(`${dirname(test)}/`);
  for (const file of changed) {
    if (by.has(file) || isTest(file)) continue;
    for (const test of tests)
      if (near(file, test) || readFileSync(join(root, test), 'utf8').includes(basename(file)))
        found.set(test, Math.min(1, found.get(test) ?? 1));
    if (file.endsWith('.md')) found.set('test/floor/documents.test.ts', 1);
  }
  for (const [file, far] of found) for (const importer of by.get(file) ?? []) if (!found.has(importer)) found.set(importer, far + 1);
  return found;
}

const git = (root: string, ...args: string[]): string =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();

/** The commit from which this branch went off, or the one before where it is the main branch itself. */
function mergeBase(root: string): string {
  const head = git(root, 'rev-parse', 'HEAD');
  for (const main of ['origin/HEAD', 'origin/main', 'main']) {
    try {
      const base = git(root, 'merge-base', main, 'HEAD');
      if (base !== head) return base;
    } catch {
      // There is no such branch here.
    }
  }
  return git(root, 'rev-parse', 'HEAD^');
}

function changedSince(root: string, base: string): string[] {
  const names = [git(root, 'diff', '--name-only', '--no-renames', base), git(root, 'ls-files', '--others', '--exclude-standard')];
  return names.join('\n').split('\n').filter(Boolean);
}

/** As many of the nearest as fit into the time. */
export function nearest(found: ReadonlyMap<string, number>, cpuOf: (test: string) => number): string[] {
  let left = CPU_SECONDS_MAX;
  return [...found]
    .filter(([file]) => isTest(file))
    .sort(([a, x], [b, y]) => x - y || cpuOf(a) - cpuOf(b))
    .filter(([test]) => {
      const fits = cpuOf(test) <= left;
      if (fits) left -= cpuOf(test);
      return fits;
    })
    .map(([test]) => test);
}

function main(root: string): void {
  let base: string;
  try {
    base = mergeBase(root);
  } catch {
    console.log('no tests: there is no earlier commit to compare with');
    return;
  }
  const found = new Map([...distances(root, changedSince(root, base))].filter(([file]) => existsSync(join(root, file))));
  const { slow } = recordedCosts();
  const tests = nearest(found, (test) => slow[test]?.cpu ?? CPU_SECONDS);
  const all = [...found.keys()].filter(isTest).length;
  console.log(`${tests.length} of the ${all} test files that see what changed since ${base.slice(0, 8)}`);
  for (const test of tests) console.log(test);
}

if (resolve(process.argv[1] ?? '') === import.meta.filename) main(resolve(import.meta.dirname, '../..'));
