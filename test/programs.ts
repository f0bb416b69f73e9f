/**
 * The built programs, for tests that start them: a start from the sources takes 1.2 s of processor time, from a bundle 0.3 s. They are
 * built anew where a source has changed. At night the harness starts sources.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
mkdirSync(join(root, '.cache'), { recursive: true });
// One worker builds, the others wait for it.
execFileSync('flock', [join(root, '.cache/build.lock'), process.execPath, join(root, 'scripts/build.mjs')], { stdio: 'pipe' });

export const DAEMON = join(root, 'dist/actorlet.mjs');
export const CTL = join(root, 'dist/actorctl.mjs');
export const SANDBOX = join(root, 'dist/sandboxd.mjs');
