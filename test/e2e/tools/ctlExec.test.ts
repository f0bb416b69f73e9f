/** actorctl exec on a real containerd: a shell in a terminal, input and its end, both outputs, exit codes. */
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { expectRestored, type InTerminal, inTerminal, over } from '../../../packages/ctl/test/inTerminal.ts';
import type { Daemon } from '../daemon.ts';
import { until } from '../lab/ports.ts';
import { manifest, steady } from '../manifests.ts';
import { onContainerd } from '../onContainerd.ts';

const CTL = join(import.meta.dirname, '../../../bin/actorctl');
const WAIT_MS = 60_000;
let daemon: Daemon;
const socket = (): string => join(daemon.rootDir, 'actorlet.sock');

onContainerd((made) => ({ daemon } = made));
beforeAll(async () => {
  daemon.put('web.json', manifest('web', [steady()]));
  await daemon.phase('web', 'Running', WAIT_MS);
});

function exec(args: string[], input?: string | Buffer): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    const o = { maxBuffer: 1 << 26, encoding: 'utf8' } as const;
    const child = execFile(CTL, ['exec', '--socket', socket(), ...args], o, (error, out, err) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, out, err }),
    );
    child.stdin?.end(input);
  });
}
const says = async (t: InTerminal, what: RegExp): Promise<void> => {
  try {
    await until(`the terminal to say ${what}`, () => what.test(t.text()));
  } catch (error) {
    throw new Error(`${String(error)}; it says ${JSON.stringify(t.text())}`);
  }
};

describe('actorctl exec', () => {
  it('passes outputs and the exit code on', async () => {
    expect(await exec(['web', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7'])).toEqual({ code: 7, out: 'out\n', err: 'err\n' });
    expect(await exec(['web', '--', 'true'])).toEqual({ code: 0, out: '', err: '' });
    const none = await exec(['web', '--', 'no-such-program']);
    expect(none.err).toContain('no-such-program');
    expect(none.code).toBeGreaterThan(0);
  });

  it('passes input on, and its end', async () => {
    expect(await exec(['-i', 'web', '--', 'tr', 'a-z', 'A-Z'], 'some words')).toEqual({ code: 0, out: 'SOME WORDS', err: '' });
    const large = Buffer.alloc(3_000_000, 'x');
    expect(await exec(['-i', 'web', '--', 'wc', '-c'], large)).toMatchObject({ code: 0, out: '3000000\n' });
    expect((await exec(['web', '--', 'head', '-c', '3000000', '/dev/zero'])).out.length).toBe(3_000_000);
  });

  it('runs a shell in a terminal: sizes, Ctrl-C, the exit code', async () => {
    const t = await inTerminal(`"${CTL}" exec --socket "${socket()}" -it web -- sh`);
    try {
      await says(t, /# /);
      t.type('busybox stty size\r');
      await says(t, /24 80\r+\n/);
      t.resize(50, 132);
      // The size goes another way than what is typed, so it may come later.
      const resized = () => {
        t.type('busybox stty size\r');
        return /50 132\r+\n/.test(t.text());
      };
      await until('the new size to come', resized, { timeoutMs: WAIT_MS });
      t.type('sleep 1234\r');
      const sleeps = async () => (await exec(['web', '--', 'sh', '-c', 'ps | grep -q "[s]leep 1234"'])).code === 0;
      await until('the shell to sleep', sleeps, { timeoutMs: WAIT_MS });
      t.type('\u0003');
      await until('it to end', async () => !(await sleeps()), { timeoutMs: WAIT_MS });
      t.type('echo was=$?\r');
      await says(t, /was=130\r+\n/);
      t.type('exit 42\r');
      await over(t);
      expectRestored(t, 42);
    } finally {
      t.child.kill('SIGKILL');
    }
  });

  it('says that -it needs a terminal', async () => {
    expect(await exec(['-it', 'web', '--', 'sh'], '')).toMatchObject({ code: 2, err: expect.stringContaining('standard input is none') });
  });

  it('ends at SIGINT with 130', async () => {
    const child = spawn(CTL, ['exec', '--socket', socket(), 'web', '--', 'sh', '-c', 'echo begun; sleep 1000'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    child.kill('SIGINT');
    expect(await ended).toBe(130);
  });
});
