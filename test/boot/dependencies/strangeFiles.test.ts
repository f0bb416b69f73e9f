/** FIFOs, links and other things in the place of files that the daemon keeps or is given: nothing waits, nothing is written through a link. */
import { createHook } from 'node:async_hooks';
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, linkSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createStore, layout, prepareFolders, readPidFile } from '@actorlet/runtimes/src/process/store/store.ts';
import { describe, expect } from 'vitest';
import { createCheckpointStore } from '../../../src/actors/foundation/checkpointStore.ts';
import { loadConfig } from '../../../src/boot/config/load.ts';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createHostFs } from '../../../src/boot/dependencies/fs.ts';
import { readKubeConfig } from '../../../src/boot/dependencies/kube/kubeconfig.ts';
import { parseFlags } from '../../../src/boot/flags/parse.ts';
import { noteFile, openHandling } from '../../../src/boot/process/handling.ts';
import { loadLibc } from '../../../src/boot/process/libc.ts';
import { acquireLock, lockAtOnce } from '../../../src/boot/process/lock.ts';
import { rootDirProblem } from '../../../src/boot/steps/host/hostChecks.ts';
import type { Logger } from '../../../src/ports/ports.ts';
import { fakeBoot, HEADER, tempDir, until } from '../helpers.ts';
import { it } from '../inFolder.ts';

const fs = createHostFs();
const libc = loadLibc();
const fifo = (path: string): string => {
  execFileSync('mkfifo', [path]);
  return path;
};
const listening = (path: string) => new Promise<void>((done) => void createServer().unref().listen(path, done));
const isPlain = (path: string) => lstatSync(path).isFile();
const quiet: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, child: () => quiet };

describe('the file port', () => {
  it('reads no FIFO, and of its own files no link', async ({ dir }) => {
    const pipe = fifo(join(dir.path, 'pipe'));
    const link = join(dir.path, 'link');
    symlinkSync(dir.write('target', 'text'), link);
    await expect(fs.readFile(pipe, { bytesMax: 10 })).rejects.toMatchObject({
      code: 'EINVAL',
      message: expect.stringContaining('is a FIFO'),
    });
    await expect(fs.readTail(pipe, { bytesMax: 10 })).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(fs.readFile(link, { bytesMax: 10, own: true })).rejects.toMatchObject({
      code: 'EINVAL',
      message: expect.stringContaining('is a symbolic link'),
    });
    expect(new TextDecoder().decode(await fs.readFile(link, { bytesMax: 10 })), 'whoever gives a file may give a link').toBe('text');
    expect(await fs.readFile('/dev/null', { bytesMax: 10 })).toHaveLength(0);
  });

  it.each(['a FIFO', 'a link', 'a link to nothing', 'a second name', 'a socket'])(
    'writes through no %s: it begins the file anew',
    async (what) => {
      using dir = tempDir();
      const target = dir.write('target', 'precious');
      const path = join(dir.path, 'state');
      if (what === 'a FIFO') fifo(path);
      else if (what === 'a second name') linkSync(target, path);
      else if (what === 'a socket') await listening(path);
      else symlinkSync(what === 'a link' ? target : join(dir.path, 'nothing'), path);
      await fs.writeFile(path, 'mine', { mode: 0o600 });
      expect(isPlain(path)).toBe(true);
      expect(readFileSync(path, 'utf8')).toBe('mine');
      expect(readFileSync(target, 'utf8')).toBe('precious');
      expect(existsSync(join(dir.path, 'nothing'))).toBe(false);
    },
  );
});

describe('jobs of the pool', () => {
  const jobsOf = async (act: () => Promise<unknown>): Promise<number> => {
    let jobs = 0;
    const hook = createHook({
      init: (_id, type) => {
        if (type === 'FSREQCALLBACK' || type === 'FSREQPROMISE') jobs += 1;
      },
    }).enable();
    try {
      await act();
    } finally {
      hook.disable();
    }
    return jobs;
  };

  it.each([
    ['a new file', 2, (at: string) => fs.writeFile(join(at, 'new'), 'text', { mode: 0o640, exclusive: true })],
    ['a new file with fsync', 3, (at: string) => fs.writeFile(join(at, 'new'), 'text', { mode: 0o600, fsync: true })],
    ['a file written over', 4, (at: string) => fs.writeFile(join(at, 'there'), 'text', { mode: 0o600 })],
    ['a file of its own', 2, (at: string) => fs.readFile(join(at, 'there'), { bytesMax: 100, own: true })],
    ['a file of a person', 4, (at: string) => fs.readFile(join(at, 'there'), { bytesMax: 100 })],
    ['the end of a file in a folder', 5, (at: string) => fs.readTail(join(at, 'there'), { bytesMax: 3, within: [at] })],
    ['a file of a process', 0, () => fs.readFile('/proc/self/status', { bytesMax: 100_000 })],
    ['a file of the kernel', 0, () => fs.readFile('/proc/sys/kernel/ostype', { bytesMax: 100_000 })],
    ['a file behind a link of a process', 5, () => fs.readFile('/proc/self/root/proc/sys/kernel/ostype', { bytesMax: 100_000 })],
  ])('%s takes %i', async (_, jobs, act) => {
    using dir = tempDir();
    dir.write('there', 'before');
    chmodSync(join(dir.path, 'there'), 0o600);
    expect(await jobsOf(() => act(dir.path))).toBe(jobs);
  });

  it('a file that was there gets the mode that was asked for, and one that fails is not left open', async ({ dir }) => {
    const path = dir.write('there', 'before');
    chmodSync(path, 0o644);
    await fs.writeFile(path, 'mine', { mode: 0o600 });
    expect(lstatSync(path).mode & 0o7777).toBe(0o600);
    const open = (): number => readdirSync('/proc/self/fd').length;
    const before = open();
    for (let i = 0; i < 20; i++) {
      await expect(fs.readFile(path, { bytesMax: 1, own: true })).rejects.toMatchObject({ code: 'EFBIG' });
      await expect(fs.readFile('/proc/self/status', { bytesMax: 1 })).rejects.toMatchObject({ code: 'EFBIG' });
      await expect(fs.readTail(dir.path, { bytesMax: 1, within: [dir.path] })).rejects.toMatchObject({ code: 'EINVAL' });
      await expect(fs.writeFile(path, 'mine', { exclusive: true })).rejects.toMatchObject({ code: 'EEXIST' });
    }
    const file = await fs.openRead(path, { within: [dir.path] });
    await file.close();
    await file.close();
    expect(open()).toBe(before);
  });

  it('without a descriptor left a call rejects, and the process goes on', () => {
    const program = `
      import { openSync, closeSync } from 'node:fs';
      import { createHostFs } from ${JSON.stringify(join(import.meta.dirname, '../../../src/boot/dependencies/fs.ts'))};
      const fs = createHostFs();
      const held = [];
      try { for (;;) held.push(openSync('/dev/null')); } catch {}
      const calls = [
        () => fs.readFile('/proc/self/status', { bytesMax: 9 }), () => fs.readFile('/etc/passwd', { bytesMax: 9 }),
        () => fs.readFile('/etc/passwd', { bytesMax: 9, own: true }), () => fs.writeFile('/tmp/never', ''),
        () => fs.readTail('/etc/passwd', { bytesMax: 9, within: ['/etc'] }), () => fs.fsyncDir('/tmp'),
      ];
      const codes = [];
      for (const call of calls) codes.push(await call().then(() => 'done', (error) => error.code));
      for (const fd of held) closeSync(fd);
      codes.push(await fs.readFile('/proc/self/comm', { bytesMax: 99 }).then(() => 'done', (error) => error.code));
      console.log(codes.join(' '));`;
    const command = 'ulimit -n 64; exec "$0" --disable-warning=ExperimentalWarning --input-type=module -e "$1"';
    const said = execFileSync('sh', ['-c', command, process.execPath, program], { encoding: 'utf8' });
    expect(said.trim()).toBe('EMFILE EMFILE EMFILE EMFILE EACCES EMFILE done');
  });
});

describe('state below the root directory', () => {
  it('that is a FIFO or a link is set aside, and kept anew', async ({ dir }) => {
    const state = join(dir.path, 'state');
    mkdirSync(state);
    const outside = dir.write('outside', 'precious');
    fifo(join(state, 'pods.json'));
    symlinkSync(outside, join(state, 'probes.json'));
    symlinkSync(outside, join(state, '.pods.json.tmp'));
    const ports = { fs, clock: createClock(), entropy: { sha256Hex: () => 'x' } as never };
    const store = createCheckpointStore(ports, { dir: state, root: dir.path, log: quiet });
    expect(await store.get('pods')).toEqual({ found: false });
    expect(await store.get('probes')).toEqual({ found: false });
    expect(readdirSync(state).filter((name) => /^(pods|probes)\.json\.corrupt-\d+$/.test(name))).toHaveLength(2);
    store.put('pods', { a: 1 });
    expect(await store.flush()).toEqual([]);
    expect(isPlain(join(state, 'pods.json'))).toBe(true);
    expect(readFileSync(outside, 'utf8')).toBe('precious');
    store.dispose();
  });

  it('the note of what is handled begins anew, and suspects that are no files count as absent', () => {
    for (const strange of ['fifo', 'link']) {
      using dir = tempDir();
      const outside = dir.write('outside', 'precious');
      mkdirSync(join(dir.path, 'actorlet', 'suspects'), { recursive: true });
      if (strange === 'fifo') fifo(noteFile(dir.path));
      else symlinkSync(outside, noteFile(dir.path));
      fifo(join(dir.path, 'actorlet', 'suspects', 'x.json'));
      const said: string[] = [];
      const log = { ...quiet, warn: (fields: object) => void said.push(JSON.stringify(fields)) };
      openHandling({ rootDir: dir.path, libc, wallMs: () => 0, log });
      expect(isPlain(noteFile(dir.path))).toBe(true);
      expect(readFileSync(outside, 'utf8')).toBe('precious');
      expect(said).toEqual([expect.stringContaining('is a FIFO')]);
    }
  });

  it('the lock is refused: nobody knows who holds it', async ({ dir }) => {
    const outside = dir.write('outside', 'precious');
    const link = join(dir.path, 'link');
    symlinkSync(outside, link);
    const pipe = fifo(join(dir.path, 'pipe'));
    expect(() => lockAtOnce(link, { libc, pid: 1 })).toThrow(`${link} is a symbolic link, not a regular file`);
    expect(() => lockAtOnce(pipe, { libc, pid: 1 })).toThrow('is a FIFO');
    expect(readFileSync(outside, 'utf8')).toBe('precious');
    const o = { libc, signal: new AbortController().signal, onWait: () => {} };
    await expect(acquireLock(pipe, o)).rejects.toThrow('is a FIFO');
    // A person names this one, and may name a link.
    (await acquireLock(link, o))[Symbol.dispose]();
  });

  it('of the embedded runtime is set aside, and folders of containers without a state are removed', ({ dir }) => {
    const l = layout(dir.path);
    prepareFolders(l);
    const outside = dir.write('outside', 'precious');
    mkdirSync(l.containerDir('half'));
    fifo(l.container('half', 'out'));
    mkdirSync(l.containerDir('strange'));
    fifo(l.container('strange', 'state.json'));
    writeFileSync(l.exit('gone'), '0\n');
    writeFileSync(l.ready('gone'), '');
    writeFileSync(l.exit('strange'), '0\n');
    fifo(join(l.sandboxes, 's.json'));
    fifo(l.pid);
    symlinkSync(outside, l.images);
    symlinkSync(outside, `${l.images}.new`);
    const said: string[] = [];
    const store = createStore(l, (message) => void said.push(message));
    expect(store.load()).toEqual({ sandboxes: [], containers: [], images: [] });
    expect(said).toHaveLength(3);
    expect(readdirSync(l.containers)).toEqual(['strange']);
    expect(readdirSync(l.containerDir('strange'))).toEqual(['state.json.bad']);
    expect(readdirSync(l.exits)).toEqual(['strange']);
    expect(readPidFile(l)).toBe(0);
    store.saveImages(['a']);
    expect(isPlain(l.images)).toBe(true);
    expect(readFileSync(outside, 'utf8')).toBe('precious');
    // What was set aside stays over the next start too.
    store.load();
    expect(readdirSync(l.containers)).toEqual(['strange']);
  });

  it('of the CPU manager refuses the start, in words', async ({ dir }) => {
    const pipe = fifo(join(dir.path, 'cpu_manager_state'));
    const run = fakeBoot([...HOLLOW, `--root-dir=${dir.path}`, '--config', dir.write('c.yaml', CALM)]);
    expect(await run.code).not.toBe(0);
    expect(run.stderr()).toContain(`${pipe} cannot be read: ${pipe} is a FIFO, not a regular file`);
  });
});

const HOLLOW = ['--container-runtime-endpoint=embedded://hollow'];
const CALM = `${HEADER}failSwapOn: false\nfailCgroupV1: false\ncgroupsPerQOS: false\nenforceNodeAllocatable: []\n`;

describe('a file that a person names', () => {
  it('may be a link, and is refused in words where it is a FIFO', async ({ dir }) => {
    const pipe = fifo(join(dir.path, 'pipe'));
    await expect(readKubeConfig(pipe)).rejects.toThrow('is a FIFO, not a regular file');
    const link = join(dir.path, 'link.yaml');
    symlinkSync(dir.write('c.yaml', CALM), link);
    expect((await loadConfig(parseFlags(['--config', link], { cwd: '/' }).given)).errors).toEqual([]);
    const errors = (await loadConfig(parseFlags(['--config', pipe], { cwd: '/' }).given)).errors;
    expect(errors.map((e) => e.what)).toEqual([expect.stringContaining('not a regular file')]);
  });
});

describe('a root directory', () => {
  it('that others may write to is warned about, with what to do', async ({ dir }) => {
    for (const [mode, problem] of [
      [0o700, null],
      [0o755, null],
      [0o770, 'mode 770'],
      [0o757, 'mode 757'],
      [0o1777, 'mode 1777'],
    ] as const) {
      chmodSync(dir.path, mode);
      const said = await rootDirProblem(dir.path);
      if (problem === null) expect(said).toBeNull();
      else expect(said?.what).toMatch(new RegExp(`${problem}.*; run chmod go-w ${dir.path}$`));
    }
    const run = fakeBoot([...HOLLOW, `--root-dir=${dir.path}`, '--config', dir.write('c.yaml', CALM)]);
    await until('it is said', () => run.stderr().includes('is open to other users (mode 1777)'));
    run.emit('SIGTERM');
    await run.code;
    expect(await rootDirProblem(join(dir.path, 'nothing'))).toBeNull();
  });
});
