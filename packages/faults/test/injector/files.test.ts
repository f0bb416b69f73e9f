/**
 * The interceptors around disk, file watches and the HTTP source: each fault does what its name says where it was
 * asked for, and nothing elsewhere.
 */

import type { FsEvent } from '@actorlet/kubelet/ports/ports.ts';
import { describe, expect, it } from 'vitest';
import { injectorRig, SOURCE_URL, watched } from './rig.ts';

describe('the disk', () => {
  async function bed() {
    const done: string[] = [];
    const note =
      (name: string) =>
      async (...args: unknown[]) => {
        done.push(`${name} ${args.filter((a) => typeof a === 'string').join(' ')}`);
        return name === 'statfs' ? { bytesTotal: 100, bytesAvailable: 50, inodesTotal: 1, inodesFree: 1 } : undefined;
      };
    const names = [
      'readFile',
      'readTail',
      'openRead',
      'writeFile',
      'rename',
      'fsyncDir',
      'mkdirp',
      'readdir',
      'stat',
      'lstat',
      'readlink',
      'symlink',
      'chmod',
      'unlink',
      'rmdir',
      'statfs',
    ];
    const fs = Object.fromEntries(names.map((n) => [n, note(n)]));
    const r = await injectorRig({ fs });
    const codeOf = async (p: Promise<unknown>): Promise<string> =>
      p.then(
        () => 'done',
        (e: unknown) => (e instanceof Error && 'code' in e ? String(e.code) : String(e)),
      );
    return { r, done, fs: r.ports.fs, codeOf };
  }

  it('is full for what takes room, below the paths asked for', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'disk.full', select: { paths: ['/root/**'] } }]);
    expect(await b.codeOf(b.fs.writeFile('/root/a/b', 'x'))).toBe('ENOSPC');
    expect(await b.codeOf(b.fs.mkdirp('/root/c', 0o700))).toBe('ENOSPC');
    expect(await b.codeOf(b.fs.symlink('/elsewhere', '/root/l'))).toBe('ENOSPC');
    expect(await b.codeOf(b.fs.writeFile('/other', 'x'))).toBe('done');
    expect(await b.codeOf(b.fs.rename('/root/a', '/root/b'))).toBe('done');
    expect(await b.codeOf(b.fs.unlink('/root/a'))).toBe('done');
    expect(await b.codeOf(b.fs.readFile('/root/a', { bytesMax: 1 }))).toBe('done');
    expect(b.done).not.toContain('writeFile /root/a/b x');
  });

  it('fails what changes something, and reads only where they are named', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'disk.error', code: 'EIO' }]);
    expect(await b.codeOf(b.fs.rename('/a', '/b'))).toBe('EIO');
    expect(await b.codeOf(b.fs.readdir('/a'))).toBe('done');
    await b.r.stop();
    await b.r.begin([{ kind: 'disk.error', code: 'EMFILE', select: { ops: ['read'] } }]);
    expect(await b.codeOf(b.fs.readdir('/a'))).toBe('EMFILE');
    expect(await b.codeOf(b.fs.rename('/a', '/b'))).toBe('done');
    await b.r.stop();
    // Either name of a rename counts.
    await b.r.begin([{ kind: 'disk.error', code: 'EXDEV', select: { ops: ['rename'], paths: ['/target/*'] } }]);
    expect(await b.codeOf(b.fs.rename('/a', '/target/b'))).toBe('EXDEV');
  });

  it('is slow until it is healed', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'disk.slow', delay: '1h' }]);
    const write = watched(b.fs.writeFile('/a', 'x'));
    await b.r.base.settle();
    expect(write.state).toBe('open');
    await b.r.stop();
    await b.r.base.settle();
    expect(write.state).toBe('done');
  });

  it('seems nearly full', async () => {
    const b = await bed();
    await b.r.begin([{ kind: 'pressure.disk', available: '7' }]);
    expect(await b.fs.statfs('/a')).toMatchObject({ bytesTotal: 100, bytesAvailable: 7 });
  });
});

describe('file watches and the HTTP source', () => {
  it('lose events, and break', async () => {
    let emit: (e: FsEvent) => void = () => undefined;
    let disposed = 0;
    const r = await injectorRig({
      sys: {
        watchDir: (_path, onEvent) => {
          emit = onEvent;
          return { [Symbol.dispose]: () => void disposed++ };
        },
      },
    });
    const got: string[] = [];
    const ends: string[] = [];
    r.ports.sys.watchDir(
      '/m',
      (e) => got.push(e.name),
      (error) => ends.push(error.message),
    );
    await r.begin([{ kind: 'disk.deaf', select: { paths: ['/m/a*'] } }]);
    emit({ kind: 'modify', name: 'a.yaml' });
    emit({ kind: 'modify', name: 'b.yaml' });
    await r.stop();
    emit({ kind: 'modify', name: 'a.yaml' });
    expect(got).toEqual(['b.yaml', 'a.yaml']);
    await r.begin([{ kind: 'watch.break', select: { paths: ['/m'] } }]);
    expect([ends, disposed]).toEqual([['the watch of /m broke (injected fault)'], 1]);
    const again = await r.inject([{ kind: 'watch.break' }]);
    expect(again.ok && again.injection.faults[0]?.missed).toContain('nothing is there');
  });

  it('is unreachable, fails or sends garbage; other URLs are not touched', async () => {
    const r = await injectorRig({ net: { httpGet: async () => ({ status: 200, body: new Uint8Array([1]) }) } }, { httpSource: true });
    const get = (url: string) => r.ports.net.httpGet(url, { headers: {}, timeoutMs: 1, bytesMax: 1, signal: new AbortController().signal });
    await r.begin([{ kind: 'http.down', action: 'error' }]);
    expect((await get(SOURCE_URL)).status).toBe(503);
    expect((await get('http://other/')).status).toBe(200);
    await r.stop();
    await r.begin([{ kind: 'http.down', action: 'unreachable' }]);
    await expect(get(SOURCE_URL)).rejects.toThrow('ECONNREFUSED');
    await r.stop();
    await r.begin([{ kind: 'http.down', action: 'garbage' }]);
    expect((await get(SOURCE_URL)).body.length).toBeGreaterThan(1);
    await r.stop();
    expect((await get(SOURCE_URL)).body).toEqual(new Uint8Array([1]));
  });
});
