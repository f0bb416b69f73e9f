/** A folder holds a dozen files at most: part of `npm run lint`. */
import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

const FILES_MAX = 12;
const TREES = ['src', 'packages', 'test', 'scripts', 'docs'];
/** Folders with more, and how many files they have. This list may only get shorter, and its numbers smaller. */
const EXCEPTIONS = {
  docs: 20,
  'docs/architecture': 24,
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
for (const line of complaints) console.error(line);
console.log(`check-folders: ${complaints.length} complaints`);
if (complaints.length > 0) process.exitCode = 1;
