/** Who may ask the API what: every page with missing, wrong and insufficient credentials, and no data in any refusal. */
import { rmSync, writeFileSync } from 'node:fs';
import { connect as connectTcp } from 'node:net';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ASKING_MAX, WAITING_MAX } from '../../../src/actors/edge/https/authenticate.ts';
import type { KubeRequest, KubeResult } from '../../../src/machines/kube/request.ts';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { statusesView } from '../../../src/machines/pods/status/messages.ts';
import { until } from '../harness.ts';
import { pod, record, running, statusView, viewOfPods } from '../metrics/samples.ts';
import { clientCa, type Lab, serverCa, startLab, TestCa } from './lab.ts';

async function start(o: Parameters<typeof startLab>[0] = {}): Promise<Lab> {
  const lab = await startLab(o);
  onTestFinished(() => lab.stop());
  lab.registry.set(podsView, viewOfPods([record(pod('secret-pod'))]));
  lab.registry.set(statusesView, statusView({ 'uid-secret-pod': running }));
  return lab;
}
const it = test.extend('lab', () => start());

/** Every registered page, and whether a GET of it, let in, has something to answer here. */
const PAGES = [
  ...[
    '/healthz',
    '/healthz/ping',
    '/pods',
    '/runningpods/',
    '/stats/summary',
    '/metrics',
    '/metrics/resource',
    '/metrics/cadvisor',
    '/checkpoint/default/web/main',
    '/metrics/probes',
    '/metrics/slis',
    '/debug/pprof/',
    '/debug/pprof/profile?seconds=1',
    '/debug/flags/v',
  ],
  ...[
    '/configz',
    '/logs/',
    '/logs/syslog',
    '/containerLogs/default/secret-pod/web',
    '/statez',
    '/recorder',
    '/events',
    '/why?pod=secret-pod',
  ],
  ...['/exec/default/secret-pod/web?command=id&output=1', '/attach/default/secret-pod/web?output=1', '/portForward/default/secret-pod'],
  ...['/run/default/secret-pod/web?cmd=id', '/pods/x', '/metrics/none'],
];
const DATA = /secret-pod|line of the recorder|kubeletconfig|_total|"node"/;

const ann = clientCa.leaf({ commonName: 'ann', organizations: ['dev', 'ops'] });
const unknownCa = new TestCa('somebody else').leaf({ commonName: 'ann', organizations: ['system:masters'] });
const expired = clientCa.leaf({ commonName: 'ann' }, 'client', Date.now() - 60_000);
const serverOnly = clientCa.leaf({ commonName: 'ann' }, { host: '127.0.0.1' });
const nameless = clientCa.leaf({ commonName: '' });

/** An API server that knows one token and grants by a table of subresources; counts what it was asked. */
function cluster(o: { token?: string; allowed?: string[]; fail?: () => KubeResult | undefined } = {}) {
  const asked: { tokens: number; access: string[]; specs: unknown[] } = { tokens: 0, access: [], specs: [] };
  const grants = new Set(o.allowed ?? []);
  const kube = (r: KubeRequest): KubeResult => {
    const failure = o.fail?.();
    if (failure !== undefined) return failure;
    const { spec } = r.body as { spec: { token?: string; user?: string; resourceAttributes?: { subresource: string } } };
    if (r.path.endsWith('/tokenreviews')) {
      asked.tokens++;
      const ok = spec.token === (o.token ?? 'good');
      const user = { username: 'system:serviceaccount:default:x', uid: 'u1', groups: ['system:serviceaccounts'], extra: { k: ['v'] } };
      return {
        ok: true,
        code: 201,
        body: { status: ok ? { authenticated: true, user } : { authenticated: false, error: 'unknown token' } },
      };
    }
    asked.specs.push(spec);
    const subresource = spec.resourceAttributes?.subresource ?? '';
    asked.access.push(subresource);
    return { ok: true, code: 201, body: { status: { allowed: grants.has(subresource) } } };
  };
  return { asked, grants, kube };
}
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const webhook = { authorization: { mode: 'Webhook' as const, allowedTtlMs: 300_000, deniedTtlMs: 30_000 } };

describe('a node without any way to know who asks', () => {
  it('answers health and nothing else, on every page and to every kind of credentials', async () => {
    const lab = await start({ withClientCa: false });
    for (const path of PAGES) {
      for (const o of [{}, bearer('x'), { client: ann }]) {
        const answer = await lab.ask(path, o);
        const health = path.startsWith('/healthz');
        expect([path, answer.status]).toEqual([path, health ? 200 : 401]);
        expect(answer.body).toBe(health ? 'ok' : 'Unauthorized');
      }
    }
    expect((await lab.ask('/nope')).status).toBe(404);
  });
});

describe('without credentials', () => {
  it('each page is 401, before its method or the rest of its path is looked at (trap 23)', async ({ lab }) => {
    for (const path of PAGES) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const answer = await lab.ask(path, { method });
        expect([method, path, answer.status, answer.body]).toEqual([method, path, 401, 'Unauthorized']);
      }
      expect((await lab.ask(path, { method: 'HEAD' })).status).toBe(401);
    }
    for (const path of ['/nope', '/', '/podsx', '/checkpoints/a/b/c']) expect([path, (await lab.ask(path)).status]).toEqual([path, 404]);
  });
  it('an upgrade is refused before anything is asked of the runtime', async ({ lab }) => {
    const answer = await lab.upgrade('/exec/default/secret-pod/web?command=id&output=1', { method: 'POST' });
    expect('status' in answer && [answer.status, answer.body]).toEqual([401, 'Unauthorized']);
    expect(lab.calls).toEqual([]);
  });
});

describe('client certificates', () => {
  it('name the user and its groups when the CA signed them for clients', async () => {
    const c = cluster({ allowed: ['pods'] });
    const lab = await start({ ...webhook, kube: c.kube });
    expect((await lab.ask('/pods', { client: ann })).status).toBe(200);
    expect(c.asked.specs).toEqual([
      {
        user: 'ann',
        groups: ['dev', 'ops', 'system:authenticated'],
        resourceAttributes: { verb: 'get', version: 'v1', resource: 'nodes', subresource: 'pods', name: 'n1' },
      },
    ]);
  });
  it('whose name is that of everybody unknown do not make them known', async () => {
    const c = cluster({ allowed: ['pods'] });
    const lab = await start({ ...webhook, kube: c.kube });
    for (const subject of [{ commonName: 'system:anonymous' }, { commonName: 'ann', organizations: ['system:unauthenticated'] }])
      await lab.ask('/pods', { client: clientCa.leaf(subject) });
    expect(c.asked.specs).toMatchObject([
      { user: 'system:anonymous', groups: [] },
      { user: 'ann', groups: ['system:unauthenticated'] },
    ]);
  });
  it.each([
    ['of another CA', unknownCa],
    ['that expired', expired],
    ['made for servers', serverOnly],
    ['without a name', nameless],
  ])('%s let nobody in', async (_what, client) => {
    const lab = await start();
    const answer = await lab.ask('/pods', { client });
    expect([answer.status, answer.body]).toEqual([401, 'Unauthorized']);
  });
  it('are judged even where anonymous requests are let in (trap 22)', async () => {
    const lab = await start({ authentication: { webhook: { enabled: false, cacheTtlMs: 0 }, anonymous: true } });
    expect((await lab.ask('/pods')).status).toBe(200);
    expect((await lab.ask('/pods', { client: expired })).status).toBe(401);
    expect((await lab.ask('/pods', { client: unknownCa })).status).toBe(401);
  });
  it('end with their time, also on a connection that was made before', async ({ lab }) => {
    expect((await lab.ask('/pods', { client: ann })).status).toBe(200);
    lab.skip(2 * 3_600_000);
    expect((await lab.ask('/pods', { client: ann })).status).toBe(401);
  });
  it('follow a changed CA: the old ones are refused, the new ones let in, without a restart', async ({ lab }) => {
    const next = new TestCa('next-ca');
    const bob = next.leaf({ commonName: 'bob' });
    expect((await lab.ask('/pods', { client: bob })).status).toBe(401);
    writeFileSync(join(lab.dir, 'ca.crt'), next.pem);
    await until(() => {
      lab.fireLongTimers();
      return lab.ports.lines.some((l) => l.msg.includes('certificates changed'));
    }, 20_000);
    expect((await lab.ask('/pods', { client: bob })).status).toBe(200);
    expect((await lab.ask('/pods', { client: ann })).status).toBe(401);
  });
  it.each([
    ['empty', ''],
    ['no certificate', 'half a fi'],
    ['a certificate that cannot be read', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
    ['gone', null],
  ])('are judged by the last good CA where its file is %s, and a new serving pair is used all the same', async (_what, content) => {
    const lab = await start();
    const file = join(lab.dir, 'ca.crt');
    if (content === null) rmSync(file);
    else writeFileSync(file, content);
    const refreshed = async (msg: string) =>
      until(() => {
        lab.fireLongTimers();
        return lab.ports.lines.some((l) => l.msg.includes(msg));
      }, 20_000);
    await refreshed('keeps the certificates it has');
    expect((await lab.ask('/pods', { client: ann })).status).toBe(200);
    const renewed = serverCa.leaf({ commonName: 'renewed' }, { host: '127.0.0.1' });
    writeFileSync(join(lab.dir, 'tls.crt'), renewed.cert);
    writeFileSync(join(lab.dir, 'tls.key'), renewed.key);
    await refreshed('certificates changed');
    expect((await lab.ask('/pods', { client: ann })).status).toBe(200);
    expect((await lab.ask('/pods', { client: unknownCa })).status).toBe(401);
    writeFileSync(file, clientCa.pem);
  });
  it('and a serving pair that does not fit are reported, and the pair before goes on serving', async ({ lab }) => {
    writeFileSync(join(lab.dir, 'tls.key'), 'no key');
    await until(() => {
      lab.fireLongTimers();
      return lab.ports.lines.some((l) => l.msg.includes('keeps the certificates it has'));
    }, 20_000);
    expect((await lab.ask('/pods', { client: ann })).status).toBe(200);
    expect(JSON.stringify(lab.ports.lines)).not.toContain('no key');
  });
});

describe('bearer tokens', () => {
  it('are asked about once, whatever the answer, until their time is over', async () => {
    const c = cluster();
    const lab = await start({ kube: c.kube });
    const seen = [];
    for (const token of ['good', 'good', 'bad', 'bad']) seen.push((await lab.ask('/pods', bearer(token))).status);
    expect([seen, c.asked.tokens]).toEqual([[200, 200, 401, 401], 2]);
    lab.skip(121_000);
    await lab.ask('/pods', bearer('good'));
    expect(c.asked.tokens).toBe(3);
  });
  it('beat anonymous when they are bad (trap 21)', async () => {
    const lab = await start({ kube: cluster().kube, authentication: { webhook: { enabled: true, cacheTtlMs: 0 }, anonymous: true } });
    expect((await lab.ask('/pods')).status).toBe(200);
    expect((await lab.ask('/pods', bearer('bad'))).status).toBe(401);
  });
  it('are not believed while nobody can be asked, and that is not remembered', async () => {
    let away = true;
    const gone: KubeResult = { ok: false, failure: { code: 0, reason: 'ECONNREFUSED', message: 'away', outcome: 'failed' } };
    const lab = await start({ kube: cluster({ fail: () => (away ? gone : undefined) }).kube });
    expect((await lab.ask('/pods', bearer('good'))).status).toBe(401);
    away = false;
    expect((await lab.ask('/pods', bearer('good'))).status).toBe(200);
  });
  it('are asked about a few at a time, the same one once however often it comes', async () => {
    let asked = 0;
    let answer: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const kube = async (): Promise<KubeResult> => {
      asked++;
      await held;
      return { ok: true, code: 201, body: { status: { authenticated: true, user: { username: 'x' } } } };
    };
    const lab = await start({ kube });
    const ask = async (token: string) => (await lab.ask('/pods', bearer(token))).status;
    const waiting = Array.from({ length: 32 }, (_, i) => ask(`token-${i}`));
    await until(() => asked === ASKING_MAX, 20_000);
    const again = Array.from({ length: 4 }, () => ask('token-0'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(asked).toBe(ASKING_MAX);
    answer();
    expect(new Set(await Promise.all([...waiting, ...again]))).toEqual(new Set([200]));
    expect(asked).toBe(32);
  });
  it('that are good are let in while others guess, from the same address and from another one', async () => {
    let at = 0;
    let most = 0;
    const c = cluster();
    const kube = async (r: KubeRequest): Promise<KubeResult> => {
      most = Math.max(most, ++at);
      await new Promise((resolve) => setTimeout(resolve, 20));
      at -= 1;
      const { spec } = r.body as { spec: { token: string } };
      return spec.token.startsWith('good') ? c.kube({ ...r, body: { spec: { token: 'good' } } }) : c.kube(r);
    };
    const lab = await start({ kube });
    let stop = false;
    const guesses = new Set<number>();
    const loops = Array.from({ length: 40 }, async (_, loop) => {
      for (let n = 0; !stop; n++) guesses.add((await lab.ask('/pods', bearer(`guess-${loop}-${n}`))).status);
    });
    const good = [];
    for (let n = 0; n < 12; n++) {
      const from = n % 2 === 0 ? {} : { localAddress: '127.0.0.2' };
      good.push((await lab.ask('/pods', { ...bearer(`good-${n}`), ...from })).status);
    }
    stop = true;
    await Promise.all(loops);
    expect(good).toEqual(Array.from({ length: 12 }, () => 200));
    expect([...guesses]).toEqual([401]);
    expect(most).toBeLessThanOrEqual(ASKING_MAX);
  });
  it('that cannot be looked at for want of room are 429 or 503 with Retry-After, and those that were good lately go first', async () => {
    let held: (() => void)[] | undefined;
    const c = cluster();
    const kube = async (r: KubeRequest): Promise<KubeResult> => {
      if (held !== undefined && (r.body as { spec: { token: string } }).spec.token !== 'good') {
        const { promise, resolve } = Promise.withResolvers<void>();
        held.push(resolve);
        await promise;
      }
      return c.kube(r);
    };
    const lab = await start({ kube });
    expect((await lab.ask('/pods', bearer('good'))).status).toBe(200);
    lab.skip(121_000);
    held = [];
    const answers: { status: number; retry: unknown }[] = [];
    const guess = async (n: number) => {
      const { status, headers } = await lab.ask('/pods', bearer(`guess-${n}`));
      answers.push({ status, retry: headers['retry-after'] });
    };
    const busy = ASKING_MAX + WAITING_MAX;
    const guesses = Array.from({ length: busy + 5 }, (_, n) => guess(n));
    await until(() => answers.length === 5, 20_000);
    expect(answers).toEqual(Array.from({ length: 5 }, () => ({ status: 429, retry: '1' })));
    const good = lab.ask('/pods', bearer('good'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    held.shift()?.();
    // One place, of which hundreds of one address and one token that is its own peer take turns.
    let done = false;
    void good.then(() => {
      done = true;
    });
    for (let n = 0; n < 3 && !done; n++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      held.shift()?.();
    }
    expect((await good).status).toBe(200);
    lab.fireLongTimers();
    await until(() => answers.some((a) => a.status === 503), 20_000);
    expect(answers.filter((a) => a.status === 503).every((a) => a.retry === '1')).toBe(true);
    const release = setInterval(() => {
      for (const fn of held?.splice(0) ?? []) fn();
    }, 10);
    await Promise.all(guesses);
    clearInterval(release);
    expect(new Set(answers.map((a) => a.status))).toEqual(new Set([401, 429, 503]));
  });
  it('may come as a WebSocket sub-protocol beside another one', async () => {
    const lab = await start({ kube: cluster().kube });
    const carrier = `base64url.bearer.authorization.k8s.io.${Buffer.from('good').toString('base64url')}`;
    const ask = (protocols: string) =>
      lab.upgrade('/portForward/default/none?port=80', { headers: { upgrade: 'websocket', 'sec-websocket-protocol': protocols } });
    const statuses = [];
    for (const protocols of [`${carrier}, v4.channel.k8s.io`, carrier, 'base64url.bearer.authorization.k8s.io.!!, v4.channel.k8s.io']) {
      const answer = await ask(protocols);
      statuses.push('status' in answer && answer.status);
    }
    // 404: let in, and there is no such pod.
    expect(statuses).toEqual([404, 401, 401]);
  });
  it('never reach a log', async () => {
    const lab = await start({ kube: cluster().kube });
    await lab.ask('/pods', bearer('hush-hush-token'));
    expect(JSON.stringify(lab.ports.lines)).not.toContain('hush-hush-token');
  });
});

describe('rights', () => {
  it('that are missing are 403 on every page, and say nothing but who asked for what', async () => {
    const lab = await start({ ...webhook, kube: cluster().kube });
    for (const path of PAGES) {
      const answer = await lab.ask(path, bearer('good'));
      expect([path, answer.status]).toEqual([path, 403]);
      expect(answer.body).toMatch(
        /^Forbidden \(user=system:serviceaccount:default:x, verb=get, resource=nodes, subresource\(s\)=\[[a-z ]+\]\)$/,
      );
      expect(answer.body).not.toMatch(DATA);
    }
    expect(lab.calls).toEqual([]);
  });
  it('of one page do not open another', async () => {
    const lab = await start({ ...webhook, kube: cluster({ allowed: ['metrics'] }).kube });
    expect((await lab.ask('/metrics', bearer('good'))).status).toBe(200);
    for (const path of ['/pods', '/stats/summary', '/logs/', '/containerLogs/default/secret-pod/web', '/statez', '/configz']) {
      expect([path, (await lab.ask(path, bearer('good'))).status]).toEqual([path, 403]);
    }
  });
  it('are asked for from fine to coarse, and the coarse one is enough', async () => {
    const c = cluster({ allowed: ['proxy'] });
    const lab = await start({ ...webhook, kube: c.kube });
    expect((await lab.ask('/pods', bearer('good'))).status).toBe(200);
    expect(c.asked.access).toEqual(['pods', 'proxy']);
  });
  it('that could not be looked up are 500, never a grant, and are looked up again (trap 26)', async () => {
    let broken = false;
    const failure: KubeResult = { ok: false, failure: { code: 500, reason: 'InternalError', message: 'database', outcome: 'failed' } };
    const c = cluster({ allowed: ['proxy', 'pods'], fail: () => (broken ? failure : undefined) });
    const lab = await start({ ...webhook, kube: c.kube });
    await lab.ask('/statez', bearer('good'));
    broken = true;
    const answer = await lab.ask('/pods', bearer('good'));
    expect([answer.status, answer.body]).toEqual([500, expect.stringMatching(/^Authorization error \(user=/)]);
    expect(answer.body).not.toMatch(DATA);
    broken = false;
    expect((await lab.ask('/pods', bearer('good'))).status).toBe(200);
  });
  it('are remembered: a no for 30 s, a yes for 5 min (trap 27)', async () => {
    const c = cluster();
    const lab = await start({ ...webhook, kube: c.kube });
    const status = async () => (await lab.ask('/metrics', bearer('good'))).status;
    const seen = [await status()];
    c.grants.add('metrics');
    seen.push(await status());
    lab.skip(31_000);
    seen.push(await status());
    c.grants.delete('metrics');
    lab.skip(240_000);
    seen.push(await status());
    lab.skip(61_000);
    seen.push(await status());
    expect([seen, c.asked.access.length]).toEqual([[403, 403, 200, 200, 403], 3]);
  });
  it('are nobody’s in mode Webhook while the node belongs to no cluster', async () => {
    const lab = await start(webhook);
    for (const path of PAGES) expect([path, (await lab.ask(path, { client: ann })).status]).toEqual([path, 403]);
  });
  it('are asked for with an empty verb for other methods (trap 24)', async () => {
    const c = cluster({ allowed: ['metrics'] });
    const lab = await start({ ...webhook, kube: c.kube });
    await lab.ask('/metrics', { ...bearer('good'), method: 'HEAD' });
    expect(c.asked.specs).toMatchObject([{ resourceAttributes: { verb: '', subresource: 'metrics' } }]);
  });
});

describe('the TLS port', () => {
  const handshake = (lab: Lab, o: object): Promise<string> =>
    new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port: lab.port, ca: serverCa.pem, ...o });
      socket.once('secureConnect', () => {
        resolve(`${socket.getProtocol()} ${socket.getCipher().standardName}`);
        socket.destroy();
      });
      socket.once('error', () => resolve('refused'));
    });
  it('speaks nothing older than its minimum, and only its suites', async ({ lab }) => {
    expect(await handshake(lab, { maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' })).toBe('refused');
    expect(await handshake(lab, { maxVersion: 'TLSv1.2', ciphers: 'AES128-SHA' })).toBe('refused');
    expect(await handshake(lab, { maxVersion: 'TLSv1.2' })).toMatch(/^TLSv1.2 TLS_ECDHE_RSA_WITH_AES_/);
    const strict = await start({ minVersion: 'TLSv1.3' });
    expect(await handshake(strict, { maxVersion: 'TLSv1.2' })).toBe('refused');
    expect(await handshake(strict, {})).toMatch(/^TLSv1.3 /);
    const one = await start({ cipherSuites: ['TLS_RSA_WITH_AES_128_GCM_SHA256'] });
    expect(await handshake(one, { maxVersion: 'TLSv1.2' })).toBe('TLSv1.2 TLS_RSA_WITH_AES_128_GCM_SHA256');
  });
  it('takes only the key exchanges of its list', async () => {
    const lab = await start({ curves: [24, 29] });
    expect(await handshake(lab, { ecdhCurve: 'P-256' })).toBe('refused');
    expect(await handshake(lab, { ecdhCurve: 'P-384' })).toMatch(/^TLSv1.3 /);
    expect(await handshake(lab, { ecdhCurve: 'X25519' })).toMatch(/^TLSv1.3 /);
  });
  it('answers nothing to a client without TLS, and goes on', async ({ lab }) => {
    const got = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connectTcp(lab.port, '127.0.0.1', () => socket.write('GET /pods HTTP/1.1\r\nhost: x\r\n\r\n'));
      socket.on('data', (d) => {
        text += d.toString('latin1');
      });
      socket.on('error', () => undefined);
      socket.once('close', () => resolve(text));
    });
    expect(got).not.toContain('HTTP/1.1 2');
    expect(got).not.toMatch(DATA);
    expect((await lab.ask('/healthz', { client: ann })).status).toBe(200);
  });
  it('names the file that is missing, and stays up without listening', async () => {
    const lab = await startLab({ certFile: '/nowhere/tls.crt' });
    onTestFinished(() => lab.stop());
    expect(lab.actor.value()).toBe('blocked');
    expect(lab.ports.lines.map((l) => l.msg).join('\n')).toContain('the serving certificate /nowhere/tls.crt cannot be read');
  });
});
