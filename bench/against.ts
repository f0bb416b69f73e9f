/**
 * A commit and this checkout, measured in one run: the benchmarks take turns, and each figure is printed as the median before, the
 * median now, and their ratio. `*`: every sample of one side is beyond every sample of the other; the rest is noise of this machine.
 * The commit is checked out in a folder of its own, which is removed at the end; it gets this checkout's node_modules, but for the
 * workspaces, which are its own.
 * Run: `scripts/node bench/against.ts --commit=HEAD~1`. Options: --names=supervision,workers,nodes,sim,initialState,restart
 * --turns=3 --out=FILE. Only names of bench/*.ts that want no other options; stdout is JSON, the table goes to stderr.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkout } from './lib/checkout.ts';
import { numberOption, option, projectRoot, report, say, summary } from './lib/report.ts';

/** Those that take a few minutes and want neither root nor a cluster. */
const NAMES = 'supervision,workers,nodes,sim,initialState,restart';
const FLAGS = ['--expose-gc', '--disable-warning=ExperimentalWarning'];

type Side = 'before' | 'now';
type Figures = Map<string, number>;

const commit = option('commit');
if (commit === undefined) throw new Error('--commit=COMMIT is missing: which commit to measure against');
const names = (option('names') ?? NAMES).split(',');
for (const name of names) if (!existsSync(join(projectRoot, 'bench', `${name}.ts`))) throw new Error(`there is no bench/${name}.ts`);
const turns = numberOption('turns', 3);

/** Every number of a report that is no sample, by its path. Of a summary, and of a list of numbers, the median alone. */
function figuresOf(value: unknown, path: string, into: Figures = new Map()): Figures {
  if (typeof value === 'number') into.set(path, value);
  if (Array.isArray(value) && value.length > 0 && value.every((v) => typeof v === 'number')) into.set(path, summary(value).p50);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return into;
  if ('p50' in value) return figuresOf(value.p50, path, into);
  for (const [key, part] of Object.entries(value)) figuresOf(part, path === '' ? key : `${path}.${key}`, into);
  return into;
}

async function measured(dir: string, name: string): Promise<Figures> {
  const child = spawn(process.execPath, [...FLAGS, join(dir, 'bench', `${name}.ts`)], { cwd: dir, stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`bench/${name}.ts in ${dir} ended with ${code}: run it there alone`);
  const { machine: _, ...rest } = JSON.parse(text) as { machine: object; results?: object };
  return figuresOf(rest.results ?? rest, '');
}

const samples = new Map<string, Record<Side, number[]>>();
using before = checkout(commit);
for (const root of [before.root, projectRoot]) execFileSync(process.execPath, ['scripts/build.mjs'], { cwd: root, stdio: 'ignore' });
const sides: readonly (readonly [Side, string])[] = [
  ['before', before.root],
  ['now', projectRoot],
];
for (let turn = 0; turn < turns; turn++) {
  for (const name of names) {
    for (const [side, root] of turn % 2 === 0 ? sides : [...sides].reverse()) {
      say(`turn ${turn + 1} of ${turns}: ${name}, ${side}`);
      for (const [path, value] of await measured(root, name)) {
        const of = samples.get(`${name} ${path}`) ?? { before: [], now: [] };
        of[side].push(value);
        samples.set(`${name} ${path}`, of);
      }
    }
  }
}
await report('against', { commit: before.id, turns, figures: Object.fromEntries([...samples].flatMap(compared)) });

/** Nothing of what only one side prints, or what is the same on both, as the options are. */
function compared([what, { before, now }]: readonly [string, Record<Side, number[]>]): [string, object][] {
  if (before.length !== now.length || [...before, ...now].every((v) => v === before[0])) return [];
  const [was, is] = [summary(before).p50, summary(now).p50];
  const ratio = was === 0 ? null : Math.round((is / was) * 1000) / 1000;
  const apart = Math.min(...now) > Math.max(...before) || Math.max(...now) < Math.min(...before);
  say(`${apart ? '*' : ' '} ${String(ratio ?? '').padStart(6)}  ${what}: ${was} -> ${is}`);
  return [[what, { before, now, ratio, apart }]];
}
