/** The proxy in front of the API server of this process: what its clients meet, by HTTP/1.1 and by HTTP/2. */
import { connect as connectHttp2, constants } from 'node:http2';
import { request } from 'node:https';
import { connect as connectTls } from 'node:tls';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import { selfSignedCertificate } from '@actorlet/kubelet/boot/process/selfSigned.ts';
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest';
import { type EmbeddedApi, startEmbeddedApi } from '../../src/boot/embedded/server.ts';
import { type ClientProxy, startProxy } from '../../src/boot/proxy/proxy.ts';
import { quietLog } from '../../src/boot/world.ts';
import { type ApiFaultName, apiFault } from '../../src/spec/apiFaults.ts';

const clock = createClock();
let api: EmbeddedApi;
let proxy: ClientProxy;
let count = 0;
const names: string[] = [];

beforeAll(async () => {
  api = await startEmbeddedApi(clock, 1);
  const kubeconfig = { path: 'kubeconfig', text: api.kubeconfig };
  proxy = await startProxy({ kubeconfig, admin: api.admin, clock, log: quietLog, seed: 1, port: 0, onFault: () => {} });
});
afterEach(() => {
  for (const name of names.splice(0)) proxy.heal(name);
});
afterAll(async () => {
  await proxy.close();
  await api.close();
});

async function inject(fault: ApiFaultName, o: Partial<Parameters<typeof apiFault>[1]> = {}): Promise<string> {
  const name = `${fault}-${++count}`;
  names.push(name);
  await proxy.inject(name, apiFault(fault, o));
  return name;
}

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: {
    kind?: string;
    reason?: string;
    metadata?: { name?: string; resourceVersion: string };
    data?: Record<string, string>;
    items?: Answer['body'][];
  };
}
interface Asked {
  agent?: string;
  body?: object;
}
type Ask = (method: string, path: string, o?: Asked) => Promise<Answer>;
const access = () => {
  const config = JSON.parse(proxy.kubeconfig) as {
    clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
    users: { user: { token: string } }[];
  };
  const ca = Buffer.from(config.clusters[0]?.cluster['certificate-authority-data'] ?? '', 'base64');
  return { server: config.clusters[0]?.cluster.server ?? '', ca, token: config.users[0]?.user.token ?? '' };
};
const headersOf = ({ agent = 'website/v1', body }: Asked) => ({
  authorization: `Bearer ${access().token}`,
  'user-agent': agent,
  accept: 'application/json',
  ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(JSON.stringify(body))) }),
});

const http1: Ask = (method, path, o = {}) =>
  new Promise((resolve, reject) => {
    const { server, ca } = access();
    const req = request(`${server}${path}`, { method, headers: headersOf(o), ca, agent: false }, (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      res.once('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: JSON.parse(text) as Answer['body'] }));
      res.once('error', reject);
    });
    req.once('error', reject);
    req.end(o.body === undefined ? undefined : JSON.stringify(o.body));
  });

const http2: Ask = (method, path, o = {}) =>
  new Promise((resolve, reject) => {
    const { server, ca } = access();
    const session = connectHttp2(server, { ca });
    session.once('error', reject);
    const req = session.request({ ':method': method, ':path': path, ...headersOf(o) }, { endStream: o.body === undefined });
    let text = '';
    let headers: Answer['headers'] = {};
    req.once('response', (got) => {
      headers = got as Answer['headers'];
    });
    req.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    req.once('end', () => {
      session.close();
      if (text === '') return;
      resolve({ status: Number(headers[':status']), headers, body: JSON.parse(text) as Answer['body'] });
    });
    req.once('error', reject);
    if (o.body !== undefined) req.end(JSON.stringify(o.body));
  });

const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const configMap = (name: string, value: string, more = {}) => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap' },
  metadata: { name, ...more },
  data: { value },
});

/** Lines of a watch as they come, and its end. */
function watch(path: string, agent = 'website/v1') {
  const { server, ca } = access();
  let text = '';
  let status = 0;
  const req = request(`${server}${path}`, { headers: headersOf({ agent }), ca, agent: false });
  const ended = new Promise<void>((resolve) => {
    req.once('error', () => resolve());
    req.once('response', (res) => {
      status = res.statusCode ?? 0;
      res.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      res.once('close', () => resolve());
    });
  });
  req.end();
  // One that has not ended is the last.
  const lines = () => text.split('\n').filter((line) => line !== '');
  return { lines, ended, status: () => status, close: () => void req.destroy() };
}

/** Asks to delete it. Gives the end of a client that waits no longer. */
function deleting(path: string, protocol: string): () => void {
  const { server, ca } = access();
  const headers = headersOf({});
  if (protocol === 'HTTP/1.1') {
    const req = request(`${server}${path}`, { method: 'DELETE', headers, ca, agent: false }).once('error', () => {});
    req.end();
    return () => void req.destroy();
  }
  const session = connectHttp2(server, { ca });
  const req = session.request({ ':method': 'DELETE', ':path': path, ...headers }).once('error', () => {});
  req.once('close', () => session.close());
  return () => req.close(constants.NGHTTP2_CANCEL);
}

const waitFor = (condition: () => boolean) => vi.waitFor(() => expect(condition()).toBe(true), { timeout: 20_000, interval: 10 });

for (const [protocol, ask] of [
  ['HTTP/1.1', http1],
  ['HTTP/2', http2],
] as const) {
  it(`does nothing for a client that gave up while its request was held back, by ${protocol}`, async () => {
    const [left, other] = ['left', 'other'].map((of) => `${of}-${protocol.at(-1)}`) as [string, string];
    for (const name of [left, other]) await ask('POST', CONFIG_MAPS, { body: configMap(name, 'x') });
    const fault = await inject('slow', { delayMs: 300, select: { verbs: ['delete'], userAgents: ['website'] } });
    const giveUp = deleting(`${CONFIG_MAPS}/${left}`, protocol);
    await waitFor(() => proxy.trouble.hitsOf(fault) === 1);
    giveUp();
    // It is held back later, and for as long.
    expect((await ask('DELETE', `${CONFIG_MAPS}/${other}`)).status).toBe(200);
    expect((await ask('GET', `${CONFIG_MAPS}/${left}`)).status).toBe(200);
  });

  it(`passes requests, bodies and answers on by ${protocol}`, async () => {
    const name = `passed-${protocol.length}`;
    expect((await ask('POST', CONFIG_MAPS, { body: configMap(name, 'one') })).status).toBe(201);
    expect((await ask('GET', `${CONFIG_MAPS}/${name}`)).body.data).toEqual({ value: 'one' });
    const gone = await ask('DELETE', `${CONFIG_MAPS}/${name}`, { body: { kind: 'DeleteOptions', apiVersion: 'v1' } });
    expect(gone.status).toBe(200);
    expect((await ask('GET', `${CONFIG_MAPS}/${name}`)).status).toBe(404);
  });

  it(`answers the client that was named with 409 and 429, and no other, by ${protocol}`, async () => {
    const name = `refused-${protocol.length}`;
    const path = `${CONFIG_MAPS}/${name}`;
    await ask('POST', CONFIG_MAPS, { body: configMap(name, 'one') });
    const conflict = await inject('conflict', { select: { userAgents: ['website'] }, times: 1 });
    const refused = await ask('PUT', path, { body: configMap(name, 'two') });
    expect({ status: refused.status, reason: refused.body.reason }).toEqual({ status: 409, reason: 'Conflict' });
    expect((await ask('GET', path)).body.data).toEqual({ value: 'one' });
    expect((await ask('PUT', path, { body: configMap(name, 'two') })).status).toBe(200);
    expect(proxy.trouble.hitsOf(conflict)).toBe(1);

    await inject('throttle', { select: { userAgents: ['website'], resources: ['configmaps'] }, retryAfter: 7 });
    const throttled = await ask('GET', path);
    expect({ status: throttled.status, after: throttled.headers['retry-after'] }).toEqual({ status: 429, after: '7' });
    expect((await ask('GET', path, { agent: 'website-2/v1' })).status).toBe(200);
    expect((await ask('GET', '/api/v1/nodes')).status).toBe(200);
  });

  it(`reads what there was, ends watches and holds new ones, and catches up at the end, by ${protocol}`, async () => {
    const name = `stale-${protocol.length}`;
    const path = `${CONFIG_MAPS}/${name}`;
    const old = await ask('POST', CONFIG_MAPS, { body: configMap(name, 'old') });
    const running = watch(`${CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3D${name}`);
    await waitFor(() => running.lines().length === 1);
    const stale = await inject('stale-reads', { select: { userAgents: ['website'] }, ageMs: 0 });
    await running.ended;
    const other = { agent: 'kubectl/v1' };
    await ask('PUT', path, { body: configMap(name, 'new'), ...other });
    await ask('POST', CONFIG_MAPS, { body: configMap(`${name}-b`, 'new'), ...other });

    expect((await ask('GET', path)).body).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1', data: { value: 'old' } });
    expect((await ask('GET', `${path}-b`)).status).toBe(404);
    const list = await ask('GET', `${CONFIG_MAPS}?resourceVersion=0`);
    expect(list.body.items?.find((item) => item.metadata?.name === name)?.data).toEqual({ value: 'old' });
    expect((await ask('GET', path, other)).body.data).toEqual({ value: 'new' });
    expect((await ask('GET', `${CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`)).status).toBe(422);

    const version = old.body.metadata?.resourceVersion ?? '';
    const held = watch(`${CONFIG_MAPS}?watch=true&resourceVersion=${version}&fieldSelector=metadata.name%3D${name}`);
    await waitFor(() => held.status() === 200);
    // Nothing is due: an event that came would be read before the answer to this.
    await ask('GET', path);
    expect(held.lines()).toEqual([]);
    proxy.heal(stale);
    await waitFor(() => held.lines().some((line) => line.includes('"new"')));
    held.close();
    expect((await ask('GET', path)).body.data).toEqual({ value: 'new' });
  });
}

it('brings events later, in their order, and all of them when the fault is healed', async () => {
  const lag = await inject('watch-lag', { select: { userAgents: ['website'] }, delayMs: 60_000, forMs: 600_000 });
  const [late, prompt] = [watch(`${CONFIG_MAPS}?watch=true`), watch(`${CONFIG_MAPS}?watch=true`, 'kubectl/v1')];
  await waitFor(() => late.status() === 200 && prompt.status() === 200);
  for (const name of ['lag-a', 'lag-b']) await http1('POST', CONFIG_MAPS, { body: configMap(name, 'x') });
  await waitFor(() => prompt.lines().some((line) => line.includes('lag-b')));
  expect(late.lines()).toEqual([]);
  proxy.heal(lag);
  await waitFor(() => late.lines().some((line) => line.includes('lag-b')));
  expect(late.lines()).toEqual(prompt.lines());
  for (const it of [late, prompt]) it.close();
});

it('ends watches by an ERROR event, by 410 and at their end, never within an event', async () => {
  const select = { userAgents: ['website'], resources: ['configmaps'] };
  await http1('POST', CONFIG_MAPS, { body: configMap('ended', 'x'.repeat(300_000)) });
  const list = await http1('GET', CONFIG_MAPS);
  const from = `resourceVersion=${list.body.metadata?.resourceVersion ?? ''}`;
  const whole = (lines: readonly string[]) =>
    lines.map((line) => JSON.parse(line) as { type: string; object: { code?: number; reason?: string } });
  for (const [as, status] of [
    ['answer', 410],
    ['event', 200],
  ] as const) {
    const running = watch(`${CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dnone`);
    await waitFor(() => running.status() === 200);
    const expired = await inject('watch-expired', { select, as, forMs: 600_000 });
    await running.ended;
    expect(whole(running.lines())).toMatchObject([{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }]);
    const next = watch(`${CONFIG_MAPS}?watch=true&${from}`);
    await next.ended;
    expect(next.status()).toBe(status);
    const fresh = watch(`${CONFIG_MAPS}?watch=true&resourceVersion=0`);
    await waitFor(() => fresh.status() === 200);
    fresh.close();
    proxy.heal(expired);
  }
  const running = watch(`${CONFIG_MAPS}?watch=true&fieldSelector=metadata.name%3Dended`);
  await waitFor(() => running.status() === 200);
  await inject('watch-close', { select });
  await running.ended;
  for (const line of running.lines()) expect(() => JSON.parse(line) as unknown).not.toThrow();
});

it('does a write whose answer is lost, and does slow requests later', async () => {
  for (const [name, ask] of [
    ['lost-1', http1],
    ['lost-2', http2],
  ] as const) {
    const lost = await inject('lost-answer', { select: { userAgents: ['website'] }, times: 1 });
    await expect(ask('POST', CONFIG_MAPS, { body: configMap(name, 'x') })).rejects.toThrow(/hang up|INTERNAL_ERROR/);
    expect((await ask('GET', `${CONFIG_MAPS}/${name}`)).status).toBe(200);
    expect(proxy.trouble.hitsOf(lost)).toBe(1);
  }
  await inject('slow', { select: { names: ['lost-1'] }, delayMs: 300 });
  const fromMs = clock.monoMs();
  expect((await http1('GET', `${CONFIG_MAPS}/lost-1`)).status).toBe(200);
  expect(clock.monoMs() - fromMs).toBeGreaterThanOrEqual(300);
});

it('asks with no certificate but its own: a client that shows another one is refused, and not taken for nobody', async () => {
  const { server, ca, token } = access();
  const stranger = await selfSignedCertificate('127.0.0.1', clock.wallMs());
  const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const options = { ...{ ca, agent: false, cert: stranger.cert, key: stranger.key }, headers: { authorization: `Bearer ${token}` } };
    const req = request(`${server}/api/v1/nodes`, options, (res) => {
      let text = '';
      res.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      res.once('end', () => resolve({ status: res.statusCode ?? 0, text }));
    });
    req.once('error', reject);
    req.end();
  });
  expect(answer.status).toBe(401);
  expect(answer.text).toContain('the client certificate of its own kubeconfig');
});

it('passes a refusal of the token on, and outlives clients that speak no HTTP and servers that are gone', async () => {
  const { server, ca } = access();
  const status = await new Promise((resolve, reject) => {
    const req = request(`${server}/api/v1/nodes`, { ca, agent: false, headers: { authorization: 'Bearer other' } }, (res) => {
      res.resume();
      resolve(res.statusCode);
    });
    req.once('error', reject);
    req.end();
  });
  expect(status).toBe(401);
  const { connect } = await import('node:tls');
  const rude = connect({ port: Number(new URL(server).port), host: '127.0.0.1', ca });
  await new Promise<void>((resolve) => {
    rude.once('error', () => resolve());
    rude.once('close', () => resolve());
    rude.once('secureConnect', () => rude.end('\u0000 no HTTP\r\n\r\n'));
    rude.resume();
  });
  expect((await http1('GET', '/api/v1/nodes')).status).toBe(200);

  const other = await startEmbeddedApi(clock, 2);
  const kubeconfig = { path: 'kubeconfig', text: other.kubeconfig };
  const lonely = await startProxy({ kubeconfig, admin: other.admin, clock, log: quietLog, seed: 1, port: 0, onFault: () => {} });
  await other.close();
  const config = JSON.parse(lonely.kubeconfig) as { clusters: { cluster: { 'certificate-authority-data': string } }[] };
  const own = Buffer.from(config.clusters[0]?.cluster['certificate-authority-data'] ?? '', 'base64');
  const answer = await new Promise((resolve, reject) => {
    const req = request(`${lonely.server}/api/v1/nodes`, { ca: own, agent: false }, (res) => {
      res.resume();
      resolve(res.statusCode);
    });
    req.once('error', reject);
    req.end();
  });
  await lonely.close();
  expect(answer).toBe(503);
});

it('does not take the body that a refused upgrade owes from the next request', async () => {
  const { server, ca } = access();
  const { port } = new URL(server);
  const head = ['POST /api/v1/none HTTP/1.1', 'host: localhost', 'connection: Upgrade', 'upgrade: SPDY/3.1', 'content-length: 64'];
  const socket = connectTls({ host: '127.0.0.1', port: Number(port), ca }, () => socket.write(`${head.join('\r\n')}\r\n\r\n`));
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await waitFor(() => text.startsWith('HTTP/1.1 '));
  socket.destroy();
  expect((await http1('GET', '/api/v1/nodes')).status).toBe(200);
});
