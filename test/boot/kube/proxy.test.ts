/** The way to the API server through an HTTP proxy: a real one on loopback, with watches; and who goes around it. */
import { createServer as createHttp, type Server } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { createKubeApi } from '../../../src/boot/dependencies/kube/kubeApi.ts';
import { parseKubeConfig } from '../../../src/boot/dependencies/kube/kubeconfig.ts';
import { proxyOf } from '../../../src/boot/dependencies/net/proxy.ts';
import type { KubeApi, KubeCallOptions } from '../../../src/ports/kube.ts';
import { collectingLogger, type LogLine } from '../../supervision/fakePorts.ts';
import { issue } from './certs.ts';

const ca = issue({ cn: 'test-ca', issuer: null });
const serving = issue({ cn: 'api', issuer: ca, dns: ['api.example.com'] });
const server = createServer({ cert: serving.cert, key: serving.key }, (req, res) => {
  if (req.url?.includes('watch=true') !== true) return void res.setHeader('content-type', 'application/json').end('{"ok":true}');
  res.write('{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n');
});
/** Leads every name to the server of this test. */
let asked: { to: string; as: string }[] = [];
let refuse: number | null = null;
let proxy: Server;
const made: KubeApi[] = [];
const lines: LogLine[] = [];

const portOf = (of: { address(): unknown }): number => (of.address() as AddressInfo).port;
const listening = (of: Server) => new Promise<void>((resolve) => void of.listen(0, '127.0.0.1', () => resolve()));
beforeAll(async () => {
  await listening(server);
  proxy = createHttp();
  proxy.on('connect', (req, socket) => {
    asked.push({ to: req.url ?? '', as: req.headers['proxy-authorization'] ?? '' });
    if (refuse !== null) return void socket.end(`HTTP/1.1 ${refuse} No\r\n\r\n`);
    const way = connect(portOf(server), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.pipe(way).pipe(socket);
    });
    for (const end of [way, socket]) end.on('error', () => void [way.destroy(), socket.destroy()]);
  });
  await listening(proxy);
});
afterEach(() => {
  for (const api of made.splice(0)) api.close();
  asked = [];
  refuse = null;
  lines.length = 0;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  proxy.close();
});

const call = (o: Partial<KubeCallOptions> = {}): KubeCallOptions => ({ signal: new AbortController().signal, timeoutMs: 10_000, ...o });
function api(cluster: object, env: Record<string, string> = {}): KubeApi {
  const config = {
    clusters: [{ name: 'c', cluster: { 'certificate-authority-data': Buffer.from(ca.cert).toString('base64'), ...cluster } }],
    contexts: [{ name: 'x', context: { cluster: 'c' } }],
    'current-context': 'x',
  };
  const limits = { kube: { qps: 0, burst: 0 }, event: { qps: 0, burst: 0 } };
  const log = collectingLogger(lines);
  const it = createKubeApi({
    config: parseKubeConfig(JSON.stringify(config), '/k'),
    clock: createClock(),
    log,
    userAgent: 't',
    env,
    ...limits,
  });
  made.push(it);
  return it;
}
const NAMED = 'https://api.example.com:6443';
const OK = { ok: true, code: 200, body: { ok: true } };

describe('an API server behind a proxy', () => {
  it('is asked, and watched, through the one that the kubeconfig names; who asks is said', async () => {
    const it = api({ server: NAMED, 'proxy-url': `http://me:p%40ss@127.0.0.1:${portOf(proxy)}` });
    expect(await it.request({ verb: 'GET', path: '/api' }, call())).toEqual(OK);
    const basic = `Basic ${Buffer.from('me:p@ss').toString('base64')}`;
    expect(asked).toEqual([{ to: 'api.example.com:6443', as: basic }]);
    // The connection is kept.
    expect(await it.request({ verb: 'GET', path: '/api' }, call())).toEqual(OK);
    expect(asked).toHaveLength(1);
    const abort = new AbortController();
    const watch = await it.watch({ path: '/api/v1/pods' }, call({ signal: abort.signal }));
    if (!watch.ok) throw new Error(watch.failure.message);
    for await (const line of watch.lines) {
      expect(line).toContain('"name":"a"');
      break;
    }
    abort.abort();
  });

  it('is asked through the one of the environment', async () => {
    const it = api({ server: NAMED }, { HTTPS_PROXY: `127.0.0.1:${portOf(proxy)}` });
    expect(await it.request({ verb: 'GET', path: '/api' }, call())).toEqual(OK);
    expect(asked).toEqual([{ to: 'api.example.com:6443', as: '' }]);
  });

  it('that says no, or is not there, is named without its password', async () => {
    refuse = 407;
    const url = `http://me:secret@127.0.0.1:${portOf(proxy)}`;
    const said = await api({ server: NAMED, 'proxy-url': url }).request({ verb: 'GET', path: '/api' }, call());
    expect(said).toMatchObject({
      ok: false,
      failure: { message: expect.stringContaining(`through the proxy http://127.0.0.1:${portOf(proxy)}`) },
    });
    expect(JSON.stringify(said)).toContain('407');
    expect(JSON.stringify(said)).not.toContain('secret');
    const gone = await api({ server: NAMED, 'proxy-url': 'http://127.0.0.1:1' }).request({ verb: 'GET', path: '/api' }, call());
    expect(gone).toMatchObject({ ok: false, failure: { message: expect.stringContaining('through the proxy http://127.0.0.1:1') } });
  });

  it('must prove who it is all the same, except where the kubeconfig does not want it', async () => {
    const way = { server: 'https://other.example.com', 'proxy-url': `http://127.0.0.1:${portOf(proxy)}` };
    expect((await api(way).request({ verb: 'GET', path: '/api' }, call())).ok).toBe(false);
    expect(await api({ ...way, 'tls-server-name': 'api.example.com' }).request({ verb: 'GET', path: '/api' }, call())).toEqual(OK);
    const blind = api({ ...way, 'certificate-authority-data': '', 'insecure-skip-tls-verify': true });
    expect(await blind.request({ verb: 'GET', path: '/api' }, call())).toEqual(OK);
    expect(lines.map((line) => line.msg)).toContainEqual(expect.stringContaining('insecure-skip-tls-verify'));
  });
});

describe('the environment', () => {
  const through = (server: string, NO_PROXY: string) => proxyOf(new URL(server), null, { HTTPS_PROXY: 'http://p', NO_PROXY }) !== null;

  it.each([
    ['https://api.example.com', '', true],
    ['https://localhost:6443', '', false],
    ['https://127.0.0.2', '', false],
    ['https://[::1]', '', false],
    ['https://api.example.com', '*', false],
    ['https://api.example.com', 'example.com', false],
    ['https://example.com', 'example.com', false],
    ['https://example.com', '.example.com', true],
    ['https://api.example.com', ' .Example.com ,x', false],
    ['https://api.example.com', '*.example.com', false],
    ['https://badexample.com', 'example.com', true],
    ['https://api.example.com:6443', 'api.example.com:6443', false],
    ['https://api.example.com', 'api.example.com:6443', true],
    ['https://api.example.com', 'api.example.com:443', false],
    ['https://10.1.2.3', '10.0.0.0/8', false],
    ['https://10.1.2.3', '10.1.2.3', false],
    ['https://10.1.2.3', '11.0.0.0/8,10.0.0.0/99', true],
    ['https://[fd00::1]', 'fd00::/8', false],
    ['https://[fd00::1]', 'fd00::1', false],
    ['https://[fd00::1]:6443', '[fd00::1]:6443', false],
  ])('%s with NO_PROXY %j: %s', (server, without, is) => {
    expect(through(server, without)).toBe(is);
  });

  it('counts for nothing where the kubeconfig names a proxy, and must be a URL', () => {
    const named = new URL('http://q');
    expect(proxyOf(new URL('https://127.0.0.1'), named, { NO_PROXY: '*' })).toBe(named);
    expect(proxyOf(new URL(NAMED), null, { https_proxy: 'p:3128' })?.href).toBe('http://p:3128/');
    expect(proxyOf(new URL(NAMED), null, { HTTP_PROXY: 'http://p' })).toBeNull();
    expect(() => proxyOf(new URL(NAMED), null, { HTTPS_PROXY: 'socks5://me:secret@p' })).toThrow(/^HTTPS_PROXY is not the URL/);
  });
});
