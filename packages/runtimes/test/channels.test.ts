/** Exec, attach and port-forward of the embedded runtimes by WebSocket and by the older versions over SPDY. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { calls, containerConfig, eventually, podConfig } from './conformance.ts';
import { startRuntime, type TestRuntime } from './processRuntime.ts';
import { openStreams } from './remoteClient.ts';

const HOST = 'actorlet.dev/host';
const COMMANDS = ['', 'channel.k8s.io', 'base64.channel.k8s.io', 'v4.channel.k8s.io', 'v4.base64.channel.k8s.io'];
const FORWARDS = ['', 'v4.channel.k8s.io', 'v4.base64.channel.k8s.io'];

let runtime: TestRuntime;
let c: ReturnType<typeof calls>;
let sandboxId = '';
let sleeper = '';
const pod = podConfig('channels');
beforeAll(async () => {
  runtime = await startRuntime();
  c = calls(runtime.cri);
  await c.call('PullImage', { image: { image: HOST } });
  pod.logDirectory = join(runtime.rootDir, 'logs');
  sandboxId = (await c.call('RunPodSandbox', { config: pod })).podSandboxId;
  sleeper = await c.run(pod, containerConfig('sleeper', HOST, { command: ['sleep', '1000'] }), sandboxId);
});
afterAll(async () => {
  await runtime.close();
});

/** A client that offers these, and speaks what the runtime chose. */
async function connect(url: string, offered: readonly string[]) {
  const m = /^http\+unix:\/\/([^/]+)(\/.*)$/.exec(url);
  const ws = new WebSocket(`ws+unix:${decodeURIComponent(m?.[1] ?? '')}:${m?.[2]}`, [...offered]);
  onTestFinished(() => ws.terminate());
  const channels = new Map<number, Buffer>();
  const kinds = new Set<string>();
  const order: number[] = [];
  let code: number | undefined;
  ws.on('close', (closed) => {
    code = closed;
  });
  ws.on('message', (raw: Buffer, isBinary) => {
    kinds.add(isBinary ? 'binary' : 'text');
    const channel = isBinary ? (raw[0] ?? -1) : (raw[0] ?? 0) - 48;
    const bytes = isBinary ? raw.subarray(1) : Buffer.from(raw.toString('latin1', 1), 'base64');
    order.push(channel);
    channels.set(channel, Buffer.concat([channels.get(channel) ?? Buffer.alloc(0), bytes]));
  });
  await new Promise((resolve, reject) => {
    ws.once('open', resolve);
    ws.once('error', reject);
    ws.once('unexpected-response', (_, res) => reject(new Error(`HTTP ${res.statusCode}`)));
  });
  const base64 = ws.protocol.includes('base64');
  return {
    ws,
    order,
    kinds,
    text: (channel: number) => channels.get(channel)?.toString() ?? '',
    bytes: (channel: number) => channels.get(channel) ?? Buffer.alloc(0),
    tell: (channel: number, data: string | Buffer) =>
      ws.send(base64 ? `${channel}${Buffer.from(data).toString('base64')}` : Buffer.concat([Buffer.of(channel), Buffer.from(data)])),
    closed: () => eventually('the runtime closes', () => code),
  };
}
const exec = async (cmd: string[], more: object = {}) =>
  (await c.call('Exec', { containerId: sleeper, cmd, tty: false, stdin: true, stdout: true, stderr: true, ...more })).url;
const offering = (protocol: string) => (protocol === '' ? [] : [protocol]);

describe.each(COMMANDS)('a command by WebSocket, protocol "%s"', (protocol) => {
  const isOld = !protocol.startsWith('v4.');

  it('has its input, both outputs and its exit code, byte for byte', async () => {
    const s = await connect(await exec(['sh', '-c', 'head -c 6; echo done >&2; exit 4']), offering(protocol));
    expect(s.ws.protocol).toBe(protocol);
    s.tell(0, '');
    s.tell(0, Buffer.from([0, 0xff, 0x80]));
    s.tell(0, 'abc');
    expect(await s.closed()).toBe(1000);
    expect([s.bytes(1), s.text(2)]).toEqual([Buffer.from([0, 0xff, 0x80, 97, 98, 99]), 'done\n']);
    const message = 'command terminated with non-zero exit code: 4';
    if (isOld) expect(s.text(3)).toBe(message);
    else {
      const details = { causes: [{ reason: 'ExitCode', message: '4' }] };
      expect(JSON.parse(s.text(3))).toEqual({ metadata: {}, status: 'Failure', message, reason: 'NonZeroExitCode', details });
    }
    // The first is an empty message: the connection stands. Nothing comes after the status.
    expect([s.order[0], s.order.at(-1)]).toEqual([1, 3]);
    expect([...s.kinds]).toEqual([protocol.includes('base64') ? 'text' : 'binary']);
  });

  it('says of success no more than its version does', async () => {
    const s = await connect(await exec(['true'], { stdin: false }), offering(protocol));
    await s.closed();
    expect(s.text(3)).toBe(isOld ? '' : '{"metadata":{},"status":"Success"}');
  });

  it('is killed when its client goes', async () => {
    const started = join(runtime.rootDir, `started-${protocol}`);
    const s = await connect(await exec(['sh', '-c', `echo $$ > '${started}'; echo up; exec sleep 1000`]), offering(protocol));
    await eventually('it runs', () => s.text(1) === 'up\n' || undefined);
    s.ws.close();
    const ended = async () => {
      const { stdout } = await c.call('ExecSync', {
        containerId: sleeper,
        cmd: ['sh', '-c', `kill -0 $(cat '${started}') 2>&1 || echo gone`],
        timeout: 5,
      });
      return Buffer.from(stdout).toString().includes('gone') || undefined;
    };
    await eventually('it has ended', ended);
  });
});

it('attaches by WebSocket, and passes on much output to a client that reads late', async () => {
  const go = join(runtime.rootDir, 'go');
  mkdirSync(runtime.rootDir, { recursive: true });
  const script = `until [ -e ${go} ]; do sleep 0.05; done; head -c 3000000 /dev/zero | tr '\\0' x; echo end >&2`;
  await c.run(pod, containerConfig('attached', HOST, { command: ['sh', '-c', script] }), sandboxId).then(async (containerId) => {
    const { url } = await c.call('Attach', { containerId, tty: false, stdin: false, stdout: true, stderr: true });
    const s = await connect(url, ['unknown.k8s.io', 'v4.base64.channel.k8s.io', 'v4.channel.k8s.io']);
    expect(s.ws.protocol).toBe('v4.base64.channel.k8s.io');
    s.ws.pause();
    writeFileSync(go, '');
    await c.exited(containerId);
    s.ws.resume();
    await s.closed();
    expect([s.bytes(1).length, s.text(2), JSON.parse(s.text(3))]).toEqual([3_000_000, 'end\n', { metadata: {}, status: 'Success' }]);
  });
});

describe.each(FORWARDS)('ports by WebSocket, protocol "%s"', (protocol) => {
  it('are a pair of channels each, which begin with the port', async () => {
    const server = createServer((socket) => socket.pipe(socket));
    onTestFinished(() => void server.close());
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
    );
    const { url } = await c.call('PortForward', { podSandboxId: sandboxId, port: [port, ...Array.from({ length: 60 }, () => 1)] });
    const s = await connect(url, offering(protocol));
    const label = (of: number) => Buffer.of(of & 0xff, of >> 8);
    s.tell(0, Buffer.from([1, 0, 0xff]));
    await eventually('it echoes', () => s.bytes(0).length === 5 || undefined);
    expect([s.bytes(0), s.bytes(1)]).toEqual([Buffer.concat([label(port), Buffer.from([1, 0, 0xff])]), label(port)]);
    await eventually('nobody listens at the other', () => s.text(3).includes('port 1 of the pod: connect ECONNREFUSED') || undefined);
    expect(s.bytes(2)).toEqual(label(1));
    if (!protocol.includes('base64'))
      await eventually('the last port has its channels, too', () => s.bytes(120).equals(label(1)) || undefined);
    s.ws.close();
    expect(await s.closed()).toBe(1005);
  });
});

it('refuses protocols that nobody knows and ones of another kind, and drops what is no base64', async () => {
  await expect(connect(await exec(['true']), ['v9.channel.k8s.io'])).rejects.toThrow('HTTP 403');
  const { url } = await c.call('PortForward', { podSandboxId: sandboxId, port: [1] });
  await expect(connect(url, ['channel.k8s.io'])).rejects.toThrow('HTTP 403');
  const s = await connect(await exec(['head', '-c', '6']), ['v4.base64.channel.k8s.io']);
  for (const message of ['0no base64!', '0QUI', '0QUJD\r\nREVG\n', '0====']) s.ws.send(message);
  expect([await s.closed(), s.text(1)]).toEqual([1000, 'ABCDEF']);
  const other = await connect(await exec(['head', '-c', '1']), ['v4.channel.k8s.io']);
  for (const message of [Buffer.alloc(0), Buffer.of(1, 1), Buffer.of(3, 1), Buffer.of(200, 1), Buffer.from('4no size\n')])
    other.ws.send(message);
  other.tell(0, 'x');
  await other.closed();
  expect(other.text(1)).toBe('x');
});

it.each(['v4', 'v3', 'v2', 'v1'])('speaks %s over SPDY', async (version) => {
  const protocol = version === 'v1' ? 'channel.k8s.io' : `${version}.channel.k8s.io`;
  const url = await exec(['sh', '-c', 'echo out; exit 3'], { stdin: false });
  const s = await openStreams(url, { names: ['error', 'stdout', 'stderr'], protocol });
  await s.closed;
  expect(s.text('stdout')).toBe('out\n');
  const message = 'command terminated with non-zero exit code: 3';
  if (version === 'v4') expect(JSON.parse(s.text('error'))).toMatchObject({ status: 'Failure', message });
  else expect(s.text('error')).toBe(message);
});
