/** What a container writes into its volume: names that are no text, and directories in each other beyond what a path can have. */
import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { measureStorage } from '../../src/actors/reclaim/eviction/usage.ts';
import type { CriClient } from '../../src/actors/runtime/client.ts';
import { createClock } from '../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../src/boot/dependencies/fs.ts';
import { createDiskUsage } from '../../src/boot/dependencies/machine/diskUsage.ts';
import { exceeded } from '../../src/machines/reclaim/eviction/limits.ts';
import { removeTree } from '../../src/ports/ifThere.ts';
import { it } from '../boot/inFolder.ts';
import { container, pod } from '../machines/pods/fixtures.ts';
import { fakePorts } from '../supervision/fakePorts.ts';

const fs = createHostFs();
const MIB = 1 << 20;
const named = (dir: string, ...bytes: number[]): Buffer => Buffer.concat([Buffer.from(`${dir}/`), Buffer.from(bytes)]);

/** Of 6,000 bytes: no path leads to the file at its end. */
function deep(dir: string): void {
  for (let i = 0; i < 3; i++) {
    const end = join(dir, `${i}`, ...Array.from({ length: 10 }, () => 'n'.repeat(200)));
    mkdirSync(end, { recursive: true });
    if (i === 0) writeFileSync(join(end, 'file'), 'x'.repeat(MIB));
    else renameSync(join(dir, `${i - 1}`), join(end, 'in'));
  }
}
function strange(dir: string): void {
  mkdirSync(dir, { recursive: true });
  writeFileSync(named(dir, 0x61, 0xff), 'x'.repeat(MIB));
  writeFileSync(join(dir, 'ä \ufffd'), '');
  mkdirSync(named(dir, 0xfe));
  writeFileSync(Buffer.concat([named(dir, 0xfe), Buffer.from('/ä')]), 'x'.repeat(MIB));
}
const p = pod({ containers: [container('c', { resources: { limits: { 'ephemeral-storage': '2Mi' } } })] }, { metadata: { uid: 'u' } });
const useIn = async (rootDir: string) => {
  const { signal } = new AbortController();
  const ports = { ...fakePorts({ fs }), clock: createClock(), diskUsage: createDiskUsage({ clock: createClock() }) };
  const cri = { read: async () => ({ stats: [], containers: [] }) } as unknown as CriClient;
  const use = await measureStorage([p], { ports, cri, fromCri: false, rootDir, podLogsDir: join(rootDir, 'logs'), signal });
  return use.get('u') ?? { volumes: new Map<string, number>(), containers: new Map() };
};

for (const [what, fill, files] of [
  ['names that are no text', strange, 2],
  ['directories deeper than a path', deep, 1],
] as const)
  it(`${what} count, and go with the volume`, async ({ dir }) => {
    const at = join(dir.path, 'pods/u/volumes/kubernetes.io~empty-dir/v');
    fill(at);
    expect((await useIn(dir.path)).volumes.get('v')).toBeGreaterThanOrEqual(files * MIB);
    expect(await removeTree(fs, { dir: at, dev: lstatSync(at).dev })).toBe(true);
    expect(existsSync(at)).toBe(false);
    expect(readdirSync(join(at, '..'))).toEqual([]);
  });

it('what it writes into its /etc/hosts and its last message counts for its limit', async ({ dir }) => {
  const written = async () => exceeded(p, await useIn(dir.path), { dedicatedImageFs: false });
  dir.write('pods/u/etc-hosts', 'x'.repeat(MIB));
  expect(await written()).toBeNull();
  dir.write('pods/u/containers/c/0a1b2c3d', 'x'.repeat(MIB + 1));
  expect((await written())?.signal).toBe('ephemeralpodfs.limit');
});
