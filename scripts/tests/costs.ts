/** What tests cost, as `test/cost.json` keeps it and CONTRIBUTING.md shows it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Seconds of one file. */
export interface Cost {
  cpu: number;
  wall: number;
}
/** Seconds of all files of a folder; `waits` is the time in which they used no processor. */
export interface FolderCost {
  cpu: number;
  waits: number;
  files: number;
}
export interface Costs {
  /** By folder, as {@link folderOf} names it. */
  folders: Record<string, FolderCost>;
  /** Files that take longer than {@link SLOW_SECONDS}: a run begins with the longest. */
  slow: Record<string, Cost>;
}

const root = join(import.meta.dirname, '../..');
export const COSTS_FILE = join(root, 'test/cost.json');
/** The tests of one `npm test`, e2e tests included. The aim is 700. */
export const CPU_SECONDS_MAX = 750;
export const SLOW_SECONDS = 2;
/** A folder may take this share more than `test/cost.json` says. */
const SHARE_MAX = 0.25;
/** Of these each commit runs another part, and parts differ. */
const ROTATING: ReadonlySet<string> = new Set([
  ...['integration', 'growth', 'schemas', 'fuzz', 'boot'].map((name) => `test/${name}`),
  ...['inspect', 'replay', 'sim', 'world'].map((name) => `packages/${name}`),
]);
const ROTATING_SHARE_MAX = 0.75;
/** And these seconds: parts rotate, and a small folder has nothing that evens out. */
const SLACK_SECONDS = 5;
/** The speed of a machine is read from folders of this size. */
const STEADY_SECONDS = 5;

/** A mutant takes between 5 and 100 s, and each commit has others. */
const MUTANTS = 'packages/sim/test/mutants';

/** `test/boot`, `packages/sim`; of e2e tests one level more. */
export function folderOf(file: string): string {
  if (file.startsWith(`${MUTANTS}/`)) return MUTANTS;
  const parts = file.split('/').slice(0, -1);
  return parts.slice(0, parts[1] === 'e2e' ? 3 : 2).join('/');
}

const rounded = (seconds: number): number => Math.round(seconds * 10) / 10;

export function costsOf(files: Readonly<Record<string, Cost>>): Costs {
  const folders: Record<string, FolderCost> = {};
  for (const [file, { cpu, wall }] of Object.entries(files)) {
    const name = folderOf(file);
    const sum = folders[name] ?? { cpu: 0, waits: 0, files: 0 };
    folders[name] = { cpu: sum.cpu + cpu, waits: sum.waits + Math.max(0, wall - cpu), files: sum.files + 1 };
  }
  const named = Object.entries(folders).sort(([a], [b]) => a.localeCompare(b));
  const slow = Object.entries(files)
    .filter(([, { cpu, wall }]) => Math.max(cpu, wall) > SLOW_SECONDS)
    .sort(([, a], [, b]) => b.wall - a.wall);
  return {
    folders: Object.fromEntries(named.map(([name, f]) => [name, { ...f, cpu: rounded(f.cpu), waits: rounded(f.waits) }])),
    slow: Object.fromEntries(slow.map(([file, { cpu, wall }]) => [file, { cpu: rounded(cpu), wall: rounded(wall) }])),
  };
}

export function recordedCosts(): Costs {
  return JSON.parse(readFileSync(COSTS_FILE, 'utf8')) as Costs;
}

export function cpuSecondsOf({ folders }: Costs): number {
  return Object.values(folders).reduce((sum, f) => sum + f.cpu, 0);
}

/** The table of CONTRIBUTING.md: dearest folder first. */
export function tableOf(costs: Costs): string {
  const rows = Object.entries(costs.folders)
    .sort(([a, x], [b, y]) => y.cpu - x.cpu || a.localeCompare(b))
    .map(
      ([name, { cpu, waits, files }]) => `| \`${name}\` | ${files} | ${cpu.toFixed(1)} | ${waits.toFixed(1)} | ${dearest(costs, name)} |`,
    );
  const waits = Object.values(costs.folders).reduce((sum, f) => sum + f.waits, 0);
  const files = Object.values(costs.folders).reduce((sum, f) => sum + f.files, 0);
  return [
    '| folder | files | processor seconds | seconds of waiting | dearest file |',
    '|---|---|---|---|---|',
    ...rows,
    `| all | ${files} | ${cpuSecondsOf(costs).toFixed(1)} | ${waits.toFixed(1)} | |`,
  ].join('\n');
}

function dearest({ slow }: Costs, folder: string): string {
  const [first] = Object.entries(slow)
    .filter(([file]) => folderOf(file) === folder)
    .sort(([, a], [, b]) => b.cpu - a.cpu);
  return first === undefined ? '' : `\`${first[0].slice(folder.length + 1)}\` ${first[1].cpu.toFixed(1)}`;
}

/**
 * Which folders take more than the record says. Machines differ in speed, and a busy one is slower: the median of all folders says how
 * much, so what counts is the share of a folder. Of a folder that the record lacks nothing is known.
 */
export function excess(measured: Costs, recorded: Costs): string[] {
  const speed = speedOf(measured, recorded);
  return Object.entries(measured.folders).flatMap(([name, { cpu }]) => {
    const folder = recorded.folders[name];
    if (folder === undefined || name === MUTANTS) return [];
    const was = folder.cpu * speed;
    if (cpu <= was * (1 + shareOf(name)) + SLACK_SECONDS * Math.max(1, speed)) return [];
    return [`${name} takes ${cpu.toFixed(1)} processor seconds; by test/cost.json it would be ${was.toFixed(1)} on this machine`];
  });
}

/**
 * Whether all of it takes too much, and a folder is to blame for it: single folders wait for other programs, and vary more. Neither new
 * folders nor mutants count.
 */
export function isTooMuch(measured: Costs, recorded: Costs): boolean {
  const speed = Math.max(1, speedOf(measured, recorded));
  let [takes, mayTake] = [0, 0];
  for (const [name, { cpu }] of Object.entries(measured.folders)) {
    const was = recorded.folders[name];
    if (was === undefined || name === MUTANTS) continue;
    takes += cpu;
    mayTake += was.cpu * speed * (1 + shareOf(name));
  }
  return takes > mayTake && excess(measured, recorded).length > 0;
}

const shareOf = (folder: string): number => (ROTATING.has(folder) ? ROTATING_SHARE_MAX : SHARE_MAX);

/** How much slower this machine is: the median of all folders. */
function speedOf(measured: Costs, recorded: Costs): number {
  const ratios = Object.entries(recorded.folders)
    .flatMap(([name, { cpu }]) => {
      const now = measured.folders[name]?.cpu;
      return cpu < STEADY_SECONDS || now === undefined ? [] : [now / cpu];
    })
    .sort((a, b) => a - b);
  return ratios[Math.floor(ratios.length / 2)] ?? 1;
}
