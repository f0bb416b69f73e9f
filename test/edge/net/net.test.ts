/** The real Net port over loopback and unix sockets. */
import { existsSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer as createRaw } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createNet } from '../../../src/boot/dependencies/net/net.ts';
import type { HttpReply, HttpRequest } from '../../../src/ports/sockets/net.ts';
import { askHttps } from '../../askHttps.ts';
import { until } from '../harness.ts';

const net = createNet();
async function serve(handler: (req: HttpRequest) => Promise<HttpReply>, port = 0) {
  const server = await net.serveHttp({ host: '127.0.0.1', port }, handler);
  onTestFinished(() => server.close());
  return { ...server, url: `http://${server.address}`, port: Number(server.address.split(':')[1]) };
}
function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-net-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
const get = (
  url: string,
  more: Partial<{ headers: Record<string, string[]>; timeoutMs: number; bytesMax: number; signal: AbortSignal }> = {},
) => net.httpGet(url, { headers: {}, timeoutMs: 30_000, bytesMax: 1000, signal: new AbortController().signal, ...more });
const ok = async (): Promise<HttpReply> => ({ status: 200, body: 'ok' });
const overSocket = async (socketPath: string, path = '/'): Promise<string> => (await askHttps({ socketPath, path })).body;

describe('serving on TCP', () => {
  it('hands the handler the decoded path, the query, the headers and the body', async () => {
    const seen: HttpRequest[] = [];
    const s = await serve(async (req) => {
      seen.push(req);
      return { status: 201, headers: { 'X-Mine': '1' }, body: 'made' };
    });
    const res = await fetch(`${s.url}/a%20b?x=1&x=2`, { method: 'POST', body: 'hello', headers: { 'X-In': 'in' } });
    expect([res.status, res.headers.get('x-mine'), res.headers.get('x-content-type-options'), await res.text()]).toEqual([
      201,
      '1',
      'nosniff',
      'made',
    ]);
    const req = seen[0];
    expect([req?.method, req?.path, req?.query.getAll('x'), req?.headers['x-in'], new TextDecoder().decode(req?.body)]).toEqual([
      'POST',
      '/a b',
      ['1', '2'],
      'in',
      'hello',
    ]);
  });
  it('names address and port when the port is taken', async () => {
    const s = await serve(ok);
    await expect(net.serveHttp({ host: '127.0.0.1', port: s.port }, ok)).rejects.toMatchObject({
      code: 'EADDRINUSE',
      message: `cannot listen on 127.0.0.1:${s.port}: the address is already in use`,
    });
  });
  const hasIpv6 = Object.values(networkInterfaces()).some((of) => of?.some(({ address }) => address === '::1'));
  it.runIf(hasIpv6)('answers on every address of IPv4 and IPv6 at 0.0.0.0, as in Go', async () => {
    const s = await net.serveHttp({ host: '0.0.0.0', port: 0 }, async ({ peer = '' }) => ({ status: 200, body: peer }));
    onTestFinished(() => s.close());
    const port = s.address.split(':').at(-1);
    expect(await (await fetch(`http://127.0.0.1:${port}`)).text()).toBe('127.0.0.1');
    expect(await (await fetch(`http://[::1]:${port}`)).text()).toBe('0:0:0:0');
  });
  it('frees the port when closed, even while a client holds an answer open', async () => {
    let aborted = false;
    const s = await net.serveHttp({ host: '127.0.0.1', port: 0 }, async (req) => ({
      status: 200,
      body: (async function* () {
        yield 'first';
        await new Promise<void>((resolve) => req.signal.addEventListener('abort', () => resolve()));
        aborted = true;
      })(),
    }));
    const res = await fetch(`http://${s.address}/`);
    expect(res.status).toBe(200);
    await Promise.all([s.close(), res.text().catch(() => 'cut')]);
    expect(aborted).toBe(true);
    await expect(get(`http://${s.address}/`)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
  it('aborts the request when the client goes away', async () => {
    let gone = false;
    const s = await serve(async (req) => {
      req.signal.addEventListener('abort', () => {
        gone = true;
      });
      return {
        status: 200,
        body: (async function* () {
          yield 'x';
          await new Promise<void>((resolve) => req.signal.addEventListener('abort', () => resolve()));
        })(),
      };
    });
    const client = new AbortController();
    const res = await fetch(s.url, { signal: client.signal });
    client.abort();
    await res.text().catch(() => undefined);
    await until(() => gone);
  });
  it('answers 500 with the reason when a handler throws, and goes on serving', async () => {
    let n = 0;
    const s = await serve(async () => {
      if (n++ === 0) throw new Error('bad day');
      return { status: 200, body: 'better' };
    });
    const bad = await fetch(s.url);
    expect([bad.status, await bad.text()]).toEqual([500, 'internal server error: bad day\n']);
    expect(await (await fetch(s.url)).text()).toBe('better');
  });
  it('refuses a path that does not decode with 400 and a body over the limit with 413', async () => {
    const s = await serve(ok);
    expect((await fetch(`${s.url}/%zz`)).status).toBe(400);
    const big = await fetch(s.url, { method: 'POST', body: new Uint8Array(5 * 1024 * 1024) }).catch((e: Error) => e);
    // The connection may be cut while the client still sends; what must not happen is a 200.
    if (!(big instanceof Error)) expect(big.status).toBe(413);
    expect((await fetch(s.url)).status).toBe(200);
  });
});

describe('serving on a unix socket', () => {
  it('makes the parent directory private and the socket as private as asked', async () => {
    const path = join(tempDir(), 'new', 'a.sock');
    const s = await net.serveHttp({ socketPath: path, mode: 0o600 }, ok);
    onTestFinished(() => s.close());
    expect([statSync(path).mode & 0o777, statSync(join(path, '..')).mode & 0o777, s.address]).toEqual([0o600, 0o700, path]);
    expect(await overSocket(path)).toBe('ok');
    await s.close();
    expect(existsSync(path)).toBe(false);
  });
  it('replaces a socket that nobody answers on', async () => {
    const path = join(tempDir(), 'a.sock');
    // A socket file whose listener is gone: moved away so that closing does not remove it, then moved back.
    const dead = createRaw();
    await new Promise<void>((resolve) => dead.listen(path, resolve));
    renameSync(path, `${path}.kept`);
    await new Promise<void>((resolve) => dead.close(() => resolve()));
    renameSync(`${path}.kept`, path);
    const s = await net.serveHttp({ socketPath: path, mode: 0o600 }, ok);
    onTestFinished(() => s.close());
    expect(await overSocket(path)).toBe('ok');
  });
  it('leaves a living server alone and says that another process listens', async () => {
    const path = join(tempDir(), 'a.sock');
    const first = await net.serveHttp({ socketPath: path, mode: 0o600 }, async () => ({ status: 200, body: 'first' }));
    onTestFinished(() => first.close());
    await expect(net.serveHttp({ socketPath: path, mode: 0o600 }, ok)).rejects.toThrow(
      `cannot listen on ${path}: another process is listening on it`,
    );
    expect(await overSocket(path)).toBe('first');
  });
  it('never removes a file that is no socket', async () => {
    const path = join(tempDir(), 'precious');
    writeFileSync(path, 'data');
    await expect(net.serveHttp({ socketPath: path, mode: 0o600 }, ok)).rejects.toThrow(/no socket is in the way/);
    expect(existsSync(path)).toBe(true);
  });
  it('says so when the path is longer than a socket address holds', async () => {
    const path = join(tempDir(), 'x'.repeat(100));
    await expect(net.serveHttp({ socketPath: path, mode: 0o600 }, ok)).rejects.toMatchObject({ code: 'ENAMETOOLONG' });
  });
});

describe('GET', () => {
  it('follows redirects, and does not send credentials on to another host', async () => {
    const seen: Record<string, string>[] = [];
    const target = await serve(async (req) => {
      seen.push(req.headers);
      return { status: 200, body: 'there' };
    });
    const s = await serve(async (req) =>
      req.path === '/a'
        ? { status: 302, headers: { location: '/b' }, body: '' }
        : { status: 307, headers: { location: target.url }, body: '' },
    );
    const res = await get(`${s.url}/a`, { headers: { Authorization: ['secret'], 'X-Keep': ['1'] } });
    expect([res.status, new TextDecoder().decode(res.body)]).toEqual([200, 'there']);
    expect([seen[0]?.authorization, seen[0]?.['x-keep']]).toEqual([undefined, '1']);
  });
  it('gives up on a redirect loop', async () => {
    const s = await serve(async () => ({ status: 302, headers: { location: '/' }, body: '' }));
    await expect(get(s.url)).rejects.toMatchObject({ code: 'ELOOP' });
  });
  it('cuts an answer that is too large', async () => {
    const s = await serve(async () => ({ status: 200, body: 'x'.repeat(2000) }));
    await expect(get(s.url)).rejects.toMatchObject({ code: 'EFBIG', message: `GET ${s.url}/: answer is larger than 1000 bytes` });
  });
  it('ends at its deadline even when the answer trickles in', async () => {
    const s = await serve(async (req) => ({
      status: 200,
      body: (async function* () {
        while (!req.signal.aborted) {
          yield '.';
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      })(),
    }));
    await expect(get(s.url, { timeoutMs: 80 })).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  });
  it('takes a switch of protocols that it did not ask for as an answer', async () => {
    const raw = createRaw((socket) => void socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'));
    await new Promise<void>((resolve) => raw.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void raw.close());
    const { port } = raw.address() as AddressInfo;
    expect(await get(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 101 });
  });
  it('ends when its signal is aborted', async () => {
    const s = await serve(
      (req) => new Promise((resolve) => req.signal.addEventListener('abort', () => resolve({ status: 200, body: '' }))),
    );
    const c = new AbortController();
    const pending = get(s.url, { signal: c.signal });
    c.abort();
    await expect(pending).rejects.toMatchObject({ code: 'ABORT_ERR' });
  });
  it('names the URL without its credentials when nobody answers', async () => {
    const s = await serve(ok);
    await s.close();
    await expect(get(`http://user:pw@127.0.0.1:${s.port}/x?token=1`)).rejects.toThrow(
      new RegExp(`^GET http://127.0.0.1:${s.port}/x: .*ECONNREFUSED`),
    );
    await expect(get('ftp://x/')).rejects.toMatchObject({ code: 'ERR_INVALID_URL' });
  });
});
