/** actorctl exec: through the admin socket to the runtime's address, then the runtime's own protocol. */

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { adminServerSpec } from '@actorlet/kubelet/actors/edge/admin.ts';
import { createNet } from '@actorlet/kubelet/boot/dependencies/net/net.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import { type CriResult, criAddr } from '@actorlet/kubelet/machines/runtime/cri/messages.ts';
import { type RemoteStreams, remoteStreams } from '@actorlet/runtimes/src/process/streaming/remote.ts';
import { afterEach, describe, expect, it } from 'vitest';
import { run, sampleTree, stateAt, until, views } from '../../../test/edge/harness.ts';
import { crashing, crashRecord, pod, record, running, statusView, viewOfPods } from '../../../test/edge/metrics/samples.ts';
import { fakePorts } from '../../../test/supervision/fakePorts.ts';
import { runCtl } from '../src/cli.ts';

const enders: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const end of enders.splice(0).reverse()) await end();
});

/** A daemon whose runtime offers `serve` as the other end of every exec. */
async function daemon(serve: (s: RemoteStreams, socket: Duplex) => void) {
  const root = mkdtempSync(join(tmpdir(), 'actorlet-exec-'));
  enders.push(() => rmSync(root, { recursive: true, force: true }));
  const runtimeSocket = join(root, 'runtime exec.sock');
  const runtime = createServer();
  const state = {
    url: `http+unix://${encodeURIComponent(runtimeSocket)}/exec/abc`,
    asked: { stdin: false, stdout: true, stderr: true, tty: false },
  };
  runtime.on('upgrade', (req, socket: Duplex) => {
    if (req.url !== '/exec/abc') return void socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 21\r\n\r\nthe offer has expired');
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n');
    enders.push(() => void socket.destroy());
    void remoteStreams(socket, state.asked, 'v4.channel.k8s.io').then((s) => s !== null && serve(s, socket));
  });
  await new Promise<void>((resolve) => runtime.listen(runtimeSocket, resolve));
  enders.push(() => void runtime.close());

  const registry = views();
  const withId = structuredClone(running);
  const web = withId.containerStatuses?.[0];
  if (web !== undefined) web.containerID = 'embedded://cafe';
  registry.set(podsView, viewOfPods([record(pod('ok')), crashRecord]));
  registry.set(statusesView, statusView({ 'uid-ok': withId, 'uid-web-node1': crashing }));
  const asked: unknown[] = [];
  registry.answerer = (to, event) => {
    if (to !== criAddr.path || !('calls' in event)) return { kind: 'refused', reason: 'not for me' };
    asked.push(event.calls);
    const { request } = (event.calls as { request: typeof state.asked }[])[0] ?? { request: state.asked };
    state.asked = request;
    return { kind: 'reply', value: [{ ok: true, value: { url: state.url } }] satisfies CriResult[] };
  };
  const socketPath = join(root, 'a.sock');
  const inspect = {
    state: () => sampleTree(),
    stateAt: (path: string) => stateAt(sampleTree(), path),
    recorder: () => ({ entries: [], overwritten: 0 }),
    configz: () => ({}),
  };
  const actor = run(adminServerSpec({ socketPath, inspect, podLogsDir: '/x' }), fakePorts({ net: createNet() }), registry);
  enders.push(() => actor.stop());
  await until(() => actor.value() === 'listening');
  const exec = async (argv: string[], o: { stdin?: string; signal?: AbortSignal } = {}) => {
    const said = { out: '', err: '' };
    const say = (where: 'out' | 'err') => (t: string | Uint8Array) => {
      said[where] += typeof t === 'string' ? t : Buffer.from(t).toString();
      return undefined;
    };
    const code = await runCtl({
      argv: ['exec', '--socket', socketPath, ...argv],
      env: {},
      out: say('out'),
      err: say('err'),
      outBytes: say('out'),
      errBytes: say('err'),
      stdin: Readable.from(o.stdin === undefined ? [] : [Buffer.from(o.stdin)]),
      exists: () => false,
      columns: 0,
      nowMs: () => 0,
      signal: o.signal ?? new AbortController().signal,
    });
    return { code, ...said };
  };
  return { exec, asked, state, registry };
}

describe('actorctl exec', () => {
  it('passes both outputs on, apart, and ends with the exit code of the command', async () => {
    const d = await daemon((s) => {
      s.stdout?.write('hello\n');
      s.stderr?.write('oops\n');
      s.finish({ exitCode: 7 });
    });
    expect(await d.exec(['ok', '--', 'sh', '-c', 'echo hello'])).toEqual({ code: 7, out: 'hello\n', err: 'oops\n' });
    expect(d.asked).toMatchObject([
      [
        {
          method: 'Exec',
          request: { containerId: 'cafe', cmd: ['sh', '-c', 'echo hello'], tty: false, stdin: false, stdout: true, stderr: true },
        },
      ],
    ]);
  });
  it('passes stdin on, and its end', async () => {
    const d = await daemon(async (s) => {
      s.stdout?.write((await text(s.stdin ?? Readable.from([]))).toUpperCase());
      s.finish({ exitCode: 0 });
    });
    expect(await d.exec(['ok', '-i', '--', 'tr'], { stdin: 'abc' })).toEqual({ code: 0, out: 'ABC', err: '' });
  });
  it('ends with 130 at Ctrl-C and cuts the connection', async () => {
    const c = new AbortController();
    let cut = false;
    const d = await daemon((s) => {
      void s.closed.then(() => {
        cut = true;
      });
      c.abort();
    });
    expect(await d.exec(['ok', '--', 'sleep', '9'], { signal: c.signal })).toMatchObject({ code: 130 });
    await until(() => cut);
  });
  it('says what went wrong when the command cannot run, the runtime goes away, or the offer is void', async () => {
    const none = await daemon((s) => s.finish({ error: 'exec: "nope": executable file not found in $PATH' }));
    expect(await none.exec(['ok', '--', 'nope'])).toMatchObject({
      code: 127,
      err: 'actorctl: exec: nope: there is no such program in the container.\n',
    });
    const gone = await daemon((_s, socket) => void socket.destroy());
    expect(await gone.exec(['ok', '--', 'x'])).toMatchObject({
      code: 5,
      err: expect.stringContaining('the connection ended before the command did'),
    });
    gone.state.url = gone.state.url.replace('/exec/abc', '/exec/old');
    expect(await gone.exec(['ok', '--', 'x'])).toMatchObject({ code: 5, err: expect.stringContaining('the offer has expired') });
    gone.state.url = 'http://127.0.0.1:1/exec/x';
    expect(await gone.exec(['ok', '--', 'x'])).toMatchObject({ code: 5, err: expect.stringContaining('127.0.0.1:1 did not answer') });
    gone.state.url = 'ftp://127.0.0.1/x';
    expect(await gone.exec(['ok', '--', 'x'])).toMatchObject({ code: 5, err: expect.stringContaining('an address that is no URL') });
    gone.registry.answerer = () => ({ kind: 'lost', reason: 'the link is restarting' });
    expect(await gone.exec(['ok', '--', 'x'])).toMatchObject({ code: 5, err: expect.stringContaining('the link is restarting') });
  });
  it('refuses a container that does not run, and a command that is missing', async () => {
    const d = await daemon(() => undefined);
    expect(await d.exec(['web', '--', 'sh'])).toMatchObject({ code: 1, err: 'actorctl: container web does not run (CrashLoopBackOff)\n' });
    expect(await d.exec(['ok'])).toMatchObject({ code: 2, err: expect.stringContaining('say what to run after --') });
    // Asked before the node is.
    expect(await d.exec(['ok', '-it', '--', 'sh'])).toMatchObject({ code: 2, err: expect.stringContaining('standard input is none') });
    expect(d.asked).toEqual([]);
  });
  it('asks the runtime for a terminal, which has one output', async () => {
    const d = await daemon((s) => s.finish({ exitCode: 0 }));
    await d.exec(['ok', '-t', '--', 'sh']);
    expect(d.asked).toMatchObject([[{ request: { tty: true, stdin: false, stdout: true, stderr: false } }]]);
  });
});
