/** WebSocket of kubectl at the node's port, SPDY of the runtime behind it: real sockets, a runtime of these tests. */
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { data } from '@actorlet/process/src/spdy.ts';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { translate } from '../../../src/boot/dependencies/net/netWebSocket.ts';
import type { Translation } from '../../../src/ports/sockets/net.ts';
import { type Channels, channels as channelsOver } from '../../cluster/webSocket.ts';
import { until } from '../harness.ts';
import { type Command, failure, spdyRuntime, success } from '../spdyRuntime.ts';

const V5 = 'v5.channel.k8s.io';
const enders: (() => void)[] = [];
afterEach(() => {
  for (const end of enders.splice(0).reverse()) end();
});

/** A port at which every upgrade is translated. */
async function serve(url: string, how: Translation): Promise<string> {
  const ending = new AbortController();
  const server = createServer();
  server.on('upgrade', (req, socket, head) => void translate(url, how, { req, socket, head, signal: ending.signal }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  enders.push(() => {
    ending.abort();
    server.close();
  });
  return `ws://127.0.0.1:${(server.address() as AddressInfo).port}/exec`;
}
const channels = (streams: Partial<Extract<Translation, { kind: 'channels' }>['streams']> = {}): Translation => ({
  kind: 'channels',
  streams: { stdin: false, stdout: true, stderr: true, tty: false, ...streams },
});

/** A client, with what it heard by channel. */
function connect(url: string, protocols: string | string[] = V5) {
  const ws = new WebSocket(url, protocols);
  const heard: Buffer[] = [];
  const ended = { code: 0, refusal: '' };
  ws.on('message', (m) => void heard.push(Buffer.from(m as Buffer)));
  ws.on('close', (code) => {
    ended.code = code;
  });
  ws.on('error', (error) => {
    ended.refusal = error.message;
  });
  enders.push(() => ws.terminate());
  const text = (channel: number) => Buffer.concat(heard.filter((m) => m[0] === channel).map((m) => m.subarray(1))).toString();
  const open = () => until(() => ws.readyState === WebSocket.OPEN || ended.refusal !== '');
  const closed = () => until(() => ended.code !== 0 || ended.refusal !== '');
  const status = () => JSON.parse(text(3)) as Record<string, unknown>;
  return {
    ws,
    heard,
    ended,
    text,
    open,
    closed,
    status,
    send: (channel: number, s: string) => ws.send(Buffer.concat([Buffer.of(channel), Buffer.from(s)])),
  };
}
const runtime = (streams: number, run: (c: Command) => void) => spdyRuntime({ streams, serve: run, enders });

describe('a command over WebSocket', () => {
  it('begins with an empty message, has its outputs apart, and ends with the status of the runtime', async () => {
    const r = await runtime(3, (c) => {
      c.write('stdout', 'hello\n');
      c.write('stderr', 'oops\n');
      c.end(failure(7));
    });
    const client = connect(await serve(r.url, channels()));
    await client.closed();
    expect(client.ws.protocol).toBe(V5);
    expect(client.heard[0]).toEqual(Buffer.of(1));
    expect([client.text(1), client.text(2), client.ended.code]).toEqual(['hello\n', 'oops\n', 1000]);
    expect(client.status()).toEqual(failure(7));
  });

  it('takes input that came before the runtime answered, its end, and sizes of the terminal', async () => {
    const r = await runtime(4, () => {});
    const client = connect(await serve(r.url, channels({ stdin: true, stderr: false, tty: true })));
    await client.open();
    client.send(0, 'typed ');
    client.send(4, '{"Width":80,"Height":24}\n');
    client.send(0, 'more');
    client.send(9, 'no such channel');
    client.ws.send(Buffer.of(255, 0));
    await until(() => r.commands[0]?.inputEnded === true);
    const [c] = r.commands;
    expect([c?.input, c?.sizes]).toEqual(['typed more', [{ Width: 80, Height: 24 }]]);
    c?.end(success);
    await client.closed();
    expect(client.status()).toEqual(success);
  });

  it.each([[[255]], [[255, 0, 0]], [[255, 5]]])(
    'is over where the client ends a stream with %o, which is no such message',
    async (message) => {
      const r = await runtime(4, () => {});
      const client = connect(await serve(r.url, channels({ stdin: true })));
      await until(() => (r.commands[0]?.streams.size ?? 0) === 4);
      client.ws.send(Buffer.from(message));
      client.send(0, 'more');
      await client.closed();
      await until(() => r.commands[0]?.gone === true);
      expect([client.ended.code, client.text(3), r.commands[0]?.input]).toEqual([1000, '', '']);
    },
  );

  it('ends at the runtime when the client goes', async () => {
    const r = await runtime(3, () => {});
    const client = connect(await serve(r.url, channels()));
    await until(() => (r.commands[0]?.streams.size ?? 0) === 3);
    client.ws.terminate();
    await until(() => r.commands[0]?.gone === true);
  });

  it.each([
    ['does not know the token', (url: string) => url.replace('/tok', '/other'), 'unable to upgrade connection: not you'],
    ['is not there', () => 'http://127.0.0.1:1/exec/tok', 'connect ECONNREFUSED 127.0.0.1:1'],
  ])('says so in its status where the runtime %s', async (_, at, why) => {
    const r = await runtime(3, () => {});
    const client = connect(await serve(at(r.url), channels()));
    await client.closed();
    const message = `Internal error occurred: ${why}`;
    expect(client.status()).toMatchObject({ status: 'Failure', reason: 'InternalError', code: 500, message });
  });

  it('says so in its status where the connection to the runtime breaks', async () => {
    const r = await runtime(3, (c) => void c.socket.destroy());
    const client = connect(await serve(r.url, channels()));
    await client.closed();
    expect(client.status()).toMatchObject({ message: 'Internal error occurred: the connection ended before the command did' });
  });

  it('holds little of an output that the client does not read', async () => {
    const chunk = Buffer.alloc(64 * 1024, 'x');
    let sent = 0;
    const r = await runtime(3, (c) => {
      const pump = (): void => {
        while (sent < 64 * 1024 * 1024) {
          sent += chunk.length;
          if (!c.socket.write(data(c.streams.get('stdout') ?? 0, chunk))) return void c.socket.once('drain', pump);
        }
        c.end(success);
      };
      pump();
    });
    const client = connect(await serve(r.url, channels()));
    await client.open();
    client.ws.pause();
    let before = -1;
    // The kernel's buffers fill, then nothing moves.
    await until(() => {
      const still = sent > 0 && sent === before;
      before = sent;
      return still;
    });
    expect(sent).toBeLessThan(32 * 1024 * 1024);
    client.ws.resume();
    await until(() => client.ended.code !== 0);
    expect(client.text(1)).toHaveLength(sent);
    expect(client.status()).toEqual(success);
  });
});

describe('a port over WebSocket', () => {
  /** Switches to SPDY, and answers in capitals. */
  async function forwarder(answer: (asked: string | string[] | undefined) => string) {
    const open: Duplex[] = [];
    const server = createServer((_req, res) => res.writeHead(400).end('no'));
    server.on('upgrade', (req, socket: Duplex) => {
      open.push(socket);
      socket.on('error', () => undefined);
      socket.write(answer(req.headers['x-stream-protocol-version']));
      socket.on('data', (d: Buffer) => void socket.write(d.toString().toUpperCase()));
      socket.once('end', () => socket.end());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    enders.push(() => {
      for (const socket of open) socket.destroy();
      server.close();
    });
    return { open, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/portforward/tok` };
  }
  const TUNNEL: Translation = { kind: 'tunnel', protocols: ['portforward.k8s.io'] };
  const SWITCH =
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n';

  const NAME = 'SPDY/3.1+portforward.k8s.io';
  /** The library for clients takes no protocol with a slash. */
  const tunnelTo = (url: string) =>
    new Promise<{ named: string | undefined; tunnel: Channels }>((resolve, reject) => {
      const headers = {
        ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-protocol': NAME },
        'sec-websocket-key': Buffer.alloc(16).toString('base64'),
      };
      const req = request(url.replace('ws:', 'http:'), { headers });
      req.once('response', (res) => reject(new Error(String(res.statusCode))));
      req.once('upgrade', (res, socket, head) =>
        resolve({ named: res.headers['sec-websocket-protocol'], tunnel: channelsOver(socket, head) }),
      );
      req.once('error', reject);
      req.end();
    });

  it('carries frames of SPDY both ways, by the protocol that the runtime chose, and ends on both sides', async () => {
    const asked: unknown[] = [];
    const f = await forwarder((protocols) => {
      asked.push(protocols);
      return `${SWITCH}early `;
    });
    const { named, tunnel } = await tunnelTo(await serve(f.url, TUNNEL));
    expect([asked, named]).toEqual([['portforward.k8s.io'], NAME]);
    const heard = () => Buffer.concat(tunnel.frames.map(({ channel, bytes }) => Buffer.concat([Buffer.of(channel), bytes]))).toString();
    tunnel.send('f'.charCodeAt(0), 'rames');
    await until(() => heard() === 'early FRAMES');
    tunnel.close();
    await until(() => f.open[0]?.closed === true);
  });

  it('passes a refusal of the runtime on', async () => {
    const f = await forwarder(() => 'HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nlate');
    await expect(tunnelTo(await serve(f.url, TUNNEL))).rejects.toThrow('403');
  });
});

it('a request that is no WebSocket after all is refused', async () => {
  const r = await runtime(3, () => {});
  const url = (await serve(r.url, channels())).replace('ws:', 'http:');
  const status = await new Promise<number | undefined>((resolve) => {
    const req = request(url, { headers: { connection: 'Upgrade', upgrade: 'websocket' } }, (res) => {
      res.resume();
      resolve(res.statusCode);
    });
    req.end();
  });
  expect(status).toBe(400);
});
