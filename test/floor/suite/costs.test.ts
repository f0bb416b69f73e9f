/** What the tests cost: the table is true, within the budget, and a folder that takes more is named. And what the first answer of `npm test` is about. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type Costs,
  CPU_SECONDS_MAX,
  costsOf,
  cpuSecondsOf,
  excess,
  isTooMuch,
  recordedCosts,
  tableOf,
} from '../../../scripts/tests/costs.ts';
import { withTable } from '../../../scripts/tests/document.ts';
import { distances, nearest } from '../../../scripts/tests/related.ts';
import { eachFolder } from '../../eachFolder.ts';

const page = readFileSync(join(import.meta.dirname, '../../../CONTRIBUTING.md'), 'utf8');
const folders = (cpu: Readonly<Record<string, number>>): Costs => ({
  folders: Object.fromEntries(Object.entries(cpu).map(([name, seconds]) => [name, { cpu: seconds, waits: 0, files: 1 }])),
  slow: {},
});

it('are in CONTRIBUTING.md as they were measured: npm test -- --cost', () => {
  expect(withTable(page, tableOf(recordedCosts()))).toBe(page);
});

it('are within the budget', () => {
  expect(cpuSecondsOf(recordedCosts())).toBeGreaterThan(CPU_SECONDS_MAX / 10);
  expect(cpuSecondsOf(recordedCosts())).toBeLessThanOrEqual(CPU_SECONDS_MAX);
});

it('are those of all files of a folder; e2e tests have a folder more', () => {
  const { folders: found, slow } = costsOf({
    'test/a/x.test.ts': { cpu: 1, wall: 1.5 },
    'test/a/b/y.test.ts': { cpu: 3, wall: 3 },
    'test/e2e/pods/z.test.ts': { cpu: 1, wall: 11 },
  });
  expect(found).toEqual({ 'test/a': { cpu: 4, waits: 0.5, files: 2 }, 'test/e2e/pods': { cpu: 1, waits: 10, files: 1 } });
  expect(Object.keys(slow)).toEqual(['test/e2e/pods/z.test.ts', 'test/a/b/y.test.ts']);
});

describe('a folder', () => {
  const recorded = folders({ a: 100, b: 40, c: 20 });
  it('may take a quarter more', () => expect(excess(folders({ a: 120, b: 40, c: 20 }), recorded)).toEqual([]));
  it('may take twice as long where all do', () => expect(excess(folders({ a: 220, b: 80, c: 40 }), recorded)).toEqual([]));
  it('is named where it takes more', () =>
    expect(excess(folders({ a: 131, b: 40, c: 20 }), recorded)).toEqual([
      'a takes 131.0 processor seconds; by test/cost.json it would be 100.0 on this machine',
    ]));
  it('is judged once it is in the record', () => expect(excess(folders({ a: 100, b: 40, c: 20, d: 60 }), recorded)).toEqual([]));
});

it('fail a run where all together take a quarter more, on a machine of any speed', () => {
  const recorded = folders({ a: 100, b: 40, c: 20 });
  expect(isTooMuch(folders({ a: 130, b: 40, c: 20 }), recorded)).toBe(false);
  expect(isTooMuch(folders({ a: 220, b: 80, c: 40 }), recorded)).toBe(false);
  expect(isTooMuch(folders({ a: 60, b: 20, c: 10 }), recorded)).toBe(false);
  expect(isTooMuch(folders({ a: 200, b: 40, c: 20 }), recorded)).toBe(true);
  // Nothing is known of a new folder, and each commit has another mutant.
  const mutant = 'packages/sim/test/mutants';
  expect(isTooMuch(folders({ a: 100, b: 40, c: 20, new: 90, [mutant]: 99 }), folders({ a: 100, b: 40, c: 20, [mutant]: 5 }))).toBe(false);
});

describe('the first answer', () => {
  let root = '';
  eachFolder((made) => (root = made));
  const put = (file: string, text: string) => {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  };
  const tests = (...changed: string[]) =>
    Object.fromEntries([...distances(root, changed)].filter(([file]) => file.endsWith('.test.ts')).map(([file, far]) => [file, far]));

  it('is about the tests that import what changed, over as many files as lie between, type imports too', () => {
    put('src/a.ts', 'export const a = 1;\n');
    put('src/b.ts', "import type { a } from './a.ts';\nexport type B = typeof a;\n");
    put('test/x/near.test.ts', "import { a } from '../../src/a.ts';\nvoid a;\n");
    put('test/x/far.test.ts', "import type { B } from '../../src/b.ts';\nexport type X = B;\n");
    put('test/x/other.test.ts', "// import '../../src/a.ts'\n");
    expect(tests('src/a.ts')).toEqual({ 'test/x/near.test.ts': 1, 'test/x/far.test.ts': 2 });
    expect(tests('test/x/other.test.ts')).toEqual({ 'test/x/other.test.ts': 0 });
  });

  it('is about tests that start a program that imports it', () => {
    put('src/a.ts', 'export const a = 1;\n');
    put('src/boot/main.ts', "import { a } from '../a.ts';\nvoid a;\n");
    put('test/x/starts.test.ts', "export const daemon = 'dist/actorlet.mjs';\n");
    expect(tests('src/a.ts')).toEqual({ 'test/x/starts.test.ts': 2 });
  });

  it('is about the tests of a folder where no import names what changed, and those that name it', () => {
    put('test/x/x.test.ts', '');
    put('test/y/y.test.ts', "export const golden = '../x/golden/table.json';\n");
    put('test/x/golden/table.json', '{}');
    expect(tests('test/x/golden/table.json')).toEqual({ 'test/x/x.test.ts': 1, 'test/y/y.test.ts': 1 });
  });

  it('takes the nearest, as many as fit into its time', () => {
    const found = new Map([
      ['test/a.test.ts', 3],
      ['test/b.test.ts', 1],
      ['test/c.test.ts', 2],
      ['src/d.ts', 0],
      ['test/e2e/e.test.ts', 1],
    ]);
    const seconds: Record<string, number> = { 'test/a.test.ts': 5, 'test/b.test.ts': 10, 'test/c.test.ts': 100 };
    expect(nearest(found, (test) => seconds[test] ?? 0)).toEqual(['test/b.test.ts', 'test/a.test.ts']);
  });
});
