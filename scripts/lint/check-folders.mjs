/** A folder holds a dozen files at most, and a source 400 lines: part of `npm run lint`. */
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const FILES_MAX = 12;
const TREES = ['src', 'packages', 'test', 'scripts', 'docs'];
/** Folders with more, and how many files they have. This list may only get shorter, and its numbers smaller. */
const EXCEPTIONS = {
  docs: 21,
  'docs/architecture': 24,
};

const LINES_MAX = 400;
/** Sources with more, and how many lines they have: as with folders. */
const LONG = {
  'packages/replay/src/exact/exact.ts': 713,
  'packages/replay/src/record.ts': 461,
  'packages/replay/src/secrets/secrets.ts': 438,
};

/** How many files each folder below `folder` has. */
function counts(root, folder, found = new Map()) {
  const entries = readdirSync(join(root, folder), { withFileTypes: true });
  found.set(folder, entries.filter((e) => e.isFile()).length);
  for (const e of entries) if (e.isDirectory()) counts(root, `${folder}/${e.name}`, found);
  return found;
}

const [given] = process.argv.slice(2);
const root = resolve(given ?? join(import.meta.dirname, '../..'));
const complaints = [];
for (const tree of TREES.filter((t) => existsSync(join(root, t))))
  for (const [folder, files] of counts(root, tree)) {
    const most = EXCEPTIONS[folder] ?? FILES_MAX;
    if (files > most) complaints.push(`${folder}: ${files} files, at most ${most}: put them into folders by subject`);
    else if (given === undefined && folder in EXCEPTIONS && files < most)
      complaints.push(
        `${folder}: ${files} files, and EXCEPTIONS of scripts/lint/check-folders.mjs says ${most}: write less, or take it off`,
      );
  }
for (const file of globSync('{src,packages/*/src}/**/*.{ts,tsx}', { cwd: root }).sort()) {
  const lines = readFileSync(join(root, file), 'utf8').split('\n').length - 1;
  const most = LONG[file] ?? LINES_MAX;
  if (lines > most) complaints.push(`${file}: ${lines} lines, at most ${most}: split it by subject`);
  else if (given === undefined && file in LONG && lines < most)
    complaints.push(`${file}: ${lines} lines, and LONG of scripts/lint/check-folders.mjs says ${most}: write less, or take it off`);
}
for (const line of complaints) console.error(line);
console.log(`check-folders: ${complaints.length} complaints`);
if (complaints.length > 0) process.exitCode = 1;
