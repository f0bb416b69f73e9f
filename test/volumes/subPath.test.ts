/** Parts of volumes: never anything outside of the volume, whoever changes it meanwhile (resources and volumes 8.21, trap 60). */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { createMounter } from '../../src/boot/dependencies/mounts/mounter.ts';
import { SubPathHelpers } from '../../src/boot/dependencies/subPath/helper.ts';
import { fdPath, openBelow } from '../../src/boot/dependencies/subPath/walk.ts';
import { mountsBelow, parseMountinfo } from '../../src/machines/host/mountinfo.ts';
import type { Container } from '../../src/machines/kube/podTable.ts';
import { built } from '../../src/machines/result.ts';
import { subPathParts } from '../../src/machines/services/volumes/subPaths.ts';
import { eachFolder } from '../eachFolder.ts';

let dir: string;
let volume: string;
eachFolder((made) => {
  dir = made;
  volume = join(dir, 'volume');
  mkdirSync(volume);
  mkdirSync(join(dir, 'outside'));
  writeFileSync(join(dir, 'outside', 'secret'), 'secret');
});

/** Where it leads to, as the kernel says. */
async function leadsTo(subPath: string): Promise<string> {
  const handle: FileHandle = await openBelow(volume, subPath);
  try {
    return readlinkSync(fdPath(handle));
  } finally {
    await handle.close();
  }
}
/** What this process has open below the volume. */
function openBelowVolume(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(volume) ? [path] : [];
    } catch {
      // The one that listed the directory is closed by now.
      return [];
    }
  });
}

describe('a path inside a volume', () => {
  it('is opened: directories, files, the volume itself, with dots and doubled slashes', async () => {
    mkdirSync(join(volume, 'a/b'), { recursive: true });
    writeFileSync(join(volume, 'a/file'), '');
    expect(await leadsTo('a/b')).toBe(join(volume, 'a/b'));
    expect(await leadsTo('./a//b/.')).toBe(join(volume, 'a/b'));
    expect(await leadsTo('a/file')).toBe(join(volume, 'a/file'));
    expect(await leadsTo('.')).toBe(volume);
  });

  it('that is not there is made with the mode of the volume, setgid and sticky bits included, whatever the umask', async () => {
    chmodSync(volume, 0o3777);
    expect(await leadsTo('new/deep')).toBe(join(volume, 'new/deep'));
    expect(statSync(join(volume, 'new')).mode & 0o7777).toBe(0o3777);
    expect(statSync(join(volume, 'new/deep')).mode & 0o7777).toBe(0o3777);
  });

  it('follows links that stay inside: relative, absolute, through .., and those of the atomic writer', async () => {
    mkdirSync(join(volume, '..2026_data'));
    writeFileSync(join(volume, '..2026_data', 'key'), 'v');
    symlinkSync('..2026_data', join(volume, '..data'));
    symlinkSync('..data/key', join(volume, 'key'));
    expect(await leadsTo('key')).toBe(join(volume, '..2026_data/key'));
    mkdirSync(join(volume, 'a/b'), { recursive: true });
    symlinkSync('../b/../b', join(volume, 'a', 'up'));
    symlinkSync('a/b/../../a', join(volume, 'there'));
    symlinkSync(join(volume, 'a/b'), join(volume, 'absolute'));
    expect(await leadsTo('there/b')).toBe(join(volume, 'a/b'));
    expect(await leadsTo('absolute')).toBe(join(volume, 'a/b'));
    expect(await leadsTo('absolute/new')).toBe(join(volume, 'a/b/new'));
    await expect(leadsTo('a/up')).rejects.toMatchObject({ step: 'create' });
  });

  it('where the volume itself is a link, is below what that leads to', async () => {
    renameSync(volume, join(dir, 'real'));
    symlinkSync('real', volume);
    mkdirSync(join(dir, 'real/a'));
    expect(await leadsTo('a')).toBe(join(dir, 'real/a'));
  });

  it.each([
    ['a link to a directory outside', '../outside', 'link'],
    ['a link to /etc', '/etc', 'link'],
    ['a path through a link to /', '/', 'link/etc/shadow'],
    ['a link to a file outside', '../outside/secret', 'link'],
    ['a link that goes out and in again', '../volume/a', 'link'],
    ['a link to /proc/self/root', '/proc/self/root/etc', 'link'],
    ['a link with more .. than there are directories', 'a/../../../../../../etc', 'link'],
    ['a link that shares only the beginning of the name', '../volume-2/x', 'link'],
  ])('is refused where it is %s', async (_, target, subPath) => {
    mkdirSync(join(volume, 'a'));
    mkdirSync(join(dir, 'volume-2/x'), { recursive: true });
    symlinkSync(target, join(volume, 'link'));
    await expect(leadsTo(subPath)).rejects.toMatchObject({ name: 'SubPathError', step: 'prepare' });
  });

  it.each(['..', 'a/..', 'a/../../outside', '/etc', '../outside'])('%s is refused', async (subPath) => {
    mkdirSync(join(volume, 'a'));
    await expect(leadsTo(subPath)).rejects.toMatchObject({ name: 'SubPathError' });
  });

  it('is never made where a link leads to: a dangling one fails, and nothing is there afterwards', async () => {
    symlinkSync('not/there', join(volume, 'dangling'));
    symlinkSync('../outside/new', join(volume, 'away'));
    await expect(leadsTo('dangling')).rejects.toMatchObject({ step: 'create' });
    await expect(leadsTo('dangling/new')).rejects.toMatchObject({ step: 'create' });
    await expect(leadsTo('away')).rejects.toMatchObject({ step: 'prepare' });
    expect(existsSync(join(volume, 'not'))).toBe(false);
    expect(existsSync(join(dir, 'outside/new'))).toBe(false);
  });

  it('that goes round in circles ends, and a file has nothing below it', async () => {
    symlinkSync('two', join(volume, 'one'));
    symlinkSync('one', join(volume, 'two'));
    writeFileSync(join(volume, 'file'), '');
    await expect(leadsTo('one')).rejects.toMatchObject({ step: 'prepare' });
    await expect(leadsTo('file/x')).rejects.toMatchObject({ code: 'ENOTDIR' });
  });

  it('stays inside while a container swaps directories for links all the time', async () => {
    mkdirSync(join(volume, 'a/b'), { recursive: true });
    // Links out, at both places; what is swapped in is a directory, a link to the outside, or nothing for a moment.
    const swapper = [
      'cd "$1" || exit 1',
      'while :; do',
      '  mv a real 2>/dev/null; ln -s "$2" a; mv -T real/b real/c 2>/dev/null; ln -s "$2" real/b 2>/dev/null',
      '  rm a; mv real a; rm a/b; mv -T a/c a/b',
      'done',
    ].join('\n');
    const child: ChildProcess = spawn('/bin/sh', ['-c', swapper, 'sh', volume, join(dir, 'outside')], { stdio: 'ignore' });
    const ends = { inside: 0, refused: 0 };
    try {
      // Until both were seen often enough, or for long enough on a machine that shows only one of them.
      const lateMs = Date.now() + 20_000;
      while ((ends.inside < 50 || ends.refused < 50) && Date.now() < lateMs) {
        try {
          const path = await leadsTo('a/b');
          // A directory that was moved meanwhile is the same directory; the kernel tells its present name.
          expect(path.startsWith(`${volume}/`), path).toBe(true);
          ends.inside += 1;
        } catch (error) {
          if (error instanceof Error && error.name === 'AssertionError') throw error;
          ends.refused += 1;
        }
      }
    } finally {
      child.kill('SIGKILL');
      await new Promise((done) => child.once('close', done));
    }
    expect(ends.inside + ends.refused).toBeGreaterThan(0);
    expect(openBelowVolume()).toEqual([]);
  }, 60_000);
});

describe('what a container asks for', () => {
  const container = (...volumeMounts: object[]): Container => ({ name: 'main', volumeMounts }) as Container;
  const variables = () =>
    built(
      new Map([
        ['NAME', 'web'],
        ['EMPTY', ''],
        ['UP', '../..'],
        ['ROOT', '/etc'],
      ]),
    );
  const of = (m: object) => subPathParts(container({ name: 'plain', mountPath: '/p' }, { name: 'v', mountPath: '/v', ...m }), variables);

  it('is expanded with its environment, by the index of its mount', () => {
    expect(of({ subPath: 'a/b' })).toEqual(built([{ volume: 'v', index: 1, subPath: 'a/b' }]));
    expect(of({ subPathExpr: 'logs/$(NAME)' })).toEqual(built([{ volume: 'v', index: 1, subPath: 'logs/web' }]));
    expect(of({ subPathExpr: '$$(NAME)' })).toEqual(built([{ volume: 'v', index: 1, subPath: '$(NAME)' }]));
    expect(of({})).toEqual(built([]));
  });
  it('is refused where a variable is missing or empty, and the environment is not asked for in vain', () => {
    expect(of({ subPathExpr: '$(NO)/$(EMPTY)/$(NAME)' })).toEqual({ ok: false, message: 'missing value for EMPTY, NO' });
    const never = () => ({ ok: false as const, message: 'no environment' });
    expect(subPathParts(container({ name: 'v', mountPath: '/v', subPath: 'a' }), never)).toMatchObject({ ok: true });
    expect(subPathParts(container({ name: 'v', mountPath: '/v', subPathExpr: 'a' }), never)).toEqual(never());
  });
  it('is refused where it leads out, expanded or not', () => {
    expect(of({ subPathExpr: 'a/$(UP)' })).toEqual({ ok: false, message: "unable to provision SubPath `a/../..`: must not contain '..'" });
    expect(of({ subPathExpr: '$(ROOT)' })).toEqual({ ok: false, message: 'error SubPath `/etc` must not be an absolute path' });
    expect(of({ subPath: '/etc' })).toMatchObject({ ok: false });
    expect(of({ subPath: 'a/..' })).toMatchObject({ ok: false });
  });
});

/** CAP_SYS_ADMIN is number 21; root in a container may lack it. */
const capabilities = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
const mayMount = ((BigInt(`0x${capabilities}`) >> 21n) & 1n) === 1n;

describe.skipIf(!mayMount).each([
  ['in the daemon', false],
  ['in the helper', true],
])('a bind %s', (_, foreign) => {
  const mounter = createMounter();
  const call = { timeoutMs: 60_000, signal: new AbortController().signal };
  const bind = (subPath: string, target = join(dir, 'target')) => mounter.bindSubPath({ volume, subPath, target, foreign }, call);
  const table = () => mountsBelow(parseMountinfo(readFileSync('/proc/self/mountinfo', 'utf8')), dir);
  afterEach(async () => {
    // The directory of this test is removed after this.
    for (const { path, type } of table()) await mounter.unmount(path, type, call);
  });

  it('shows a directory or a file of the volume, once however often it is asked for', async () => {
    mkdirSync(join(volume, 'a'));
    writeFileSync(join(volume, 'a/file'), 'here');
    expect(await bind('a')).toEqual({ kind: 'bound' });
    expect(await bind('a')).toEqual({ kind: 'bound' });
    expect(readFileSync(join(dir, 'target/file'), 'utf8')).toBe('here');
    expect(await bind('a/file', join(dir, 'other'))).toEqual({ kind: 'bound' });
    expect(readFileSync(join(dir, 'other'), 'utf8')).toBe('here');
    expect(table()).toHaveLength(2);
  });

  it('follows what the path leads to now: a file that was replaced is bound anew', async () => {
    writeFileSync(join(volume, 'key'), 'old');
    await bind('key');
    writeFileSync(join(volume, 'new'), 'new');
    renameSync(join(volume, 'new'), join(volume, 'key'));
    expect(readFileSync(join(dir, 'target'), 'utf8')).toBe('old');
    expect(await bind('key')).toEqual({ kind: 'bound' });
    expect(readFileSync(join(dir, 'target'), 'utf8')).toBe('new');
    rmSync(join(volume, 'key'));
    mkdirSync(join(volume, 'key'));
    expect(await bind('key')).toEqual({ kind: 'bound' });
    expect(statSync(join(dir, 'target')).isDirectory()).toBe(true);
    expect(table()).toHaveLength(1);
  });

  it.skipIf(!existsSync('/dev/fuse'))('takes the place of a mount whose server is gone', async () => {
    mkdirSync(join(volume, 'a'));
    mkdirSync(join(dir, 'target'));
    const mount = `exec 3<>/dev/fuse; mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 dead '${join(dir, 'target')}'`;
    execFileSync('sh', ['-c', mount]);
    expect(() => statSync(join(dir, 'target'))).toThrow('ENOTCONN');
    expect(await bind('a')).toEqual({ kind: 'bound' });
    expect(statSync(join(dir, 'target')).ino).toBe(statSync(join(volume, 'a')).ino);
    expect(table()).toHaveLength(1);
  });

  it('of what leads out is refused, and nothing is mounted', async () => {
    symlinkSync('/etc', join(volume, 'link'));
    expect(await bind('link')).toMatchObject({ kind: 'refused', step: 'prepare' });
    expect(await bind('link/passwd')).toMatchObject({ kind: 'refused', step: 'prepare' });
    symlinkSync('nowhere', join(volume, 'dangling'));
    expect(await bind('dangling')).toMatchObject({ kind: 'refused', step: 'create' });
    expect(table()).toEqual([]);
    expect(existsSync(join(dir, 'target'))).toBe(false);
  });
});

describe('helpers', () => {
  it('are a few at once, and a caller that gave up keeps none of the others waiting', async () => {
    let running = 0;
    let most = 0;
    const controller = new AbortController();
    const helpers = new SubPathHelpers(async (_command, _args, call) => {
      if (call.signal.aborted) throw Object.assign(new Error('cancelled'), { code: 'ECANCELED' });
      running += 1;
      most = Math.max(most, running);
      await new Promise((done) => setImmediate(done));
      running -= 1;
      return '{"kind":"bound"}';
    });
    const request = { volume: '/v', subPath: 'a', target: '/t', foreign: true };
    const ask = (signal: AbortSignal) => helpers.bind(request, { server: '', timeoutMs: 1_000, signal });
    const kept = Array.from({ length: 10 }, () => ask(new AbortController().signal));
    const given = ask(controller.signal);
    controller.abort();
    const later = ask(new AbortController().signal);
    await expect(given).rejects.toMatchObject({ code: 'ECANCELED' });
    expect(await Promise.all([...kept, later])).toHaveLength(11);
    expect(most).toBe(4);
  });
  it('for a server that hangs hold up those for another not at all, and those behind them no longer than their own deadline', async () => {
    let begun = 0;
    const helpers = new SubPathHelpers((_command, args, call) => {
      begun += 1;
      if (!args.some((arg) => arg.includes('/dead'))) return Promise.resolve('{"kind":"bound"}');
      return new Promise((_resolve, reject) => {
        // The end of a helper takes longer than the deadline of those behind it.
        setTimeout(() => reject(Object.assign(new Error('late'), { code: 'ETIMEDOUT' })), call.timeoutMs + 1_000);
      });
    });
    const ask = (volume: string, server: string) =>
      helpers.bind({ volume, subPath: 'a', target: '/t', foreign: true }, { server, timeoutMs: 200, signal: new AbortController().signal });
    const dead = Array.from({ length: 10 }, () => ask('/dead', 'files').catch((error: { code: string }) => error.code));
    expect(await ask('/alive', '')).toEqual({ kind: 'bound' });
    expect(await Promise.all(dead)).toEqual(Array.from({ length: 10 }, () => 'ETIMEDOUT'));
    expect(begun).toBeLessThan(11);
  });
  it('that say something else are not believed', async () => {
    const said = (text: string) =>
      new SubPathHelpers(async () => text).bind(
        { volume: '/v', subPath: 'a', target: '/t', foreign: true },
        { server: '', timeoutMs: 1_000, signal: new AbortController().signal },
      );
    expect(await said('{"kind":"refused","step":"create","why":"x"}')).toEqual({ kind: 'refused', step: 'create', why: 'x' });
    await expect(said('{"kind":"done"}')).rejects.toThrow('said');
    await expect(said('')).rejects.toThrow();
  });
});
