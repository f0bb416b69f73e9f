/** The atomic writer and the removal of volumes on a real disk. */
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { removeVolume } from '../../src/actors/services/volumes/disk/files.ts';
import { writeAtomically } from '../../src/actors/services/volumes/files/atomicWriter.ts';
import { createClock, createEntropy } from '../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../src/boot/dependencies/fs.ts';
import { pathProblem } from '../../src/machines/services/volumes/atomic.ts';
import type { Mounter } from '../../src/ports/machine/mounter.ts';
import type { FileInfo, HostFs } from '../../src/ports/ports.ts';
import { eachFolder } from '../eachFolder.ts';

let dir: string;
eachFolder((made) => (dir = made));

const chowned: string[] = [];
const mounter: Pick<Mounter, 'chown'> = {
  chown: async (path, owner) => void chowned.push(`${path.slice(path.lastIndexOf('/') + 1)} ${owner.uid ?? '-'}:${owner.gid ?? '-'}`),
};
const ports = (fs: HostFs = createHostFs()) => ({ fs, mounter: mounter as Mounter, clock: createClock(), entropy: createEntropy() });
const payload = (files: Record<string, string>, mode = 0o644) =>
  new Map(Object.entries(files).map(([path, text]) => [path, { data: new TextEncoder().encode(text), mode, uid: null }]));
const write = (files: Record<string, string>, o: { mode?: number; gid?: number; fs?: HostFs } = {}) =>
  writeAtomically(ports(o.fs), { dir, payload: payload(files, o.mode), gid: o.gid ?? null });
const read = (path: string) => readFileSync(join(dir, path), 'utf8');
const dataDirs = () => readdirSync(dir).filter((n) => /^\.\.\d/.test(n));

describe('a write', () => {
  it('lays files out behind one link, nested ones below a link to their first directory', async () => {
    expect(await write({ key: 'one', 'sub/dir/deep': 'two', 'sub/x': 'three' })).toBe(true);
    expect(readdirSync(dir).sort()).toEqual([...dataDirs(), '..data', 'key', 'sub'].sort());
    expect(dataDirs()[0]).toMatch(/^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\d+$/);
    expect(readlinkSync(join(dir, '..data'))).toBe(dataDirs()[0]);
    expect([readlinkSync(join(dir, 'key')), readlinkSync(join(dir, 'sub'))]).toEqual(['..data/key', '..data/sub']);
    expect([read('key'), read('sub/dir/deep'), read('sub/x')]).toEqual(['one', 'two', 'three']);
    expect(statSync(join(dir, '..data')).mode & 0o777).toBe(0o755);
  });

  it('of what is there already changes nothing (trap 51)', async () => {
    await write({ key: 'one', 'sub/x': 'two' });
    const [before] = dataDirs();
    expect(await write({ key: 'one', 'sub/x': 'two' })).toBe(false);
    expect(dataDirs()).toEqual([before]);
  });

  it.each<[string, Record<string, string>, number]>([
    ['content', { key: 'new', 'sub/x': 'two' }, 0o644],
    ['a mode', { key: 'one', 'sub/x': 'two' }, 0o600],
    ['a name', { key: 'one', 'sub/y': 'two' }, 0o644],
    ['one file less', { key: 'one' }, 0o644],
    ['one more', { key: 'one', 'sub/x': 'two', z: '' }, 0o644],
    ['everything', {}, 0o644],
  ])('that changes %s shows exactly that, and keeps nothing of before', async (_, files, mode) => {
    await write({ key: 'one', 'sub/x': 'two' });
    const [before] = dataDirs();
    expect(await write(files, { mode })).toBe(true);
    expect(dataDirs()).toHaveLength(1);
    expect(dataDirs()[0]).not.toBe(before);
    expect(
      readdirSync(dir)
        .filter((n) => !n.startsWith('..'))
        .sort(),
    ).toEqual([...new Set(Object.keys(files).map((p) => p.split('/')[0]))].sort());
    for (const [path, text] of Object.entries(files)) {
      expect(read(path)).toBe(text);
      expect(statSync(join(dir, path)).mode & 0o777).toBe(mode);
    }
  });

  it('gives exact modes, whatever the umask, and files to a group that may read them', async () => {
    chowned.length = 0;
    await write({ 'sub/key': 'x' }, { mode: 0o604, gid: 4321 });
    expect(statSync(join(dir, 'sub/key')).mode & 0o7777).toBe(0o644);
    expect(statSync(join(dir, 'sub')).mode & 0o7777).toBe(0o2755);
    expect(chowned).toContain('key -:4321');
    expect(await write({ 'sub/key': 'x' }, { mode: 0o604, gid: 4321 })).toBe(false);
  });

  it('gives a link to the user whose file is behind it', async () => {
    chowned.length = 0;
    const text = (uid: number | null) => ({ data: new TextEncoder().encode('x'), mode: 0o600, uid });
    const files = new Map([
      ['token', text(1000)],
      ['sub/token', text(1001)],
      ['ca.crt', text(null)],
    ]);
    await writeAtomically(ports(), { dir, payload: files, gid: null });
    // The file, and then the link to it.
    expect(chowned).toEqual(['token 1000:-', 'token 1001:-', 'token 1000:-', 'sub 1001:-']);
  });

  it.each(['writeFile', 'symlink', 'rename'] as const)('that fails at %s leaves what was there, and the next one clears up', async (op) => {
    await write({ key: 'one' });
    const fs = createHostFs();
    const broken: HostFs = { ...fs, [op]: () => Promise.reject(Object.assign(new Error('full'), { code: 'ENOSPC' })) };
    await expect(write({ key: 'two', other: 'x' }, { fs: broken })).rejects.toThrow('full');
    expect(read('key')).toBe('one');
    expect(existsSync(join(dir, 'other'))).toBe(false);
    expect(await write({ key: 'two', other: 'x' })).toBe(true);
    expect([read('key'), read('other')]).toEqual(['two', 'x']);
    expect(dataDirs()).toHaveLength(1);
  });

  it('clears up after a crash: a stale new link and data that was never shown', async () => {
    await write({ key: 'one' });
    mkdirSync(join(dir, '..2020_01_01_00_00_00.1', 'sub'), { recursive: true });
    writeFileSync(join(dir, '..2020_01_01_00_00_00.1', 'sub', 'half'), 'x');
    symlinkSync('..2020_01_01_00_00_00.1', join(dir, '..data_tmp'));
    await write({ key: 'two' });
    expect(read('key')).toBe('two');
    expect(readdirSync(dir).sort()).toEqual([...dataDirs(), '..data', 'key'].sort());
    expect(dataDirs()).toHaveLength(1);
  });

  it('repairs a link that somebody took away', async () => {
    await write({ key: 'one', other: 'two' });
    rmSync(join(dir, 'key'));
    expect(await write({ key: 'one', other: 'two' })).toBe(true);
    expect(read('key')).toBe('one');
  });
});

it.each([
  ['', 'empty'],
  ['/a', 'relative'],
  ['a/../b', "'..'"],
  ['..', "'..'"],
  ['..a', "'..'"],
  [`${'a/'.repeat(2100)}b`, '4096'],
  ['a'.repeat(256), '255'],
  ['a\0b', 'zero'],
])('the path %j is refused', (path, word) => expect(pathProblem(path)).toContain(word));
it.each(['a', 'a/b', 'a..b', 'a/..b', '.a'])('the path %j is taken', (path) => expect(pathProblem(path)).toBeNull());

describe('removing a volume', () => {
  it('follows no link and stops before anything that is mounted (trap 70)', async () => {
    const fs = createHostFs();
    const outside = join(dir, 'outside');
    mkdirSync(join(dir, 'volume/a/b'), { recursive: true });
    mkdirSync(outside);
    writeFileSync(join(outside, 'precious'), 'x');
    symlinkSync(outside, join(dir, 'volume/a/link'));
    const mount = { path: join(dir, 'volume/a/b'), root: '/x', type: 'ext4', source: '/dev/vda1', device: '254:1' };
    await expect(removeVolume(fs, join(dir, 'volume'), [mount])).rejects.toThrow('is still mounted');
    expect(existsSync(join(dir, 'volume/a/b'))).toBe(true);
    await removeVolume(fs, join(dir, 'volume'), []);
    expect(existsSync(join(dir, 'volume'))).toBe(false);
    expect(existsSync(join(outside, 'precious'))).toBe(true);
    await removeVolume(fs, join(dir, 'volume'), []);
  });

  it('removes files that say another device than their directory, as those of an overlay do, and enters no such directory', async () => {
    const real = createHostFs();
    const overlay = (of: (info: FileInfo, path: string) => number): HostFs => ({
      ...real,
      lstat: async (path) => {
        const info = await real.lstat(path);
        return { ...info, dev: of(info, path) };
      },
    });
    mkdirSync(join(dir, 'volume/a/b'), { recursive: true });
    writeFileSync(join(dir, 'volume/a/b/file'), 'x');
    symlinkSync('a', join(dir, 'volume/data'));
    const entered = overlay((info, path) => (info.kind !== 'dir' ? 3 : path.endsWith('/b') ? 2 : 1));
    await expect(removeVolume(entered, join(dir, 'volume'), [])).rejects.toThrow('a/b lies on another file system');
    expect(existsSync(join(dir, 'volume/a/b/file'))).toBe(true);
    const layered = overlay((info) => (info.kind === 'dir' ? 1 : 3));
    await removeVolume(layered, join(dir, 'volume'), []);
    expect(readdirSync(dir)).toEqual([]);
  });

  it('reads some names of a directory at once, however many files a container has made in it', async () => {
    const real = createHostFs();
    mkdirSync(join(dir, 'volume/a'), { recursive: true });
    for (let i = 0; i < 2_500; i++) writeFileSync(join(dir, `volume/a/${i}`), '');
    const read: number[] = [];
    const counting: HostFs = {
      ...real,
      async readdir(path, o) {
        const names = await real.readdir(path, o);
        read.push(names.length);
        return names;
      },
    };
    await removeVolume(counting, join(dir, 'volume'), []);
    expect(read).toEqual([1, 1_000, 1_000, 500]);
    expect(readdirSync(dir)).toEqual([]);
  });

  it('removes a link in its place, not what it leads to', async () => {
    mkdirSync(join(dir, 'outside'));
    symlinkSync(join(dir, 'outside'), join(dir, 'volume'));
    await removeVolume(createHostFs(), join(dir, 'volume'), []);
    expect(readdirSync(dir)).toEqual(['outside']);
  });
});
