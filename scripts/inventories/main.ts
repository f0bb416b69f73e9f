/**
 * Writes what documents and the package.json of each package list of the sources: `npm run inventories`. A list stands between `<!-- made: NAME -->` and `<!-- end -->`;
 * test/floor/documents.test.ts compares. `--check` prints the pages that are not as they would be written, and writes none.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { drawing, needed, packages, table } from '../check-imports.mjs';
import { lives } from './lives.ts';

const root = resolve(import.meta.dirname, '../..');
const BLOCK = /(<!-- made: ([\w-]+) -->\n)[\s\S]*?(\n<!-- end -->)/g;

/** Of the page `file`. */
const MADE: Readonly<Record<string, (file: string) => string>> = {
  'import-table': () => table(),
  'import-drawing': () => drawing(root),
  packages: () => packagesTable(),
  lives: () => lives(),
  doors: (file) => doorsOf(dirname(file).split('/').at(-1) ?? ''),
};

function packagesTable(): string {
  const rows = Object.entries(packages(root)).map(([name, { needs, lines, tests }]) => {
    const { description } = JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8')) as { description: string };
    return `| [\`${name}\`](${name}/README.md) | ${description} | ${needs.map((n) => `\`${n}\``).join(', ')} | ${hundreds(lines)} | ${tests} |`;
  });
  return ['| package | what it is | needs | lines | test files |', '|---|---|---|---|---|', ...rows].join('\n');
}

/** A line more or less changes no page. */
const hundreds = (lines: number): string => `${(lines / 1000).toFixed(1)}k`;

function doorsOf(name: string): string {
  const found = packages(root)[name];
  if (found === undefined) throw new Error(`there is no package ${name}`);
  const list = (names: readonly string[]) => (names.length === 0 ? 'none' : names.map((n) => `\`${n}\``).join(', '));
  const doors = Map.groupBy(found.doors, (door) => door.split('/')[0] ?? '');
  const kubelet = [...doors].map(([folder, of]) => `- Of \`src/${folder}\`: ${list(of.map((door) => door.slice(folder.length + 1)))}.`);
  return [`- Packages: ${list(found.needs)}.`, ...kubelet].join('\n');
}

/** The page as it is to be. @throws for a list that nobody makes. */
function pageOf(file: string, text: string): string {
  return text.replace(BLOCK, (_, begin: string, name: string, end: string) => {
    const make = MADE[name];
    if (make === undefined) throw new Error(`${file}: nobody makes the list ${name}`);
    return `${begin}\n${make(file)}\n${end}`;
  });
}

interface Manifest {
  version?: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}
const manifest = (file: string): Manifest => JSON.parse(readFileSync(join(root, file), 'utf8')) as Manifest;

/** The package.json with what its sources import; versions of others are those of the whole repository. @throws for one that it does not have. */
function manifestOf(file: string): string {
  const whole = manifest('package.json');
  const versions = { ...whole.devDependencies, ...whole.dependencies };
  const folder = file === 'src/package.json' ? 'src' : join(dirname(file), 'src');
  const dependencies: Record<string, string> = {};
  for (const name of needed(root, folder)) {
    const version = name.startsWith('@actorlet/') ? whole.version : versions[name];
    if (version === undefined) throw new Error(`${file}: the repository has no package ${name}`);
    dependencies[name] = version;
  }
  return `${JSON.stringify({ ...manifest(file), dependencies }, null, 2)}\n`;
}

let wrong = 0;
function keep(file: string, text: string, wanted: string): void {
  if (wanted === text) return;
  wrong += 1;
  const check = process.argv.includes('--check');
  console.log(`${file}: ${check ? 'not as the sources are: npm run inventories' : 'written'}`);
  if (!check) writeFileSync(join(root, file), wanted);
}
for (const file of globSync(['*.md', '{docs,packages}/**/*.md'], { cwd: root, exclude: ['**/node_modules/**'] }).sort()) {
  const text = readFileSync(join(root, file), 'utf8');
  keep(file, text, pageOf(file, text));
}
for (const file of globSync(['src/package.json', 'packages/*/package.json'], { cwd: root }).sort())
  keep(file, readFileSync(join(root, file), 'utf8'), manifestOf(file));
if (process.argv.includes('--check') && wrong > 0) process.exitCode = 1;
