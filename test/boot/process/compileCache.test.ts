/** Where the daemon keeps what V8 compiled, and that a next start reads it. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { cacheFolder, rootDirOf } from '../../../src/boot/process/compileCache.ts';
import { DAEMON } from '../../programs.ts';

const uid = process.getuid?.() ?? -1;
let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-compile-'));
  mkdirSync(join(dir, 'actorlet'));
});
afterEach(() => rmSync(dir, { recursive: true }));

it.each([
  [[], '/var/lib/kubelet'],
  [['--root-dir=/a', '--v=2'], '/a'],
  [['--root-dir', '/a', '--root-dir=/b'], '/b'],
  [['--root-dir'], ''],
])('finds the root directory in %j', (argv, root) => {
  expect(rootDirOf(argv)).toBe(root);
});

it('is made beside the state of the daemon, for this user alone', () => {
  expect(cacheFolder(dir, uid)).toBe(join(dir, 'actorlet/compile-cache'));
  expect(cacheFolder(dir, uid)).toBe(join(dir, 'actorlet/compile-cache'));
});

it('is not used where another user could write code into it, or before the first start', () => {
  expect(cacheFolder(join(dir, 'missing'), uid)).toBeNull();
  expect(cacheFolder('relative', uid)).toBeNull();
  expect(cacheFolder(dir, uid + 1)).toBeNull();
  symlinkSync(dir, join(dir, 'link'));
  expect(cacheFolder(join(dir, 'link'), uid)).toBeNull();
  mkdirSync(join(dir, 'actorlet/compile-cache'));
  chmodSync(join(dir, 'actorlet/compile-cache'), 0o777);
  expect(cacheFolder(dir, uid)).toBeNull();
  chmodSync(dir, 0o770);
  expect(cacheFolder(dir, uid)).toBeNull();
});

it('holds what the daemon loaded once it has run', () => {
  execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', DAEMON, '--version', `--root-dir=${dir}`], { stdio: 'pipe' });
  const cache = join(dir, 'actorlet/compile-cache');
  expect(existsSync(cache)).toBe(true);
  const [version = ''] = readdirSync(cache);
  expect(readdirSync(join(cache, version)).length).toBeGreaterThan(0);
});
