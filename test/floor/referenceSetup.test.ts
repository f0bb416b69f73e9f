/** scripts/reference-setup.sh: what it refuses before it fetches anything, and that it does nothing twice. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const SCRIPT = join(import.meta.dirname, '../../scripts/reference-setup.sh');
const VERSION = 'v1.36.2';
let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-reference-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** With a mirror that nobody serves: whoever gets as far as fetching fails in other words. */
function run(...args: string[]) {
  const env = { PATH: '/usr/bin:/bin', HOME: dir, ACTORLET_REFERENCE_CACHE: join(dir, 'cache'), NEWER_MIRROR: 'http://127.0.0.1:9' };
  const { status, stdout, stderr } = spawnSync('sh', [SCRIPT, ...args], { env, encoding: 'utf8', timeout: 30_000 });
  return { status, stdout, stderr };
}
function tree(...folders: string[]): string {
  for (const folder of folders) mkdirSync(join(dir, 'tree', folder), { recursive: true });
  return join(dir, 'tree');
}

describe('the reference is not built', () => {
  it.each([
    ['without a source and a version', () => [], /usage: reference-setup.sh SOURCE VERSION/],
    ['from a folder that is not there', () => [join(dir, 'none'), VERSION], /no folder .*none/],
    ['from a folder of something else', () => [tree('vendor'), VERSION], /is no source of Kubernetes: it has no cmd\/kubelet/],
    ['without vendor folder', () => [tree('cmd/kubelet'), VERSION], /has no vendor folder, and nothing is fetched for the build/],
    ['in a version that is none', () => [tree('cmd/kubelet', 'vendor'), '1.36'], /VERSION is of the form v1\.MINOR\.PATCH, not: 1\.36/],
  ] as const)('%s', (_, args, says) => {
    const ran = run(...args());
    expect(ran).toMatchObject({ status: 1, stdout: '' });
    expect(ran.stderr).toMatch(says);
  });
});

it('is there already: its folder is printed, and nothing is fetched', () => {
  const bin = join(dir, 'cache', VERSION, 'bin');
  mkdirSync(bin, { recursive: true });
  for (const name of ['kubelet', 'etcd']) {
    writeFileSync(join(bin, name), '#!/bin/sh\n');
    chmodSync(join(bin, name), 0o755);
  }
  expect(run(tree('cmd/kubelet', 'vendor'), VERSION)).toEqual({ status: 0, stdout: `${bin}\n`, stderr: '' });
});
