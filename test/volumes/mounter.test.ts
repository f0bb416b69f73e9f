/** The real Mounter: helpers with a deadline, kinds of paths, and, where this process may mount, a tmpfs. */
import { execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { MountBatches } from '../../src/boot/dependencies/mounts/mountBatches.ts';
import { createMountCalls } from '../../src/boot/dependencies/mounts/mountCalls.ts';
import { createMounter, runHelper } from '../../src/boot/dependencies/mounts/mounter.ts';
import { mountsAt, mountsBelow, parseMountinfo } from '../../src/machines/host/mountinfo.ts';
import { eachFolder } from '../eachFolder.ts';
import { RUNS_ALL } from '../rotation.ts';

let dir: string;
eachFolder((made) => (dir = made));

const call = (timeoutMs = 30_000, signal = new AbortController().signal) => ({ timeoutMs, signal });
const mounter = createMounter();

describe('the mount table', () => {
  it('is read with its escapes, and asked for a path and what is below it', () => {
    const text = [
      '22 27 0:21 / /proc rw,relatime - proc proc rw',
      '36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue',
      'not a line',
      '40 35 0:50 / /mnt\\0402/in rw - tmpfs tmpfs rw',
      '41 35 0:51 / /mnt\\0402x rw - tmpfs tmpfs rw',
      '',
    ].join('\n');
    const table = parseMountinfo(text);
    expect(table).toHaveLength(4);
    expect(mountsAt(table, '/mnt 2')).toEqual([{ device: '98:0', path: '/mnt 2', root: '/mnt1', type: 'ext3', source: '/dev/root' }]);
    expect(mountsBelow(table, '/mnt 2').map((m) => m.path)).toEqual(['/mnt 2/in']);
    // Of one path alone: whatever has it in its line.
    const paths = (below: string) => parseMountinfo(text, below).map((m) => m.path);
    expect(paths('/mnt 2')).toEqual(['/mnt 2', '/mnt 2/in', '/mnt 2x']);
    expect(paths('/proc')).toEqual(['/proc']);
    expect(parseMountinfo(text.trimEnd(), '/mnt 2').at(-1)?.path).toBe('/mnt 2x');
    expect(paths('/nowhere')).toEqual([]);
  });
});

describe('stale mounts', () => {
  it('of a server, thousands that go at once, do not hold the process: the table is taken apart once', async () => {
    const mountinfo = join(dir, 'mountinfo');
    const paths = Array.from({ length: 2_000 }, (_, n) => `/pods/stale-${n % 100}/volumes/kubernetes.io~nfs/v${n}`);
    writeFileSync(mountinfo, paths.map((path, n) => `${n + 100} 22 0:50 / ${path} rw - nfs4 files:/ rw,vers=4.2\n`).join(''));
    const stale = createMounter({ mountinfo });
    const began = process.cpuUsage();
    const outcomes = await Promise.allSettled(paths.map((path) => stale.detach(path, 'lazy', call(30_000, AbortSignal.abort()))));
    expect(outcomes.filter((o) => o.status === 'rejected' && /cancelled/.test(String(o.reason)))).toHaveLength(paths.length);
    // Taken apart for each of them it is more than 5 s.
    expect(process.cpuUsage(began).user).toBeLessThan(1_500_000);
  });
});

describe('calls of one helper', () => {
  const batches = new MountBatches();
  const words = (script: string, ...args: string[]) => ['/bin/sh', '-c', script, 'sh', ...args];

  it('run side by side, more than one helper takes, and each is answered by itself', async () => {
    const made = Array.from({ length: 70 }, (_, i) => {
      const path = join(dir, `it's "${i}" $HOME\n*`);
      return i % 7 === 3
        ? batches.run(words(`echo "umount: ${i}: target is busy." >&2; echo more >&2; exit 32`), call())
        : batches.run(words('mkdir -- "$1" && test -z "$HOME"', path), call());
    });
    const results = await Promise.allSettled(made);
    for (const [i, result] of results.entries()) {
      const busy = { code: 'EBUSY', message: `umount: ${i}: target is busy.;more` };
      if (i % 7 === 3) expect(result).toMatchObject({ status: 'rejected', reason: busy });
      else expect(result.status, String(i)).toBe('fulfilled');
    }
    expect(readdirSync(dir).filter((name) => name.endsWith('$HOME\n*'))).toHaveLength(60);
  });

  it('hold up nobody when they hang, and are ended at their deadline', async () => {
    const pids = join(dir, 'pids');
    const hang = () => batches.run(words('echo $$ >> "$1"; sleep 300', pids), call(3_000));
    const hanging = [hang(), hang(), hang()].map((one) => expect(one).rejects.toMatchObject({ code: 'ETIMEDOUT' }));
    await vi.waitFor(() => expect(readFileSync(pids, 'utf8').trim().split('\n')).toHaveLength(3), { timeout: 20_000 });
    await batches.run(words('true'), call(60_000));
    await Promise.all(hanging);
    const alive = (pid: string) => existsSync(`/proc/${pid}`);
    await vi.waitFor(() => expect(readFileSync(pids, 'utf8').trim().split('\n').filter(alive)).toEqual([]), { timeout: 20_000 });
  });

  it('do not begin once their caller has gone, and go on to their end if they had', async () => {
    const gone = new AbortController();
    gone.abort();
    await expect(batches.run(words('true'), call(60_000, gone.signal))).rejects.toMatchObject({ code: 'ECANCELED' });
    const going = new AbortController();
    const [begun, end] = [join(dir, 'begun'), join(dir, 'end')];
    const running = batches.run(words('touch "$1"; until [ -e "$2" ]; do sleep 0.02; done', begun, end), call(60_000, going.signal));
    await vi.waitFor(() => expect(existsSync(begun)).toBe(true), { timeout: 20_000 });
    going.abort();
    writeFileSync(end, '');
    await running;
  });

  it('for one server end with the first of them that hangs too long, and those for another are not waited for', async () => {
    const pids = join(dir, 'pids');
    const hang = (timeoutMs: number) => batches.unmount(words('echo $$ >> "$1"; exec sleep 300', pids), 'dead', call(timeoutMs));
    const late = expect(hang(3_000)).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    const ended = expect(hang(60_000)).rejects.toMatchObject({ code: 'EIO', message: expect.stringContaining('what became of it') });
    await batches.unmount(words('true'), 'alive', call(60_000));
    await Promise.all([late, ended]);
    const [first = '', second = ''] = readFileSync(pids, 'utf8').trim().split('\n');
    await vi.waitFor(() => expect([first, second].map((pid) => existsSync(`/proc/${pid}`))).toEqual([false, false]), { timeout: 20_000 });
  });

  it('that cannot be found fail with the words of the shell', async () => {
    await expect(batches.run([join(dir, 'nope')], call())).rejects.toMatchObject({ message: expect.stringContaining('not found') });
  });
});

describe('a helper', () => {
  it('that does not end is killed at its deadline, and the effect is said to be unknown', async () => {
    await expect(runHelper('/bin/sh', ['-c', 'exec sleep 300'], call(200))).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  });
  it('ends with its caller', async () => {
    const controller = new AbortController();
    const running = runHelper('/bin/sh', ['-c', 'exec sleep 300'], call(60_000, controller.signal));
    controller.abort();
    await expect(running).rejects.toMatchObject({ code: 'ECANCELED' });
    await expect(runHelper('/bin/sh', ['-c', 'true'], call(60_000, controller.signal))).rejects.toMatchObject({ code: 'ECANCELED' });
  });
  it('that cannot be run, or fails, is told with its words', async () => {
    await expect(runHelper(join(dir, 'nope'), [], call())).rejects.toMatchObject({ code: 'EIO' });
    await expect(runHelper('/bin/sh', ['-c', 'echo "target is busy." >&2; exit 32'], call())).rejects.toMatchObject({
      code: 'EBUSY',
      message: 'target is busy.',
    });
  });
});

describe('foreign paths', () => {
  it('are told apart by kind, through links', async () => {
    mkdirSync(join(dir, 'dir'));
    writeFileSync(join(dir, 'file'), '');
    symlinkSync(join(dir, 'dir'), join(dir, 'link'));
    symlinkSync(join(dir, 'nowhere'), join(dir, 'dangling'));
    const server = createServer().listen(join(dir, 'socket'));
    try {
      const kinds = Object.fromEntries(
        await Promise.all(
          ['dir', 'file', 'link', 'dangling', 'socket', 'absent'].map(
            async (n) => [n, await mounter.kindOf(join(dir, n), call())] as const,
          ),
        ),
      );
      expect(kinds).toEqual({ dir: 'dir', file: 'file', link: 'dir', dangling: 'absent', socket: 'socket', absent: 'absent' });
      expect(await mounter.kindOf('/dev/null', call())).toBe('char');
    } finally {
      await new Promise((done) => server.close(done));
    }
  });

  it('are made with their mode; an existing file is left as it is, and parents of a file are not made', async () => {
    await mounter.makeDir(join(dir, 'a/b c'), 0o755, call());
    expect(statSync(join(dir, 'a/b c')).mode & 0o7777).toBe(0o755);
    expect(statSync(join(dir, 'a')).mode & 0o7777).toBe(0o755);
    await mounter.makeFile(join(dir, 'a/file'), 0o644, call());
    expect(statSync(join(dir, 'a/file')).mode & 0o7777).toBe(0o644);
    writeFileSync(join(dir, 'full'), 'text');
    await mounter.makeFile(join(dir, 'full'), 0o644, call());
    expect(statSync(join(dir, 'full')).size).toBe(4);
    await expect(mounter.makeFile(join(dir, 'no/file'), 0o644, call())).rejects.toMatchObject({
      code: 'ENOENT',
      message: expect.stringMatching(/^(?!.*sh: \d).*cannot make the file \S+no\/file: \S+\/no: No such file or directory/),
    });
    // Other words of the shell come without the shell.
    await expect(mounter.makeFile(`/proc/${process.pid}/file`, 0o644, call())).rejects.toThrow(/^(?!.*sh: \d).*cannot create/);
    expect(existsSync(join(dir, 'no'))).toBe(false);
  });
});

/** CAP_SYS_ADMIN is number 21; root in a container may lack it. */
const capabilities = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
const mayMount = ((BigInt(`0x${capabilities}`) >> 21n) & 1n) === 1n;

describe.skipIf(!mayMount)('a mount', () => {
  it('comes and goes, and is in the table meanwhile', async () => {
    const path = join(dir, 'with space');
    mkdirSync(path);
    await mounter.mount({ type: 'tmpfs', source: 'tmpfs', path, options: ['size=65536'] }, call());
    try {
      expect(mountsAt(await mounter.list(dir), path)).toMatchObject([{ type: 'tmpfs' }]);
      symlinkSync(dir, `${dir}-link`);
      expect((await mounter.list(`${dir}-link`)).map((m) => m.path)).toEqual([`${dir}-link/with space`]);
      await mounter.chown(path, { gid: 4321 });
      expect([statSync(path).uid, statSync(path).gid]).toEqual([0, 4321]);
    } finally {
      rmSync(`${dir}-link`, { force: true });
      await mounter.unmount(path, 'tmpfs', call());
    }
    expect(mountsAt(await mounter.list(dir), path)).toEqual([]);
    await expect(mounter.unmount(path, 'tmpfs', call())).rejects.toMatchObject({ code: 'EINVAL' });
  });

  it('of a tmpfs needs no program', async () => {
    vi.stubEnv('PATH', dir);
    try {
      await mounter.mount({ type: 'tmpfs', source: 'tmpfs', path: dir, options: ['size=65536', 'mode=0700'] }, call());
      expect(mountsAt(await mounter.list(dir), dir)).toMatchObject([{ type: 'tmpfs', source: 'tmpfs' }]);
      const options = ['size=65536', 'no,such=option'];
      await expect(mounter.mount({ type: 'tmpfs', source: 'tmpfs', path: dir, options }, call())).rejects.toThrow('ended with 127');
    } finally {
      await mounter.unmount(dir, 'tmpfs', call()).finally(() => vi.unstubAllEnvs());
    }
    expect(mountsAt(await mounter.list(dir), dir)).toEqual([]);
  });

  it('at one path is told as the table tells it: one over another, with a space in its name, below, moved and gone', async () => {
    const calls = createMountCalls();
    const table = (path: string) => {
      const all = parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8'));
      return all.filter((m) => m.path === path || m.path.startsWith(`${path}/`));
    };
    const mount = (...args: string[]) => execFileSync('mount', args);
    const [one, two] = ['one of\\two', 'two'].map((name) => join(dir, name)) as [string, string];
    // Linux 6.13 and later; before, the table is read.
    const asked = calls.at('/') !== null;
    const same = async (path: string, count: number) => {
      expect(table(path)).toHaveLength(count);
      expect(await mounter.list(dir, path)).toEqual(table(path));
      const told = calls.at(path);
      if (told !== null) expect(told).toEqual(table(path));
      return told !== null;
    };
    mount('--bind', dir, dir);
    try {
      mount('--make-private', dir);
      for (const path of [one, two]) mkdirSync(path);
      expect(await same(one, 0), 'what is not found is read in the table').toBe(false);
      for (const size of ['64k', '65k']) {
        mount('-t', 'tmpfs', '-o', `size=${size}`, `tmpfs ${size}`, one);
        expect(await same(one, size === '64k' ? 1 : 2)).toBe(asked);
      }
      mkdirSync(join(one, 'in'));
      mount('-t', 'tmpfs', 'tmpfs', join(one, 'in'));
      expect(await same(one, 3)).toBe(asked);
      execFileSync('umount', [join(one, 'in')]);
      mount('--move', one, two);
      expect(await same(two, 1), 'its number stands for the old path').toBe(false);
      expect(await same(one, 1)).toBe(asked);
      expect(await same(two, 1), 'it was asked about again').toBe(asked);
      execFileSync('umount', [two]);
      execFileSync('umount', [one]);
      expect(await same(one, 0)).toBe(false);
    } finally {
      execFileSync('umount', ['-R', dir]);
    }
  });

  it('of a tmpfs is not begun for somebody who gave up', async () => {
    const request = { type: 'tmpfs', source: 'tmpfs', path: dir, options: [] };
    await expect(mounter.mount(request, call(30_000, AbortSignal.abort()))).rejects.toMatchObject({ code: 'ECANCELED' });
    expect(mountsAt(await mounter.list(dir), dir)).toEqual([]);
  });

  it('onto what is not there is refused', async () => {
    const request = { type: 'tmpfs', source: 'tmpfs', path: join(dir, 'absent'), options: [] };
    await expect(mounter.mount(request, call())).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

it('a helper that says how far it is may take longer than its deadline', async () => {
  const script = 'for i in 1 2 3 4 5 6; do sleep 0.2; echo $i >&2; done; echo done';
  const run = (more: { progress?(files: number): void }) => runHelper('/bin/sh', ['-c', script], { ...call(900), ...more });
  await expect(run({})).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  const said: number[] = [];
  expect(await run({ progress: (files) => void said.push(files) })).toBe('done\n');
  expect(said).toEqual([1, 2, 3, 4, 5, 6]);
});

describe.skipIf(process.getuid?.() !== 0)('a tree that is given to a group', () => {
  const modes = (...names: string[]) =>
    names.map((n) => [statSync(join(dir, 'v', n)).gid, (statSync(join(dir, 'v', n)).mode & 0o7777).toString(8)]);
  const lay = () => {
    mkdirSync(join(dir, 'v/sub dir'), { recursive: true, mode: 0o755 });
    chmodSync(join(dir, 'v'), 0o755);
    chmodSync(join(dir, 'v/sub dir'), 0o755);
    writeFileSync(join(dir, 'v/sub dir/file'), '', { mode: 0o600 });
    writeFileSync(join(dir, 'outside'), '', { mode: 0o600 });
    symlinkSync('../outside', join(dir, 'v/link'));
  };
  const give = (onRootMismatch: boolean, gid = 4321) => mounter.giveToGroup(join(dir, 'v'), { gid, onRootMismatch }, call());

  it('may be read and written by it, directories pass it on, and what a link leads to is left alone', async () => {
    lay();
    expect(await give(false)).toEqual({ left: '' });
    expect(modes('', 'sub dir', 'sub dir/file')).toEqual([
      [4321, '2775'],
      [4321, '2775'],
      [4321, '660'],
    ]);
    expect([statSync(join(dir, 'outside')).gid, statSync(join(dir, 'outside')).mode & 0o777]).toEqual([0, 0o600]);
    expect(await mounter.groupOf(join(dir, 'v'), call())).toBe(4321);
  });

  it('is left as it is under OnRootMismatch where the root is as it should be, and is not where the setgid bit alone is missing (trap 58)', async () => {
    lay();
    await give(true);
    expect(modes('sub dir/file')).toEqual([[4321, '660']]);
    chownSync(join(dir, 'v/sub dir/file'), 0, 0);
    await give(true);
    expect(modes('sub dir/file')).toEqual([[0, '660']]);
    chmodSync(join(dir, 'v'), 0o775);
    await give(true);
    expect(modes('', 'sub dir/file')).toEqual([
      [4321, '2775'],
      [4321, '660'],
    ]);
    await give(false, 1234);
    expect(modes('', 'sub dir/file')).toEqual([
      [1234, '2775'],
      [1234, '660'],
    ]);
  });

  it('may hold FIFOs, names that are not UTF-8, and 200 directories in each other', async () => {
    const deep = join(dir, 'v', ...Array.from({ length: 200 }, () => 'd'));
    mkdirSync(deep, { recursive: true });
    writeFileSync(Buffer.concat([Buffer.from(`${deep}/`), Buffer.from([0xff, 0x0a])]), '', { mode: 0o600 });
    execFileSync('mkfifo', ['-m', '600', join(dir, 'v/fifo')]);
    expect(await give(false)).toEqual({ left: '' });
    expect(modes('fifo')).toEqual([[4321, '660']]);
    const odd = statSync(Buffer.concat([Buffer.from(`${deep}/`), Buffer.from([0xff, 0x0a])]));
    expect([odd.gid, odd.mode & 0o7777]).toEqual([4321, 0o660]);
  });

  it('changes nothing outside while a container swaps a directory for a link all the time', async () => {
    for (const at of ['v/swapped', 'outside']) {
      mkdirSync(join(dir, at), { recursive: true, mode: 0o700 });
      for (let i = 0; i < 300; i++) writeFileSync(join(dir, at, `f${i}`), '', { mode: 0o600 });
    }
    symlinkSync(join(dir, 'outside'), join(dir, 'v/link'));
    const swapper = `
      const { renameSync } = require('node:fs');
      process.chdir(process.argv[1]);
      for (;;) {
        renameSync('swapped', 'real'); renameSync('link', 'swapped');
        renameSync('swapped', 'link'); renameSync('real', 'swapped');
      }`;
    const child = spawn(process.execPath, ['-e', swapper, join(dir, 'v')], { stdio: 'ignore' });
    const outside = () =>
      readdirSync(join(dir, 'outside')).flatMap((name) => {
        const { gid, mode } = statSync(join(dir, 'outside', name));
        return gid === 0 && (mode & 0o7777) === 0o600 ? [] : [name];
      });
    try {
      const RUNS = RUNS_ALL ? 20 : 5;
      const lateMs = Date.now() + 20_000;
      for (let run = 0; run < RUNS && Date.now() < lateMs; run++) {
        await give(false, 4321 + run);
        expect(outside(), `run ${run}`).toEqual([]);
      }
    } finally {
      child.kill('SIGKILL');
      await new Promise((done) => child.once('close', done));
    }
  });
});
