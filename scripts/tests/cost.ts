/**
 * cost.ts check FOLDER: holds what `reporter.ts` left in FOLDER against test/cost.json: names folders that take more; exit code 1 where
 * all of them do.
 * cost.ts write FOLDER: writes test/cost.json and the table of CONTRIBUTING.md from it, and prints the table.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COSTS_FILE, type Cost, costsOf, excess, isTooMuch, recordedCosts, tableOf } from './costs.ts';
import { withTable } from './document.ts';

const [what, folder = '.'] = process.argv.slice(2);
const files: Record<string, Cost> = {};
for (const name of ['first', 'unit', 'e2e'].map((project) => join(folder, `${project}.cost`)))
  if (existsSync(name)) Object.assign(files, JSON.parse(readFileSync(name, 'utf8')));
const costs = costsOf(files);

if (what === 'write') {
  const lines = (entries: object): string =>
    Object.entries(entries)
      .map(
        ([name, value]) =>
          `    ${JSON.stringify(name)}: ${JSON.stringify(value)
            .replaceAll(/([{:,])/g, '$1 ')
            .replace('}', ' }')}`,
      )
      .join(',\n');
  writeFileSync(COSTS_FILE, `{\n  "folders": {\n${lines(costs.folders)}\n  },\n  "slow": {\n${lines(costs.slow)}\n  }\n}\n`);
  const page = join(import.meta.dirname, '../../CONTRIBUTING.md');
  writeFileSync(page, withTable(readFileSync(page, 'utf8'), tableOf(costs)));
  console.log(tableOf(costs));
} else {
  const recorded = recordedCosts();
  const unknown = Object.keys(costs.folders).filter((name) => recorded.folders[name] === undefined);
  if (unknown.length > 0) console.log(`npm test: test/cost.json lacks ${unknown.join(', ')}: run \`npm test -- --cost\``);
  const complaints = excess(costs, recorded);
  for (const line of complaints) console.log(`npm test: ${line}`);
  if (complaints.length > 0)
    console.log('npm test: make these tests cheaper, or say in the commit why they cost more and run `npm test -- --cost`');
  if (isTooMuch(costs, recorded)) {
    console.log('npm test: all tests together take a quarter more than test/cost.json says, those that rotate three quarters');
    process.exitCode = 1;
  }
}
