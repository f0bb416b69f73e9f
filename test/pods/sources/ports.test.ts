/** The real ports that sources stand on. */
import { renameSync, writeFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClock, createEntropy } from '../../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { createHost, hostAddresses } from '../../../src/boot/dependencies/machine/host.ts';
import { watchDirectory } from '../../../src/boot/dependencies/machine/sys.ts';
import { goArch } from '../../../src/machines/text/go/goArch.ts';
import type { FsEvent } from '../../../src/ports/ports.ts';
import { tempDir } from './harness.ts';

let t: Awaited<ReturnType<typeof tempDir>>;
beforeEach(async () => {
  t = await tempDir();
});
afterEach(() => t.remove());

async function eventually(condition: () => boolean): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`never: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

describe('HostFs', () => {
  const fs = createHostFs();

  it('reads a file whole up to the limit, and fails with EFBIG one byte over it', async () => {
    await writeFile(t.file('a'), 'x'.repeat(100));
    expect((await fs.readFile(t.file('a'), { bytesMax: 100 })).byteLength).toBe(100);
    await expect(fs.readFile(t.file('a'), { bytesMax: 99 })).rejects.toMatchObject({ code: 'EFBIG' });
  });
  it('reads files whose size stat does not tell', async () => {
    expect((await fs.readFile('/proc/self/status', { bytesMax: 1 << 20 })).byteLength).toBeGreaterThan(100);
    await expect(fs.readFile('/proc/self/status', { bytesMax: 10 })).rejects.toMatchObject({ code: 'EFBIG' });
  });
  it('reads a file below /sys that is shorter than the page which stat gives', async () => {
    const path = '/sys/devices/system/cpu/online';
    expect((await fs.stat(path)).size).toBe(4096);
    expect(Buffer.from(await fs.readFile(path, { bytesMax: 4095 })).toString()).toMatch(/^0[-,\d]*\n$/);
    await expect(fs.readFile(path, { bytesMax: 1 })).rejects.toMatchObject({ code: 'EFBIG' });
  });
  it('reads the tail', async () => {
    await writeFile(t.file('a'), 'hello world');
    expect(Buffer.from(await fs.readTail(t.file('a'), { bytesMax: 5 })).toString()).toBe('world');
    expect(Buffer.from(await fs.readTail(t.file('a'), { bytesMax: 500 })).toString()).toBe('hello world');
  });
  it('reads the tail of regular files inside the folders alone', async () => {
    await Promise.all([fs.mkdirp(t.file('in'), 0o755), writeFile(t.file('out'), 'planted')]);
    await fs.symlink('../out', t.file('in/link'));
    await fs.symlink('real', t.file('in/own'));
    await writeFile(t.file('in/real'), 'fine');
    const o = { bytesMax: 5, within: [t.file('in')] };
    expect(Buffer.from(await fs.readTail(t.file('in/own'), o)).toString()).toBe('fine');
    await expect(fs.readTail(t.file('in/link'), o)).rejects.toMatchObject({ code: 'EACCES' });
    await expect(fs.readTail(t.file('out'), o)).rejects.toMatchObject({ code: 'EACCES' });
    await expect(fs.readTail(t.file('in'), { bytesMax: 5 })).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(fs.readTail('/dev/zero', { bytesMax: 5 })).rejects.toMatchObject({ code: 'EINVAL' });
  });
  it('writes with the mode asked for, synced, and exclusively', async () => {
    await fs.writeFile(t.file('a'), 'one', { mode: 0o666, fsync: true });
    expect((await stat(t.file('a'))).mode & 0o777).toBe(0o666);
    await fs.writeFile(t.file('a'), '2');
    expect(await readFile(t.file('a'), 'utf8')).toBe('2');
    await expect(fs.writeFile(t.file('a'), 'x', { exclusive: true })).rejects.toMatchObject({ code: 'EEXIST' });
    await fs.fsyncDir(t.dir);
  });
  it('lists sorted by code unit and tells kinds apart', async () => {
    await Promise.all(['b', 'B', 'a'].map((n) => writeFile(t.file(n), '')));
    await fs.symlink('nowhere', t.file('c'));
    expect(await fs.readdir(t.dir)).toEqual(['B', 'a', 'b', 'c']);
    expect((await fs.lstat(t.file('c'))).kind).toBe('symlink');
    expect((await fs.stat(t.dir)).kind).toBe('dir');
    await expect(fs.stat(t.file('c'))).rejects.toMatchObject({ code: 'ENOENT' });
    expect((await fs.stat('/dev/null')).kind).toBe('other');
  });
});

describe('watching a directory', () => {
  it('reports what appears, changes and vanishes', async () => {
    const seen: FsEvent[] = [];
    using _watch = watchDirectory(
      t.dir,
      (e) => void seen.push(e),
      () => {},
    );
    const has = (kind: FsEvent['kind'], name: string) => seen.some((e) => e.kind === kind && e.name === name);
    await writeFile(t.file('a'), 'x');
    await eventually(() => has('create', 'a') && has('modify', 'a'));
    await rename(t.file('a'), t.file('b'));
    await eventually(() => has('delete', 'a') && has('create', 'b'));
  });
  it('takes files that go and come back at once for gone, and one that is written anew twice at once for there', async () => {
    await Promise.all(['d', 'e'].map((name) => mkdir(t.file(name))));
    for (const name of ['a', 'b', 'c']) writeFileSync(t.file(`d/${name}`), '');
    const seen: FsEvent[] = [];
    using _watch = watchDirectory(
      t.file('d'),
      (e) => void seen.push(e),
      () => {},
    );
    for (const [from, to] of ['d/a e/a', 'd/b e/b', 'e/a d/a', 'e/b d/b'].map((move) => move.split(' ')))
      renameSync(t.file(from ?? ''), t.file(to ?? ''));
    for (let i = 0; i < 2; i++) {
      writeFileSync(t.file('d/new'), `${i}`);
      renameSync(t.file('d/new'), t.file('d/c'));
    }
    writeFileSync(t.file('d/end'), '');
    await eventually(() => seen.some(({ name }) => name === 'end') && seen.filter(({ name }) => name === 'c').length === 2);
    const gone = seen.flatMap(({ kind, name }) => (kind === 'delete' && name !== 'new' ? [name] : []));
    expect(gone.sort()).toEqual(['a', 'b']);
  });
  it('ends when the directory goes away, once', async () => {
    await mkdir(t.file('d'));
    const ends: Error[] = [];
    using _watch = watchDirectory(
      t.file('d'),
      () => {},
      (e) => void ends.push(e),
    );
    await rm(t.file('d'), { recursive: true });
    await eventually(() => ends.length > 0);
    expect(ends.map((e) => 'code' in e && e.code)).toEqual(['ENOENT']);
  });
  it('fails at once for what is not there or no directory', async () => {
    const open = (path: string) => () =>
      watchDirectory(
        path,
        () => {},
        () => {},
      );
    expect(open(t.file('nope'))).toThrow(expect.objectContaining({ code: 'ENOENT' }));
    await writeFile(t.file('f'), '');
    expect(open(t.file('f'))).toThrow(expect.objectContaining({ code: 'ENOTDIR' }));
  });
});

describe('Clock, Entropy and Host', () => {
  it('does not fire a timer beyond 24.8 days at once', async () => {
    const clock = createClock();
    let fired = false;
    const id = clock.setTimeout(() => {
      fired = true;
    }, 2 ** 32);
    await new Promise((resolve) => clock.setTimeout(() => resolve(null), 5));
    clock.clearTimeout(id);
    expect(fired).toBe(false);
  });
  it('hashes as md5sum and sha256sum do', () => {
    expect(createEntropy().md5Hex('')).toBe('d41d8cd98f00b204e9800998ecf8427e');
    expect(createEntropy().sha256Hex('')).toMatch(/^e3b0c442/);
    expect(createEntropy().bytes(16)).toHaveLength(16);
  });
  it('gives every address that peers can reach, with its interface, those of the loopback interface last', () => {
    const at = (address: string, family: 'IPv4' | 'IPv6', internal = false) =>
      ({ address, family, internal, netmask: '', mac: '', cidr: null, scopeid: 0 }) as never;
    expect(
      hostAddresses({
        lo: [at('127.0.0.1', 'IPv4', true), at('::1', 'IPv6', true), at('10.9.9.9', 'IPv4', true)],
        docker0: [at('169.254.1.1', 'IPv4')],
        eth0: [at('fe80::1', 'IPv6'), at('fd00::1', 'IPv6'), at('10.0.0.2', 'IPv4'), at('10.0.0.3', 'IPv4')],
      }),
    ).toEqual([
      { ip: 'fd00::1', family: 6, interface: 'eth0' },
      { ip: '10.0.0.2', family: 4, interface: 'eth0' },
      { ip: '10.0.0.3', family: 4, interface: 'eth0' },
      { ip: '10.9.9.9', family: 4, interface: 'lo' },
    ]);
  });
  it.each([
    ['x64', 'amd64'],
    ['ia32', '386'],
    ['ppc64', 'ppc64le'],
    ['arm64', 'arm64'],
    ['s390x', 's390x'],
  ])('calls a processor as Go does: %s', (arch, name) => {
    expect(goArch(arch)).toBe(name);
  });
  it('knows this machine', () => {
    const host = createHost();
    expect(host.hostname()).not.toBe('');
    expect(host.capacity().memoryBytes).toBeGreaterThan(0);
    expect(host.rssBytes()).toBeGreaterThan(0);
  });
});
