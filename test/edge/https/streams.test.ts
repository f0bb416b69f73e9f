/** Exec, attach, port-forward and run: what the runtime is asked, and connections handed on to it. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { until } from '../harness.ts';
import { record, viewOfPods } from '../metrics/samples.ts';
import type { Lab } from './lab.ts';
import { coded, criContainer, sandbox, start, uid, WAIT_MS, web } from './node.ts';

/** The runtime's streaming server, as far as it is looked at: it switches to whatever it is asked and echoes in capitals. */
async function streamingServer(o: { status?: number } = {}) {
  const seen: IncomingMessage[] = [];
  const open = new Set<Duplex>();
  const server = createServer((_req, res) => res.writeHead(o.status ?? 500).end('no upgrade'));
  server.on('upgrade', (req, socket: Duplex, head: Buffer) => {
    seen.push(req);
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
    socket.once('end', () => socket.end());
    if (o.status !== undefined) {
      socket.end(`HTTP/1.1 ${o.status} No\r\ncontent-length: 4\r\nx-from: runtime\r\n\r\ngone`);
      return;
    }
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${req.headers.upgrade}\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\nhi `,
    );
    socket.on('data', (d: Buffer) => void socket.write(d.toString().toUpperCase()));
    if (head.length > 0) socket.write(head.toString().toUpperCase());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { seen, open, url: (path: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}` };
}

describe('streams', () => {
  const EXEC = '/exec/default/web/main?command=echo&command=a%20b&output=1&error=1&input=1';
  async function withRuntime(o: { status?: number } = {}) {
    const s = await start();
    const runtime = await streamingServer(o);
    s.cri.ListContainers = () => ({
      containers: [criContainer('main'), criContainer('main', { id: 'older', createdAt: '1600000000000000000' })],
    });
    s.cri.ListPodSandbox = () => ({ items: [sandbox] });
    s.cri.Exec = () => ({ url: runtime.url('/exec/token') });
    s.cri.Attach = () => ({ url: runtime.url('/attach/token') });
    s.cri.PortForward = () => ({ url: runtime.url('/portforward/token') });
    return { ...s, runtime };
  }
  const requests = (s: Pick<Lab, 'calls'>, method: string) => s.calls.filter((c) => c.method === method).map((c) => c.request);
  async function switched(answer: Promise<Awaited<ReturnType<Lab['upgrade']>>>) {
    const a = await answer;
    if (!('socket' in a)) throw new Error(`not switched: ${a.status} ${a.body}`);
    const got = { text: a.head.toString(), ended: false };
    a.socket.on('data', (d: Buffer) => {
      got.text += d.toString();
    });
    a.socket.on('error', () => undefined);
    a.socket.on('close', () => {
      got.ended = true;
    });
    onTestFinished(() => void a.socket.destroy());
    return { ...a, got };
  }

  it('are handed on byte for byte, with the query’s flags, and without the credentials', async () => {
    const s = await withRuntime();
    const headers = { authorization: 'Bearer x', cookie: 'c=1', 'x-stream-protocol-version': 'v4.channel.k8s.io' };
    const { res, socket, got } = await switched(s.upgrade(EXEC, { method: 'POST', headers }));
    expect([res.statusCode, res.headers['x-stream-protocol-version'], res.headers.upgrade]).toEqual([101, 'v4.channel.k8s.io', 'SPDY/3.1']);
    socket.write('abc');
    await until(() => got.text === 'hi ABC', WAIT_MS);
    expect(requests(s, 'Exec')).toEqual([
      { containerId: 'id-main', cmd: ['echo', 'a b'], tty: false, stdin: true, stdout: true, stderr: true },
    ]);
    const [seen] = s.runtime.seen;
    expect([seen?.method, seen?.url, seen?.headers['x-stream-protocol-version']]).toEqual(['POST', '/exec/token', 'v4.channel.k8s.io']);
    expect([seen?.headers.authorization, seen?.headers.cookie]).toEqual([undefined, undefined]);
    socket.end();
    await until(() => got.ended && s.runtime.open.size === 0, WAIT_MS);
  });
  it('of WebSocket clients lose the sub-protocol that carries a token', async () => {
    const s = await withRuntime();
    const carrier = `base64url.bearer.authorization.k8s.io.${Buffer.from('t').toString('base64url')}`;
    const headers = { upgrade: 'websocket', 'sec-websocket-protocol': `${carrier}, v4.channel.k8s.io` };
    const { got } = await switched(s.upgrade(EXEC, { headers }));
    await until(() => got.text === 'hi ', WAIT_MS);
    expect(s.runtime.seen[0]?.headers['sec-websocket-protocol']).toBe('v4.channel.k8s.io');
  });
  it('end on both sides when the runtime ends, when the client goes, and when the server stops', async () => {
    const s = await withRuntime();
    const first = await switched(s.upgrade(EXEC));
    await until(() => s.runtime.open.size === 1, WAIT_MS);
    for (const socket of s.runtime.open) socket.destroy();
    await until(() => first.got.ended, WAIT_MS);
    const second = await switched(s.upgrade(EXEC));
    await until(() => s.runtime.open.size === 1, WAIT_MS);
    second.socket.destroy();
    await until(() => s.runtime.open.size === 0, WAIT_MS);
    const third = await switched(s.upgrade(EXEC));
    await until(() => s.runtime.open.size === 1, WAIT_MS);
    await s.actor.stop();
    await until(() => third.got.ended && s.runtime.open.size === 0, WAIT_MS);
  });
  it('carry much data both ways', async () => {
    const s = await withRuntime();
    const { socket, got } = await switched(s.upgrade(EXEC));
    const block = 'x'.repeat(1 << 20);
    for (let i = 0; i < 8; i++) socket.write(block);
    await until(() => got.text.length === 3 + 8 * block.length, WAIT_MS);
    expect(got.text === `hi ${'X'.repeat(8 * block.length)}`).toBe(true);
  });
  it('take the terminal from the query for exec and from the definition for attach (traps 29, 30, 33)', async () => {
    const s = await withRuntime();
    await switched(s.upgrade('/exec/default/web/main?command=sh&tty=1&error=1&output=1'));
    await switched(s.upgrade('/attach/default/web/main?output=1&error=1&tty=1'));
    const flags = { stdin: false, stdout: true };
    expect(requests(s, 'Exec')).toMatchObject([{ ...flags, tty: true, stderr: false }]);
    await switched(s.upgrade('/attach/default/web/main?output=1&error=1'));
    const attach = { containerId: 'id-main', ...flags, tty: false };
    expect(requests(s, 'Attach')).toEqual([false, true].map((stderr) => ({ ...attach, stderr })));
    const terminal = structuredClone(web);
    if (terminal.spec.containers[0] !== undefined) terminal.spec.containers[0].tty = true;
    s.registry.set(podsView, viewOfPods([record(terminal)]));
    await switched(s.upgrade('/attach/default/web/main?output=1&error=1'));
    expect(requests(s, 'Attach')[2]).toMatchObject({ tty: true, stderr: false });
  });
  it('of ports name the sandbox, and the ports of WebSocket clients', async () => {
    const s = await withRuntime();
    await switched(s.upgrade('/portForward/default/web', { method: 'POST' }));
    await switched(s.upgrade(`/portForward/default/web/${uid}?port=80&port=81,82`, { headers: { upgrade: 'websocket' } }));
    expect(requests(s, 'PortForward')).toEqual([
      { podSandboxId: 'sb', port: [] },
      { podSandboxId: 'sb', port: [80, 81, 82] },
    ]);
  });
  const status = async (answer: Promise<Awaited<ReturnType<Lab['upgrade']>>>) => {
    const a = await answer;
    return 'status' in a ? a.status : 101;
  };
  it.each([
    ['no stream', '/exec/default/web/main?command=x', {}, 400],
    ['the errors of a terminal alone', '/attach/default/web/main?error=1&tty=1', {}, 400],
    ['a flag that is not 1 (trap 30)', '/exec/default/web/main?command=x&output=true', {}, 400],
    ['an unknown pod', '/exec/default/none/main?command=x&output=1', {}, 404],
    ['a container that is not in the pod', '/exec/default/web/none?command=x&output=1', {}, 500],
    ['another UID, for exec, is not looked at (trap 32)', '/exec/default/web/wrong/main?command=x&output=1', {}, 101],
    ['another UID, for attach (trap 32)', '/attach/default/web/wrong/main?output=1', {}, 500],
    ['another UID, for a port (trap 32)', '/portForward/default/web/wrong', {}, 404],
    ['too few parts', '/exec/default/web?command=x&output=1', {}, 404],
    ['a WebSocket without a port', '/portForward/default/web', { upgrade: 'websocket' }, 400],
    ['a port that is none', '/portForward/default/web?port=70000', { upgrade: 'websocket' }, 400],
    ['ports in the words of the API server', '/portForward/default/web?ports=80', { upgrade: 'websocket' }, 400],
    ['a tunnel of another name', '/portForward/default/web', { upgrade: 'websocket', 'sec-websocket-protocol': 'SPDY/3.1+x' }, 400],
    ['zeros before a port', '/portForward/default/web?port=0000080', { upgrade: 'websocket' }, 101],
    ['no upgrade (trap 31)', '/exec/default/web/main?command=x&output=1', { connection: 'close' }, 500],
  ])('with %s', async (_what, path, headers, expected) => {
    const s = await withRuntime();
    const plain = 'connection' in headers;
    expect(plain ? (await s.ask(path)).status : await status(s.upgrade(path, { headers: headers as Record<string, string> }))).toBe(
      expected,
    );
  });
  it('give the runtime’s refusals in their own codes', async () => {
    const s = await withRuntime();
    const ask = async () => {
      const a = await s.upgrade(EXEC);
      return 'status' in a ? [a.status, a.headers['retry-after'], a.body] : [101];
    };
    s.cri.Exec = () => {
      throw coded(5, 'no such container');
    };
    expect(await ask()).toEqual([404, undefined, 'no such container\n']);
    s.cri.Exec = () => {
      throw coded(8, 'too many');
    };
    expect(await ask()).toEqual([429, '60', 'too many\n']);
    s.cri.Exec = () => ({ url: 'http://127.0.0.1:1/nobody' });
    expect(await ask()).toEqual([502, undefined, expect.stringContaining('did not answer')]);
    s.cri.Exec = () => ({ url: 'file:///etc/passwd' });
    expect(await ask()).toEqual([502, undefined, expect.stringContaining('no URL')]);
    s.cri.ListContainers = () => ({ containers: [] });
    expect(await ask()).toEqual([500, undefined, expect.stringContaining('container not found')]);
  });
  it('pass on a streaming server’s refusal', async () => {
    const s = await withRuntime({ status: 404 });
    const a = await s.upgrade(EXEC);
    expect('status' in a && [a.status, a.body, a.headers['x-from']]).toEqual([404, 'gone', 'runtime']);
  });
});

describe('/run', () => {
  it('gives both outputs, and of a failure the command, its code and its errors', async () => {
    const s = await start();
    s.cri.ListContainers = () => ({ containers: [criContainer('main')] });
    const bytes = (t: string) => new TextEncoder().encode(t);
    let exitCode = 0;
    s.cri.ExecSync = () => ({ stdout: bytes('out'), stderr: bytes('err'), exitCode });
    expect(await s.ask('/run/default/web/main?cmd=echo%20a', { method: 'POST' })).toMatchObject({ status: 200, body: 'outerr' });
    expect(s.calls.at(-1)?.request).toEqual({ containerId: 'id-main', cmd: ['echo', 'a'], timeout: 0 });
    exitCode = 3;
    const failed = { status: 500, body: "command 'x 1' exited with 3: err" };
    expect(await s.ask('/run/default/web/main?cmd=x%201', { method: 'POST' })).toMatchObject(failed);
    expect((await s.ask('/run/default/web/main?cmd=x')).status).toBe(405);
  });
});
