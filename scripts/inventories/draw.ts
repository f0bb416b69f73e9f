/**
 * Draws claims of the documents for a review: `npm run review -- --seed 1 [--count 40]`. A reader compares each with the sources.
 * A claim's place in the draw comes from the seed and its own words, so a change elsewhere on a page draws no other claims.
 */
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { simRng } from '@actorlet/world/src/rng.ts';
import { claimsOf } from './prose.ts';

const root = resolve(import.meta.dirname, '../..');
const PAGES = ['ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/architecture/*.md'];

const { values } = parseArgs({ options: { seed: { type: 'string', default: '1' }, count: { type: 'string', default: '40' } } });
const count = Number(values.count);
if (!Number.isInteger(count) || count < 1) throw new Error(`--count ${values.count}: not a whole number above 0`);

const claims = globSync(PAGES, { cwd: root })
  .sort()
  .flatMap((file) => claimsOf(readFileSync(join(root, file), 'utf8')).map((claim) => ({ ...claim, file })))
  .map((claim) => ({ ...claim, turn: simRng(`${values.seed} ${claim.text}`).next() }))
  .sort((a, b) => a.turn - b.turn)
  .slice(0, count)
  .sort((a, b) => (a.file === b.file ? a.line - b.line : a.file < b.file ? -1 : 1));
for (const { file, line, text } of claims) console.log(`${file}:${line}: ${text}`);
