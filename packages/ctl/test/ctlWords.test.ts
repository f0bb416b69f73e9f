/** What actorctl says to words that it does not know, and how it shows its commands. No daemon runs. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { findSummary, podMeant } from '@actorlet/kubelet/machines/edge/findPod.ts';
import { actorsMeant } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { expect, it } from 'vitest';
import { tempDir } from '../../../test/boot/helpers.ts';
import { runCtl } from '../src/cli.ts';
import { inOwnWords } from '../src/habits.ts';

async function ctl(argv: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await runCtl({
    argv: [...argv],
    env: {},
    out: (t) => {
      out += t;
    },
    err: (t) => {
      err += t;
    },
    stdin: Readable.from([]),
    outBytes: () => undefined,
    errBytes: () => undefined,
    exists: () => false,
    columns: 0,
    nowMs: () => 0,
    signal: new AbortController().signal,
  });
  return { code, out, err };
}

/** Every command, those below another one too. */
async function commandsBelow(argv: readonly string[]): Promise<string[][]> {
  const { out } = await ctl([...argv, '--help']);
  const start = `  actorctl ${[...argv, ''].join(' ')}`;
  const names = out.split('\n').flatMap((l) => (l.startsWith(start) ? [/^[a-z][a-z-]+/.exec(l.slice(start.length))?.[0] ?? ''] : []));
  const commands: string[][] = [];
  for (const name of new Set(names.filter((n) => n !== ''))) commands.push([...argv, name], ...(await commandsBelow([...argv, name])));
  return commands;
}

it('has an example in the help of every command', async () => {
  const commands = await commandsBelow([]);
  expect(commands.length).toBeGreaterThan(20);
  expect(commands).toContainEqual(['inject', 'cri']);
  for (const argv of commands) {
    const { out } = await ctl([...argv, '--help']);
    expect(out, argv.join(' ')).toMatch(/\nExamples:\n {2}\S/);
    expect(out).not.toContain('$0');
  }
});

it('suggests the command that was meant, also below another one', async () => {
  expect((await ctl(['node', 'cordn'])).err).toContain('(did you mean cordon?)');
  expect((await ctl(['inject', 'runtime-don'])).err).toContain('(did you mean runtime-down?)');
  for (const argv of [['ps'], ['--socket', '/none', 'ps']]) expect((await ctl(argv)).err).toContain('(did you mean pods?)');
  expect((await ctl(['node', 'xyzzy'])).err).not.toContain('did you mean');
});

it('prints its help where nothing is asked, and names the fleet', async () => {
  const { code, out } = await ctl([]);
  expect(code).toBe(0);
  expect(out).toContain('actorctl pods');
  expect(out).toContain('actorlet fleet --help');
  expect((await ctl(['fleet'])).err).toContain('actorlet fleet --help');
  expect((await ctl(['version', '--client'])).out).toMatch(/^actorctl v\d/);
});

it('guesses only what a slip of the pen, or another tool, makes likely', async () => {
  expect((await ctl(['pods', '--no-header'])).err).toContain('(did you mean --no-headers?)');
  expect((await ctl(['ps'])).err).toContain('(did you mean pods?)');
  expect((await ctl(['evnets'])).err).toContain('(did you mean events?)');
  for (const word of ['foo', 'dance', 'xy', 'bar']) expect((await ctl([word])).err).not.toContain('did you mean');
});

it('takes no word for an option, and says where a command to run begins', async () => {
  expect((await ctl(['pods', 'x'])).err).not.toContain('did you mean');
  expect((await ctl(['exec', 'web', 'ls', '/'])).err).toContain('what is to run comes after --');
  expect((await ctl(['pods', '--nmaespace=x'])).err).toContain('(did you mean --namespace?)');
});

it('takes the words of kubectl', async () => {
  expect(inOwnWords(['get', 'pods', '-ojson', '-nshop'])).toEqual(['get', 'pods', '-o', 'json', '-n', 'shop']);
  expect(inOwnWords(['pods', '-o=yaml', '-n', 'shop'])).toEqual(['pods', '-o=yaml', '-n', 'shop']);
  expect(inOwnWords(['why', 'pod', 'web', '-oyaml'])).toEqual(['why', 'pod/web', '-o', 'yaml']);
  for (const as of ['pod', '-n', 'node']) expect(inOwnWords(['why', as])).toEqual(['why', as]);
  expect(inOwnWords(['exec', 'po', 'web', '--', 'ls', '-ox'])).toEqual(['exec', 'pod/web', '--', 'ls', '-ox']);
  expect(inOwnWords(['po', 'web', '-oyaml'])).toEqual(['pods', 'web', '-o', 'yaml']);
  expect(inOwnWords(['help', 'node', 'drain'])).toEqual(['node', 'drain', '--help']);
  expect(await ctl(['help', 'pods'])).toMatchObject({ code: 0, out: expect.stringContaining('actorctl pods [name]') as string });
  // Of what is said twice, the last holds.
  expect((await ctl(['pods', '--socket', '/first', '--socket', '/second'])).err).toContain('/second does not exist');
  expect((await ctl(['version', '--client', '-ojson'])).out).toMatch(/^\{\s*"actorctl": "v/);
});

it('waits at no file that is none', async () => {
  using dir = tempDir();
  const fifo = join(dir.path, 'fifo');
  execFileSync('mkfifo', [fifo]);
  expect(await ctl(['replay', fifo])).toMatchObject({ code: 1, err: expect.stringContaining('is a FIFO, not a regular file') as string });
  const server = ['--server', 'http://127.0.0.1:9', '--token-file'];
  expect(await ctl(['pods', ...server, '/dev/null'])).toMatchObject({ code: 2, err: expect.stringContaining('is a device') as string });
  expect((await ctl(['pods', ...server, '/no/such'])).err).toContain('/no/such: ENOENT');
});

it('finds a static pod without its node name, in a namespace too', () => {
  const pod = (uid: string, namespace: string, name: string, source: 'file' | 'api' = 'file') => ({
    uid,
    namespace,
    name,
    source,
    removed: false,
  });
  const pods = [pod('aaaaaa1', 'default', 'web-vm'), pod('bbbbbb2', 'prod', 'web-vm'), pod('cccccc3', 'default', 'web-api', 'api')];
  const uids = (query: string) => {
    const found = findSummary(query, pods);
    return found.kind === 'one' ? found.uid : found.kind;
  };
  expect(['default/web', 'prod/web', 'prod/web-vm', 'bbbbbb', 'web', 'other/web'].map(uids)).toEqual([
    ...['aaaaaa1', 'bbbbbb2', 'bbbbbb2', 'bbbbbb2', 'many', 'none'],
  ]);
});

it('finds an actor by what the tree shows: the name of a pod, or the start of a UID', () => {
  const paths = ['node', 'node/pods/workers', 'node/pods/workers/0791192f', 'node/pods/workers/07911bbb', 'node/api/podWriters/0791192f'];
  const meant = (path: string) => actorsMeant(paths, path, (name) => (name === 'web' ? '0791192f' : null));
  expect(meant('node/pods/workers/web')).toEqual(['node/pods/workers/0791192f']);
  expect(meant('node/api/podWriters/web')).toEqual(['node/api/podWriters/0791192f']);
  expect(meant('node/pods/workers/079119')).toEqual(['node/pods/workers/0791192f']);
  expect(meant('node/pods/workers/0791')).toEqual([]);
  expect(meant('node/runtime/web')).toEqual([]);
});

it('refuses a limit that is no number of entries', async () => {
  for (const limit of ['-3', '0', '1.5', 'many']) {
    expect(await ctl(['recorder', '--limit', limit])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--limit takes a whole number'),
    });
  }
});

it('suggests the pod that was meant, as people write its name', () => {
  const pods = [
    { namespace: 'default', name: 'steady-node-1', source: 'file' },
    { namespace: 'shop', name: 'cart', source: 'api' },
  ];
  expect(podMeant('stedy', pods)).toBe(' (did you mean steady?)');
  expect(podMeant('stedy-node-1', pods)).toBe(' (did you mean steady-node-1?)');
  expect(podMeant('shop/crt', pods)).toBe(' (did you mean shop/cart?)');
  expect(podMeant('nothing-like-it', pods)).toBe('');
  expect(podMeant('s'.repeat(100_000), pods)).toBe('');
});

it('names the flag of a fault that would last too long, before a daemon is asked', async () => {
  const { code, err } = await ctl(['inject', 'cri', '--delay', '5s', '--for', '48h']);
  expect([code, err]).toEqual([2, expect.stringContaining('--for: would last beyond 24h')]);
});
