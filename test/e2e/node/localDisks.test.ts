/** Disks behind `local` volumes, on loop devices of this machine: formatted once, shared, mounted with options, never overwritten. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { CsiLedger } from '../../../src/actors/services/volumes/csi/state.ts';
import { Plugins } from '../../../src/actors/services/volumes/plugins.ts';
import { createClock, createEntropy } from '../../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { createMounter } from '../../../src/boot/dependencies/mounts/mounter.ts';
import { mountsAt, parseMountinfo } from '../../../src/machines/host/mountinfo.ts';
import { podVolumes } from '../../../src/machines/pod/volumes/volumes.ts';
import { claimedVolume } from '../../../src/machines/services/volumes/claims.ts';
import { claimSizes } from '../../../src/machines/services/volumes/growth.ts';
import type { Ports } from '../../../src/ports/ports.ts';
import { eachFolder } from '../../eachFolder.ts';
import { container, FACTS, pod } from '../../machines/pods/fixtures.ts';
import { NO_PEERS } from '../../peers.ts';
import { collectingLogger } from '../../supervision/fakePorts.ts';

const signal = new AbortController().signal;
const run = (command: string, ...args: string[]): string => execFileSync(command, args, { encoding: 'utf8' }).trim();
let root: string;
let image: string;
let device: string;
eachFolder((made) => {
  root = made;
  image = join(root, 'image');
  writeFileSync(image, '');
  truncateSync(image, 64 * 1024 * 1024);
  device = run('losetup', '-f', '--show', image);
});
afterEach(() => {
  // What a failed test left.
  for (const { path } of mounts().reverse()) run('umount', path);
  run('losetup', '-d', device);
});

const mounts = () => parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8')).filter((m) => m.path.startsWith(root));
const put = (at: number, bytes: readonly number[]) => {
  const whole = readFileSync(image);
  Buffer.from(bytes).copy(whole, at);
  writeFileSync(image, whole);
};
const digest = () => createHash('sha256').update(readFileSync(image)).digest('hex');
const ledger = new CsiLedger();

function volumeOf(uid: string, pv: { mountOptions?: string[]; fsType?: string } = {}) {
  const { mountOptions, ...source } = pv;
  const spec = { claimRef: { uid: 'c' }, local: { path: device, ...source }, ...(mountOptions === undefined ? {} : { mountOptions }) };
  const claim = { uid: 'c', volume: 'pv' };
  const ports = { fs: createHostFs(), clock: createClock(), mounter: createMounter(), entropy: createEntropy() };
  const plugins = new Plugins({
    ports: ports as unknown as Ports,
    log: collectingLogger([]),
    facts: () => ({ ...FACTS, rootDir: root }),
    ...{ objects: null, growth: null, warn: () => undefined, say: () => undefined, serves: () => undefined, measure: () => (work) => work },
    swappable: () => undefined,
    claims: async ({ volume: name, readOnly, block }) => {
      const found = claimedVolume({ spec }, { claim, name, node: { name: 'n', labels: {} }, readOnly, block });
      return found.ok ? { ok: true, value: { ...found.value, uid: 'v', sizes: claimSizes({}, { spec }) } } : found;
    },
    csi: {
      drivers: () => new Map(),
      ...NO_PEERS,
      ledger,
      inUseChanged: () => undefined,
      exhausted: () => undefined,
      controllerAttaches: true,
      api: null,
      reportedInUse: () => [],
    },
  });
  const containers = [container('web', { volumeMounts: [{ name: 'v', mountPath: '/v' }] })];
  const owner = pod({ containers, volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] }, { metadata: { uid } });
  const [volume] = podVolumes(owner).volumes;
  if (volume === undefined) throw new Error('not decoded');
  return {
    dir: `${root}/pods/${uid}/volumes/kubernetes.io~local-volume/pv`,
    setUp: () => plugins.setUp({ volume, pod: owner, first: true }, signal),
    tearDown: () => plugins.tearDown(volume, signal),
  };
}

it('is formatted while it is empty, shared by pods with its mount options, and has what was written when it is mounted again', async () => {
  const [a, b] = [volumeOf('a', { mountOptions: ['noatime', 'nodev'] }), volumeOf('b', { mountOptions: ['noatime', 'nodev'] })];
  await Promise.all([a.setUp(), b.setUp()]);
  expect(mounts().map(({ type, source }) => [type, source])).toEqual(Array.from({ length: 3 }, () => ['ext4', device]));
  for (const { dir } of [a, b]) {
    expect(mountsAt(mounts(), dir)).toHaveLength(1);
    expect(run('findmnt', '-n', '-o', 'OPTIONS', dir)).toMatch(/nodev.*noatime|noatime.*nodev/);
  }
  writeFileSync(`${a.dir}/kept`, 'yes');
  const id = run('blkid', '-p', '-s', 'UUID', '-o', 'value', device);
  await a.tearDown();
  expect(mounts()).toHaveLength(2);
  await b.tearDown();
  expect(mounts()).toEqual([]);
  const again = volumeOf('c', { fsType: 'ext4' });
  await again.setUp();
  expect([readFileSync(`${again.dir}/kept`, 'utf8'), run('blkid', '-p', '-s', 'UUID', '-o', 'value', device)]).toEqual(['yes', id]);
  await again.tearDown();
  expect(mounts()).toEqual([]);
});

it('with partitions, with something encrypted or of another file system is left as it is, byte for byte', async () => {
  const table = [0x80, 1, 1, 0, 0x83, 1, 1, 1, 1, 0, 0, 0, 0xff, 0xff, 0, 0, ...Array.from({ length: 48 }, () => 0), 0x55, 0xaa];
  const signatures: [string, () => void][] = [
    ['partitions', () => put(446, table)],
    ['LUKS', () => put(0, [0x4c, 0x55, 0x4b, 0x53, 0xba, 0xbe, 0, 1])],
    ['swap', () => void run('mkswap', image)],
  ];
  for (const [name, sign] of signatures) {
    writeFileSync(image, Buffer.alloc(64 * 1024 * 1024));
    sign();
    run('losetup', '-d', device);
    device = run('losetup', '-f', '--show', image);
    const before = digest();
    const volume = volumeOf(`bad-${name}`);
    await expect(volume.setUp(), name).rejects.toThrow();
    await volume.tearDown();
    expect([name, digest(), mounts()]).toEqual([name, before, []]);
  }
});
