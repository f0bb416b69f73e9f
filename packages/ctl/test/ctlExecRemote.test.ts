/**
 * actorctl exec through a CRI runtime's streaming server: a server of these tests that speaks SPDY/3.1 and the remote command
 * protocol, and actorctl in a terminal of its own (`script` of util-linux). test/e2e/tools/ctlExec.test.ts has a real containerd.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { data, pong } from '@actorlet/process/src/spdy.ts';
import { afterEach, describe, expect, it } from 'vitest';
import { until } from '../../../test/edge/harness.ts';
import { type Command, failure, RESET, spdyRuntime, success } from '../../../test/edge/spdyRuntime.ts';
import { CTL } from '../../../test/programs.ts';
import { runSpdy } from '../src/exec/remote.ts';
import type { ExecFlags } from '../src/exec/types.ts';
import { expectRestored, type InTerminal, inTerminal, over } from './inTerminal.ts';

const enders: (() => void)[] = [];
const runtime = (streams: number, serve: Parameters<typeof spdyRuntime>[0]['serve']) => spdyRuntime({ streams, serve, enders });
afterEach(() => {
  for (const end of enders.splice(0).reverse()) end();
});

async function run(url: string, flags: Partial<ExecFlags> = {}, o: { stdin?: Readable; signal?: AbortSignal } = {}) {
  const said = { out: '', err: '' };
  const say = (where: 'out' | 'err') => (bytes: Uint8Array) => {
    said[where] += Buffer.from(bytes).toString();
    return undefined;
  };
  const io = {
    ...{ outBytes: say('out'), errBytes: say('err') },
    ...{ stdin: o.stdin ?? Readable.from([]), signal: o.signal ?? new AbortController().signal },
  };
  const code = await runSpdy(url, io, { stdin: false, tty: false, ...flags }).catch((e: unknown) => (e as Error).message);
  return { code, ...said };
}

describe('a command through SPDY', () => {
  it('passes both outputs on and ends with the exit code of the command', async () => {
    const r = await runtime(3, (c) => {
      c.write('stdout', 'hello\n');
      c.write('stderr', 'oops\n');
      c.end(failure(7));
    });
    expect(await run(r.url)).toEqual({ code: 7, out: 'hello\n', err: 'oops\n' });
    expect([...(r.commands[0]?.streams ?? [])]).toEqual([
      ['error', 1],
      ['stdout', 3],
      ['stderr', 5],
    ]);
  });

  it('ends when the runtime resets the streams, as containerd does', async () => {
    const r = await runtime(3, (c) => {
      c.write('stdout', 'hello\n');
      c.write('error', JSON.stringify(failure(3)));
      c.socket.write(Buffer.concat([RESET(1), RESET(5), RESET(3)]));
    });
    expect(await run(r.url)).toEqual({ code: 3, out: 'hello\n', err: '' });
  });

  it('passes input on, and its end, more of it than fits into one frame', async () => {
    const r = await runtime(4, (c) => {
      c.socket.on('data', () => {
        if (!c.inputEnded) return;
        c.write('stdout', String(c.input.length));
        c.end(success);
      });
    });
    const stdin = Readable.from([Buffer.alloc(300_000, 'x'), Buffer.from('yz')]);
    expect(await run(r.url, { stdin: true }, { stdin })).toEqual({ code: 0, out: '300002', err: '' });
    expect(r.commands[0]?.input.endsWith('xyz')).toBe(true);
  });

  it('takes frames however the transport cuts them, answers pings, and lets what it does not know pass', async () => {
    const r = await runtime(3, (c) => {
      const unknown = Buffer.from('80030004000000040000000080030009000000080000000100000400', 'hex');
      const all = Buffer.concat([
        unknown,
        pong(Buffer.from('00000002', 'hex')),
        data(3, Buffer.from('ab')),
        data(3, Buffer.from('cd'), true),
      ]);
      for (const byte of all) c.socket.write(Buffer.from([byte]));
      c.socket.on('data', () => {
        if (c.pongs.length > 0) c.end(success);
      });
    });
    expect(await run(r.url)).toEqual({ code: 0, out: 'abcd', err: '' });
    expect(r.commands[0]?.pongs).toEqual(['00000002']);
  });

  it('waits for a reader that is slower than the command, and holds little of its output', async () => {
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const COUNT = 400;
    const r = await runtime(3, (c) => {
      let left = COUNT;
      const pump = () => {
        while (left > 0) {
          left -= 1;
          if (!c.socket.write(data(3, chunk))) return void c.socket.once('drain', pump);
        }
        c.end(success);
      };
      pump();
    });
    let waiting = 0;
    let most = 0;
    let bytes = 0;
    const outBytes = (part: Uint8Array): Promise<void> => {
      bytes += part.length;
      waiting += part.length;
      most = Math.max(most, waiting);
      return new Promise((resolve) =>
        setImmediate(() => {
          waiting -= part.length;
          resolve();
        }),
      );
    };
    const io = { stdin: Readable.from([]), signal: new AbortController().signal, outBytes, errBytes: () => undefined };
    expect(await runSpdy(r.url, io, { stdin: false, tty: false })).toBe(0);
    expect(bytes).toBe(COUNT * chunk.length);
    expect(most).toBeLessThan(2 * 1024 * 1024);
  });

  it('says what went wrong', async () => {
    const r = await runtime(3, (c) => {
      c.end({ status: 'Failure', message: 'error executing command in container: no such file', reason: 'InternalError', details: null });
    });
    expect((await run(r.url)).code).toBe('exec: error executing command in container: no such file');
    expect((await run(r.url.replace('tok', 'old'))).code).toBe('exec: the runtime refused with status 403: not you');
    const gone = await runtime(3, (c) => void c.socket.destroy());
    expect((await run(gone.url)).code).toBe('exec: the connection ended before the command did');
    const reset = await runtime(3, (c) => void c.socket.write(RESET(1)));
    expect((await run(reset.url)).code).toBe('exec: the runtime gave no status of the command');
    const strange = await runtime(3, (c) => void c.socket.write('8HTTP/1.1 400 Bad'.padEnd(64, '\xff')));
    const answer = run(strange.url);
    await until(() => strange.commands.length === 1);
    strange.commands[0]?.socket.write(Buffer.from('8001000100000000', 'hex'));
    strange.commands[0]?.socket.end();
    expect(String((await answer).code)).toMatch(/^exec: /);
    const large = await runtime(3, (c) => void c.socket.write(Buffer.from('8003000400ffffff', 'hex')));
    expect((await run(large.url)).code).toBe('exec: the runtime: it sent a control frame of 16777215 bytes');
  });

  it('ends with 130 at Ctrl-C, and cuts the connection', async () => {
    const c = new AbortController();
    const r = await runtime(3, () => c.abort());
    expect((await run(r.url, {}, { signal: c.signal })).code).toBe(130);
    await until(() => r.commands[0]?.gone === true);
  });
});

/** `actorctl exec ARGS` in a terminal, against a daemon that gives out this address. */
async function execInTerminal(url: string, args: string): Promise<InTerminal> {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-tty-'));
  const admin = createServer((_req, res) => res.end(JSON.stringify({ url })));
  await new Promise<void>((resolve) => admin.listen(join(dir, 'a.sock'), resolve));
  enders.push(() => {
    admin.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const t = await inTerminal(`"${process.execPath}" "${CTL}" exec --socket "${dir}/a.sock" ${args}`);
  enders.push(() => t.child.kill('SIGKILL'));
  return t;
}

describe('actorctl exec -it in a terminal', { timeout: 60_000 }, () => {
  const echoing = (c: Command) => {
    c.write('stdout', '$ ');
    c.socket.on('data', () => {
      if (c.input.includes('exit\r')) c.end(failure(42));
    });
  };

  it('sends keys as they are typed, Ctrl-C too, tells each size, and restores the terminal with the exit code', async () => {
    const r = await runtime(4, echoing);
    const t = await execInTerminal(r.url, '-it web -- sh');
    await until(() => t.text().includes('$ '), 20_000);
    const [c] = r.commands;
    expect([...(c?.streams.keys() ?? [])]).toEqual(['error', 'stdin', 'stdout', 'resize']);
    await until(() => t.settings().includes('-icanon'));
    expect(t.settings()).toMatch(/-isig/);
    expect(c?.sizes).toEqual([{ Width: 80, Height: 24 }]);
    t.type('l\u0003');
    await until(() => c?.input === 'l\u0003');
    t.resize(50, 132);
    // `stty` may set one after the other.
    await until(() => c?.sizes.at(-1)?.Width === 132 && c.sizes.at(-1)?.Height === 50);
    t.type('exit\r');
    await over(t);
    expectRestored(t, 42);
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGINT', 130],
  ] as const)('restores the terminal at %s', async (signal, code) => {
    const r = await runtime(4, echoing);
    const t = await execInTerminal(r.url, '-it web -- sh');
    await until(() => t.text().includes('$ ') && t.settings().includes('-icanon'), 20_000);
    process.kill(t.pid(), signal);
    await over(t);
    expectRestored(t, code);
    await until(() => r.commands[0]?.gone === true);
  });

  it('restores the terminal when the runtime goes away', async () => {
    const r = await runtime(4, echoing);
    const t = await execInTerminal(r.url, '-it web -- sh');
    await until(() => t.text().includes('$ ') && t.settings().includes('-icanon'), 20_000);
    r.commands[0]?.socket.destroy();
    await over(t);
    expect(t.text()).toContain('the connection ended before the command did');
    expectRestored(t, 5);
  });

  it('goes on in raw mode after it was stopped and continued', async () => {
    const r = await runtime(4, echoing);
    const t = await execInTerminal(r.url, '-it web -- sh');
    await until(() => t.text().includes('$ ') && t.settings().includes('-icanon'), 20_000);
    process.kill(t.pid(), 'SIGSTOP');
    execFileSync('stty', ['-F', /tty=(\S+)/.exec(t.text())?.[1] ?? '', 'sane']);
    process.kill(t.pid(), 'SIGCONT');
    await until(() => t.settings().includes('-icanon'));
    t.type('exit\r');
    await over(t);
    expectRestored(t, 42);
  });

  it('with -t alone leaves the keyboard alone: Ctrl-C ends actorctl', async () => {
    const r = await runtime(3, (c) => c.write('stdout', '$ '));
    const t = await execInTerminal(r.url, '-t web -- top');
    await until(() => t.text().includes('$ '), 20_000);
    expect(t.settings()).not.toContain('-icanon');
    expect(r.commands[0]?.sizes).toEqual([{ Width: 80, Height: 24 }]);
    t.type('\u0003');
    await over(t);
    expectRestored(t, 130);
  });

  it('with -i alone passes lines on, and the end of input', async () => {
    const r = await runtime(4, (c) => {
      c.write('stdout', '$ ');
      c.socket.on('data', () => {
        if (c.inputEnded) c.end(success);
      });
    });
    const t = await execInTerminal(r.url, '-i web -- cat');
    await until(() => t.text().includes('$ '), 20_000);
    expect(t.settings()).not.toContain('-icanon');
    t.type('one\n');
    await until(() => r.commands[0]?.input === 'one\n');
    t.type('\u0004');
    await over(t);
    expectRestored(t, 0);
  });
});
