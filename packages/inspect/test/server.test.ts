import { request } from 'node:http';
import { connect } from 'node:net';
import { pageLog } from '@actorlet/ctl/src/commands/recording/recordingUi.ts';
import { parseFlags } from '@actorlet/kubelet/boot/flags/parse.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { type HollowNode, hollowNode, manifest, until } from '../../../test/integration/hollowNode.ts';
import { type InspectorServer, serveInspector } from '../src/boot/server.ts';
import type { ServerFrame } from '../src/feed/frames.ts';
import { FRAMES_PER_SECOND_MAX, PageServer, REQUESTS_PER_SECOND_MAX } from '../src/server/pageServer.ts';

let h: HollowNode;
let server: InspectorServer;
let url = '';
let token = '';
let port = 0;

beforeAll(async () => {
  h = await hollowNode({ flags: { inspect: '127.0.0.1:0', faultInjection: true } });
  if (h.node.inspected === null) throw new Error('not inspected');
  server = await serveInspector(h.node.inspected, { at: '127.0.0.1:0' }, (page) => {
    ({ url, token } = page);
    port = Number(new URL(page.url).port);
  });
});
afterAll(async () => {
  server[Symbol.dispose]();
  await h[Symbol.asyncDispose]();
});

interface Asked {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: string;
}
function ask(o: Asked): Promise<{ status: number; body: string; headers: Record<string, unknown> }> {
  return new Promise((resolve, reject) => {
    // Each on a connection of its own.
    const where = { host: '127.0.0.1', port, path: o.path ?? '/', agent: false };
    const req = request({ ...where, method: o.method ?? 'GET', headers: o.headers ?? {} }, (res) => {
      let body = '';
      res.on('data', (chunk: Buffer) => {
        body += String(chunk);
      });
      res.on('end', () => resolve({ status: res.statusCode ?? 0, body, headers: res.headers }));
    });
    req.on('error', reject);
    req.end(o.body);
  });
}
function socket(path: string, headers: Record<string, string> = {}, frames: ServerFrame[] = []): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers });
    ws.on('message', (data) => frames.push(JSON.parse(String(data)) as ServerFrame));
    ws.on('open', () => resolve(ws));
    ws.on('error', reject);
  });
}
const kill = (path: string) =>
  JSON.stringify({
    apiVersion: 'actorlet.dev/v1alpha1',
    kind: 'FaultScenario',
    metadata: { name: 'page' },
    spec: { faults: [{ name: 'kill', kind: 'actor.kill', select: { actors: [path] } }] },
  });

describe('whom the inspection server answers', () => {
  it('refuses a request under any name but a loopback one (DNS rebinding)', async () => {
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example', '10.0.0.1']) {
      expect((await ask({ headers: { host }, path: '/api/figures' })).status, host).toBe(403);
    }
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, '[::1]:1']) {
      expect((await ask({ headers: { host }, path: '/api/figures' })).status, host).toBe(200);
    }
  });

  it('refuses pages of other origins, for requests and for WebSockets', async () => {
    const foreign = { origin: 'https://evil.example' };
    expect((await ask({ path: '/api/figures', headers: foreign })).status).toBe(403);
    for (const path of ['/feed', '/stately', '/classic']) {
      await expect(socket(path, foreign)).rejects.toThrow('403');
      await expect(socket(path, { host: 'evil.example' })).rejects.toThrow('403');
    }
    (await socket('/feed', { origin: url.slice(0, -1) })).terminate();
  });

  it('says a content security policy that lets no foreign or inline script run', async () => {
    const { headers } = await ask({});
    expect(headers['content-security-policy']).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['access-control-allow-origin']).toBeUndefined();
  });

  it('serves files of the page and nothing else, whatever a path looks like', async () => {
    for (const path of ['/../package.json', '/%2e%2e/package.json', '/assets/../../package.json', '//etc/passwd', '/assets/']) {
      expect((await ask({ path })).status, path).toBe(404);
    }
    expect((await ask({ method: 'PUT' })).status).toBe(405);
  });
});

describe('acting from the page', () => {
  const own = () => ({ origin: url.slice(0, -1), 'content-type': 'application/json' });
  const post = (headers: Record<string, string>, body: string) => ask({ method: 'POST', path: '/api/inject', headers, body });

  it('needs the token and an origin', async () => {
    expect((await post(own(), kill('node/runtime/pleg'))).status).toBe(403);
    expect((await post({ ...own(), 'x-actorlet-token': 'x'.repeat(token.length) }, kill('node/runtime/pleg'))).status).toBe(403);
    expect((await post({ 'x-actorlet-token': token }, kill('node/runtime/pleg'))).status).toBe(403);
    expect((await post({ ...own(), 'x-actorlet-token': token }, '{')).status).toBe(400);
    expect((await post({ ...own(), 'x-actorlet-token': token }, 'x'.repeat(10_000_000)).catch(() => ({ status: 413 }))).status).toBe(413);
  });

  it('kills an actor, which is seen in the feed', async () => {
    const frames: ServerFrame[] = [];
    const ws = await socket('/feed', {}, frames);
    await until('the snapshot', () => frames.some((f) => f.t === 'snapshot'));
    const answer = await post({ ...own(), 'x-actorlet-token': token }, kill('node/runtime/pleg'));
    expect(answer.body).toContain('"kill"');
    expect(answer.status).toBe(200);
    await until('its end', () =>
      frames.some((f) => f.t === 'delta' && f.events.some((e) => e.kind === 'child.exited' && e.path === 'node/runtime/pleg')),
    );
    ws.terminate();
  });

  it('gives logs to nobody without the token, and says what is missing', async () => {
    const path = '/api/logs?pod=none&container=app';
    expect((await ask({ path })).status).toBe(403);
    expect((await ask({ path, headers: { 'x-actorlet-token': 'x'.repeat(token.length) } })).body).toContain('actorctl ui');
    expect((await ask({ path, method: 'POST', headers: { 'x-actorlet-token': token } })).status).toBe(405);
    expect((await ask({ path, headers: { 'x-actorlet-token': token } })).status).toBe(404);
  });

  it('is not there at all without fault injection', async () => {
    await using other = await hollowNode({ flags: { inspect: '127.0.0.1:0' } });
    if (other.node.inspected === null) throw new Error('not inspected');
    let page = { url: '', token: '' };
    using quiet = await serveInspector(other.node.inspected, { at: '127.0.0.1:0' }, (p) => {
      page = p;
    });
    void quiet;
    const answer = await fetch(`${page.url}api/inject`, {
      method: 'POST',
      headers: { 'x-actorlet-token': page.token },
      body: kill('node/runtime/pleg'),
    });
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain('--actorlet-fault-injection');
  });
});

describe('acting on pods from the page', () => {
  const own = (at: string, more: Record<string, string> = {}) => ({
    ...{ origin: at.slice(0, -1), 'content-type': 'application/json' },
    ...more,
  });
  const post = async (at: string, act: string, o: { headers: Record<string, string>; body: string }) => {
    const answer = await fetch(`${at}api/pod/${act}`, { method: 'POST', ...o });
    return { status: answer.status, text: await answer.text() };
  };

  it('needs a flag of its own, the token, this origin and JSON', async () => {
    const off = await post(url, 'restart', { headers: own(url, { 'x-actorlet-token': token }), body: '{}' });
    expect([off.status, off.text]).toEqual([403, expect.stringContaining('--actorlet-inspect-actions')]);
    if (h.node.inspected === null) throw new Error('not inspected');
    let page = { url: '', token: '' };
    using acting = await serveInspector(h.node.inspected, { at: '127.0.0.1:0', pods: { kube: null } }, (p) => {
      page = p;
    });
    void acting;
    const good = own(page.url, { 'x-actorlet-token': page.token });
    const noToken = own(page.url);
    const noOrigin = { 'content-type': 'application/json', 'x-actorlet-token': page.token };
    const body = '{"uid":"none"}';
    const cases: [headers: Record<string, string>, body: string, status: number][] = [
      [noToken, body, 403],
      [own(page.url, { 'x-actorlet-token': token }), body, 403],
      [noOrigin, body, 403],
      [{ ...good, origin: 'http://127.0.0.1:1' }, body, 403],
      [{ ...good, 'content-type': 'text/plain' }, body, 415],
      [good, 'x'.repeat(5_000), 413],
      [good, '{', 400],
      [good, '{"uid":1}', 400],
      [good, '{"uid":"none","preview":"yes"}', 400],
      [good, body, 404],
    ];
    for (const act of ['restart', 'delete'])
      for (const [headers, text, status] of cases)
        expect((await post(page.url, act, { headers, body: text })).status, text.slice(0, 40)).toBe(status);
    expect((await post(page.url, 'evict', { headers: good, body })).status).toBe(404);
    expect((await fetch(`${page.url}api/pod/restart`)).status).toBe(405);
  });

  it('is told to the page, and to none that shows a recording', async () => {
    const hello = async (at: string) => {
      const frames: ServerFrame[] = [];
      const ws = new WebSocket(`${at.replace('http', 'ws')}feed`);
      ws.on('message', (data) => frames.push(JSON.parse(String(data)) as ServerFrame));
      await until('it says hello', () => frames.some((f) => f.t === 'hello'));
      ws.terminate();
      return frames.find((f) => f.t === 'hello');
    };
    expect(await hello(url)).not.toHaveProperty('actsOnPods');
    if (h.node.inspected === null) throw new Error('not inspected');
    let at = '';
    using acting = await serveInspector(h.node.inspected, { at: '127.0.0.1:0', pods: { kube: null } }, (p) => {
      at = p.url;
    });
    void acting;
    expect(await hello(at)).toMatchObject({ actsOnPods: true });
  });
});

describe('hostile viewers', () => {
  it('are counted and dropped: broken frames, large frames, a handshake that is none', async () => {
    const ws = await socket('/feed');
    const before = server.hub.figures.malformed;
    ws.send('nonsense');
    ws.send(Buffer.from([1, 2, 3]));
    await until('counted', () => server.hub.figures.malformed === before + 2);
    const closed = new Promise((resolve) => ws.on('close', resolve));
    ws.send('x'.repeat(1_000_000));
    await closed;
    await new Promise<void>((done) => {
      const raw = connect(port, '127.0.0.1', () =>
        raw.write('GET /feed HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n'),
      );
      raw.on('close', () => done());
      raw.on('error', () => done());
      raw.resume();
    });
    expect((await ask({ path: '/api/figures' })).status).toBe(200);
  });

  it('are let go when they send more than a person could, frames or pings', async () => {
    const figures = async () =>
      (JSON.parse((await ask({ path: '/api/figures' })).body) as { server: { viewersLetGo: number } }).server.viewersLetGo;
    const before = await figures();
    const open = () => expect.poll(() => figures().catch(() => -1)).toBeGreaterThanOrEqual(before);
    for (const [n, send] of [(ws: WebSocket) => ws.send('{"t":"watch"}'), (ws: WebSocket) => ws.ping('x')].entries()) {
      const ws = await socket('/feed');
      ws.on('error', () => undefined);
      const closed = new Promise((resolve) => ws.on('close', resolve));
      for (let i = 0; i <= FRAMES_PER_SECOND_MAX; i++) send(ws);
      await closed;
      // For a while nobody new is let in: reading what would be sent costs more than cutting the connection.
      await expect(socket('/feed')).rejects.toThrow();
      await open();
      expect(await figures()).toBe(before + n + 1);
    }
    const ws = await socket('/feed');
    const pong = new Promise((resolve) => ws.on('pong', (data) => resolve(String(data))));
    ws.ping('well');
    expect(await pong).toBe('well');
    ws.terminate();
    await until('they are forgotten', () => server.hub.figures.viewers === 0);
  });

  it('are cut off when they ask more than a browser does, and others are answered some seconds later', async () => {
    const refused = async () =>
      (JSON.parse((await ask({ path: '/api/figures' })).body) as { server: { requestsRefused: number } }).server.requestsRefused;
    const one = 'GET /api/figures HTTP/1.1\r\nhost: localhost\r\n\r\n';
    const raw = connect(port, '127.0.0.1', () => raw.write(one.repeat(2 * REQUESTS_PER_SECOND_MAX)));
    raw.resume();
    raw.on('error', () => undefined);
    await new Promise<void>((done) => raw.on('close', () => done()));
    await expect.poll(() => refused().catch(() => 0)).toBeGreaterThan(0);
  });

  it('do not slow the node when they never read', async () => {
    const raw = connect(port, '127.0.0.1');
    await new Promise<void>((open) => raw.on('connect', () => open()));
    raw.write(
      'GET /feed HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    raw.pause();
    h.write('web.json', manifest('web'));
    await until('web runs', () => h.status('web')?.status.phase === 'Running');
    raw.destroy();
    await until('it is forgotten', () => server.hub.figures.viewers === 0);
  });
});

describe('--actorlet-inspect', () => {
  const read = (arg: string) => {
    const parsed = parseFlags([arg], { cwd: '/' });
    return parsed.errors.length > 0 ? parsed.errors.join() : parsed.given.get('actorlet-inspect')?.value;
  };
  it('takes a loopback address, or nothing for the default one', () => {
    expect(read('--actorlet-inspect')).toBe('127.0.0.1:10260');
    expect(read('--actorlet-inspect=false')).toBe('');
    expect(read('--actorlet-inspect=8123')).toBe('127.0.0.1:8123');
    expect(read('--actorlet-inspect=localhost:0')).toBe('localhost:0');
    expect(read('--actorlet-inspect=[::1]:99')).toBe('[::1]:99');
  });
  it('refuses every other address', () => {
    for (const bad of ['0.0.0.0:1', '192.0.2.1:80', ':80', 'example:80', '127.0.0.1:99999', '127.0.0.1']) {
      expect(read(`--actorlet-inspect=${bad}`), bad).toContain('is not a loopback address with a port');
    }
  });
});

it('says where it listens that its page was not built, and what to run', async () => {
  const told: string[] = [];
  using unbuilt = new PageServer({ log: pageLog({ err: (text) => told.push(text) }), targets: {} }, new Map());
  let at = '';
  await unbuilt.listen({ host: '127.0.0.1', port: 0, flag: '--port' }, (listens) => {
    at = listens;
  });
  expect(told).toEqual(['inspection page: it was not built, so its address answers 503. Run: npm run build\n']);
  expect((await fetch(at)).status).toBe(503);
});
