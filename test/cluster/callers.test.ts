/**
 * Who comes to a node of a real cluster without the right, and what: no credentials, wrong, expired and insufficient
 * ones on every page; paths that lead elsewhere; requests too large, too strange or no requests at all.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:tls';
import { describe, expect, it } from 'vitest';
import type { Pod } from '../../src/machines/kube/types.ts';
import { Authority, type KeyPair } from '../e2e/lab/pki.ts';
import { sh } from '../e2e/manifests.ts';
import { type Cluster, DEFAULT_NAMESPACE, LONG, lifeOf, STAY } from './cluster.ts';
import { onCluster } from './hooks.ts';

let cluster: Cluster;
let pod: Pod;
/** In the container's log and nowhere else: whoever reads it was given data. */
const SECRET = 'the-words-of-the-container';

type Who = { cert?: KeyPair; bearer?: string };

onCluster(
  async (made) => {
    cluster = made;
    await cluster.create('web', { containers: [sh('main', `echo ${SECRET}; ${STAY}`)] });
    pod = await cluster.ready('web');
    await cluster.daemon.wait('its log', async () => (await cluster.kubectl('logs', 'web')) === `${SECRET}\n`, LONG);
  },
  { config: { enableDebuggingHandlers: true, enableSystemLogHandler: true } },
);

/** One request on a connection of its own, the path as it is. A failed handshake is status 0 with its code. */
function ask(
  path: string,
  who: Who = {},
  o: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<{ status: number; body: string }> {
  return new Promise((resolve) => {
    const headers = { ...(who.bearer === undefined ? {} : { authorization: `Bearer ${who.bearer}` }), ...o.headers };
    const pair = who.cert === undefined ? {} : { cert: readFileSync(who.cert.certFile), key: readFileSync(who.cert.keyFile) };
    const options = { host: '127.0.0.1', port: cluster.port, path, method: o.method ?? 'GET', headers, agent: false as const };
    const req = request({ ...options, ...pair, rejectUnauthorized: false, timeout: 60_000 }, (res) => {
      let body = '';
      res.on('data', (d: Buffer) => {
        body += d.toString('latin1');
      });
      res.once('close', () => resolve({ status: res.statusCode ?? 0, body }));
    });
    req.once('upgrade', (_res, socket) => {
      socket.destroy();
      resolve({ status: 101, body: '' });
    });
    req.once('timeout', () => req.destroy(new Error('no answer')));
    req.once('error', (error: NodeJS.ErrnoException) => resolve({ status: 0, body: error.code ?? error.message }));
    req.end(o.body);
  });
}
/** The bytes that come back for these bytes until the server ends the connection, or what is `enough` has come. */
function raw(bytes: string | Buffer, who: KeyPair, enough?: RegExp): Promise<string> {
  return new Promise((resolve) => {
    const pair = { cert: readFileSync(who.certFile), key: readFileSync(who.keyFile) };
    let seen = '';
    const socket = connect({ host: '127.0.0.1', port: cluster.port, ...pair, rejectUnauthorized: false }, () => {
      if (enough === undefined) socket.end(bytes);
      else socket.write(bytes);
    });
    socket.on('data', (d) => {
      seen += d.toString('latin1');
      if (enough?.test(seen) === true) socket.destroy();
    });
    socket.once('error', () => undefined);
    socket.setTimeout(60_000, () => socket.destroy(new Error('no end')));
    socket.once('close', () => resolve(seen));
  });
}
async function tokenOf(account: string): Promise<string> {
  await cluster.kubectl('create', 'serviceaccount', account);
  const made = await cluster.plane.request('POST', `${DEFAULT_NAMESPACE}/serviceaccounts/${account}/token`, {
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  });
  return (made.body as { status: { token: string } }).status.token;
}
const pages = () => {
  const { uid } = pod.metadata;
  return [
    ...['/pods', '/runningpods/', '/stats/summary', '/metrics', '/metrics/cadvisor', '/metrics/resource', '/metrics/probes', '/configz'],
    ...['/logs/', '/logs/lastlog', '/containerLogs/default/web/main', `/containerLogs/default/web/${uid}/main`],
    ...['/exec/default/web/main?command=id&output=1', '/attach/default/web/main?output=1', '/portForward/default/web?port=80'],
    ...['/run/default/web/main?cmd=id', '/statez', '/recorder', '/metrics/slis', '/checkpoint/default/web/main', '/why?pod=web', '/events'],
    ...['/debug/pprof/', '/debug/pprof/profile?seconds=1', '/debug/pprof/heap?seconds=1', '/debug/flags/v'],
  ];
};
const UPGRADE = {
  ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
  ...{ 'sec-websocket-key': createHash('md5').update('x').digest('base64'), 'sec-websocket-protocol': 'v4.channel.k8s.io' },
};

describe('a caller', () => {
  it('without credentials, or with ones that are no good, is 401 on every page, by every method, and told nothing', async () => {
    const { ca, dir } = cluster.plane;
    const other = new Authority(dir, 'other-ca');
    const masters = { name: 'kubernetes-admin', groups: ['system:masters'] };
    const callers: Record<string, Who> = {
      nobody: {},
      'a token that nobody gave': { bearer: 'eyJhbGciOiJub25lIn0.e30.' },
      'an empty token': { bearer: '' },
      'a certificate that has ended': { cert: ca.issue('ended', { ...masters, days: -1 }) },
      'a certificate of another CA': { cert: other.issue('foreign', masters) },
    };
    for (const [name, who] of Object.entries(callers)) {
      for (const path of pages()) {
        for (const method of ['GET', 'POST', 'DELETE']) {
          expect([name, method, path, await ask(path, who, { method })]).toEqual([
            name,
            method,
            path,
            { status: 401, body: 'Unauthorized' },
          ]);
        }
      }
      const upgrade = await ask('/exec/default/web/main?command=id&output=1', who, { headers: UPGRADE });
      expect([name, upgrade.status]).toEqual([name, 401]);
    }
  }, 300_000);

  it('whose rights do not reach is 403 on every page, and told only who asked for what', async () => {
    const node = cluster.plane.ca.issue('another-node', { name: 'system:node:other', groups: ['system:nodes'] });
    const bearer = await tokenOf('nobody');
    for (const who of [{ cert: node }, { bearer }]) {
      for (const path of pages()) {
        const answer = await ask(path, who);
        expect([path, answer.status]).toEqual([path, 403]);
        expect(answer.body).toMatch(
          /^Forbidden \(user=(system:node:other|system:serviceaccount:default:nobody), verb=\w+, resource=nodes, subresource\(s\)=\[[\w, ]+\]\)$/,
        );
      }
      expect((await ask('/exec/default/web/main?command=id&output=1', who, { headers: UPGRADE })).status).toBe(403);
    }
  }, 300_000);

  it('has what one right opens, and nothing else', async () => {
    const bearer = await tokenOf('reader');
    await cluster.kubectl('create', 'clusterrole', 'read-logs', '--verb=get', '--resource=nodes/log');
    await cluster.kubectl('create', 'clusterrolebinding', 'read-logs', '--clusterrole=read-logs', '--serviceaccount=default:reader');
    await cluster.daemon.wait('the grant', async () => (await ask('/logs/', { bearer })).status === 200, LONG);
    for (const path of pages().filter((p) => !p.startsWith('/logs/')))
      expect([path, (await ask(path, { bearer })).status]).toEqual([path, 403]);
    expect((await ask('/logs/', { bearer }, { method: 'POST' })).status).toBe(403);
  }, 120_000);
});

describe('a path', () => {
  it('does not lead out of the logs, in any spelling, for somebody who may do everything', async () => {
    const admin = { cert: cluster.plane.kubeletClient };
    const up = ['../', '..%2f', '%2e%2e/', '%2e%2e%2f', '..%5c', '....//', '%252e%252e%252f', '..;/', '../'];
    const uid = pod.metadata.uid;
    for (const step of up) {
      for (const target of ['etc/passwd', 'etc/shadow', `root/${uid}`]) {
        for (const base of ['/logs/', '/logs//', '/containerLogs/default/web/', '/containerLogs/default/', '/containerLogs/']) {
          const path = `${base}${step.repeat(8)}${target}`;
          const answer = await ask(path, admin);
          expect([path, [400, 403, 404].includes(answer.status), answer.status]).toEqual([path, true, answer.status]);
          expect(answer.body).not.toMatch(/root:|BEGIN /);
        }
      }
    }
    for (const path of [
      '/logs/%00',
      '/logs//etc/passwd',
      '/logs/%2fetc%2fpasswd',
      '/containerLogs/default/web/main%00',
      '/containerLogs/default/web/%2e%2e',
    ]) {
      const answer = await ask(path, admin);
      expect([path, answer.status >= 400 && answer.status < 500]).toEqual([path, true]);
      expect(answer.body).not.toMatch(/root:/);
    }
  }, 300_000);
});

describe('a request', () => {
  const admin = () => cluster.plane.kubeletClient;
  it('that is too large is refused, and takes nothing with it', async () => {
    // The reference takes up to 1 MiB of headers; so does this.
    const large = 'x'.repeat(1_200_000);
    expect((await ask('/pods', { cert: admin() }, { headers: { 'x-large': large } })).status).toBe(431);
    expect([400, 414, 431]).toContain((await ask(`/pods?x=${large}`, { cert: admin() })).status);
    expect([401, 431]).toContain((await ask('/pods', { bearer: large })).status);
    // A body that nobody asked for is not read into memory.
    const body = 'x'.repeat(20_000_000);
    expect([0, 200, 400, 404, 405, 413]).toContain(
      (await ask('/run/default/web/none?cmd=id', { cert: admin() }, { method: 'POST', body })).status,
    );
  });

  it('that asks for nonsense is told so', async () => {
    const who = { cert: admin() };
    const logs = '/containerLogs/default/web/main';
    const wrong: [string, number][] = [
      [`${logs}?tailLines=many`, 400],
      [`${logs}?tailLines=-1`, 422],
      [`${logs}?sinceSeconds=0`, 422],
      [`${logs}?sinceTime=yesterday`, 400],
      [`${logs}?limitBytes=0`, 422],
      [`${logs}?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z`, 422],
      ['/containerLogs/default/web', 404],
      ['/containerLogs/default/none/main', 404],
      ['/containerLogs/default/web/none', 404],
      ['/exec/default/none/main?command=id&output=1', 404],
      ['/exec/default/web/main?command=id', 400],
      ['/no/such/page', 404],
    ];
    const given = await Promise.all(wrong.map(async ([path]) => [path, (await ask(path, who)).status]));
    expect(given).toEqual(wrong);
  });

  it('that is none is ended with a 400, or without a word', async () => {
    const crlf = '\r\n';
    const garbage: (string | Buffer)[] = [
      'garbage\r\n\r\n',
      Buffer.from([0, 1, 2, 3, 255, 254, 13, 10, 13, 10]),
      `GET /pods HTTP/9.9${crlf}${crlf}`,
      `GET /pods HTTP/1.1${crlf}Host: x${crlf}Content-Length: 1${crlf}Content-Length: 2${crlf}${crlf}ab`,
      `POST /run/default/web/main?cmd=id HTTP/1.1${crlf}Host: x${crlf}Transfer-Encoding: chunked${crlf}${crlf}zz${crlf}`,
      `GET /pods HTTP/1.1${crlf}Bad Header: x${crlf}${crlf}`,
      `GET /pods HTTP/1.1${crlf}Host: x${crlf}Content-Length: 5${crlf}Transfer-Encoding: chunked${crlf}${crlf}0${crlf}${crlf}`,
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    ];
    for (const bytes of garbage) {
      const answer = await raw(bytes, admin());
      expect([bytes.toString(), answer === '' || /^HTTP\/1\.[01] 4\d\d /.test(answer), answer.slice(0, 60)]).toEqual([
        bytes.toString(),
        true,
        answer.slice(0, 60),
      ]);
    }
  });

  it('to be upgraded that is followed by garbage harms nobody', async () => {
    const lines = Object.entries({ ...UPGRADE, host: 'x' }).map(([k, v]) => `${k}: ${v}\r\n`);
    const head = `GET /exec/default/web/main?command=cat&input=1&output=1 HTTP/1.1\r\n${lines.join('')}\r\n`;
    const answer = await raw(Buffer.concat([Buffer.from(head), Buffer.alloc(4096, 0xff)]), admin(), /^HTTP.*\r\n\r\n/s);
    expect(answer).toMatch(/^HTTP\/1\.1 101 /);
  });
});

it('after all of which the node answers, and its pod runs as before', async () => {
  expect(await cluster.nodePage('/healthz')).toBe('ok');
  expect(lifeOf(await cluster.ready('web'))).toEqual(lifeOf(pod));
  expect(cluster.daemon.log()).not.toMatch(/uncaught|unhandled|TypeError/i);
});
