/** `actorctl node` between a daemon's admin socket and an API server, both played by small HTTP servers. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { type ApiNode, compareNode, type NodeFactsPage } from '@actorlet/shown/src/nodePage.ts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCtl } from '../src/cli.ts';
import { checkNode } from '../src/commands/nodeApi.ts';

const NOW = Date.parse('2026-05-01T12:00:00Z');
let dir = '';
let known: NodeFactsPage;
let servers: Server[] = [];
/** What the API server was asked to do. */
let acts: string[] = [];
/** Evictions that the disruption budget refuses. */
let refusals = 0;
/** Pods as the daemon lists them. */
let summaries: { uid: string; namespace: string; name: string; source: string; removed: boolean }[] = [];
/** Of pods that end: they stay. */
let finalizers: string[] | undefined;
const summaryOf = (name: string, more: object = {}) => ({
  ...{ uid: `uid-${name}`, namespace: 'shop', name, source: 'api', removed: false },
  ...more,
});
let pods: { metadata: Record<string, unknown>; spec: Record<string, unknown>; status: { phase: string } }[] = [];

const podOf = (name: string, more: object = {}, spec: object = {}) => ({
  metadata: {
    name,
    namespace: 'shop',
    uid: `uid-${name}`,
    ownerReferences: [{ kind: 'ReplicaSet', name: 'rs', controller: true }],
    ...more,
  },
  spec: { containers: [], ...spec },
  status: { phase: 'Running' },
});

async function listen(
  handler: (req: IncomingMessage, body: string) => { status?: number; body: unknown },
  at: number | string,
): Promise<Server> {
  const server = createServer((req, res) => {
    let body = '';
    req.on('data', (chunk: Buffer) => {
      body += String(chunk);
    });
    req.on('end', () => {
      const answer = handler(req, body);
      res.writeHead(answer.status ?? 200, { 'content-type': 'application/json' });
      res.end(JSON.stringify(answer.body));
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => (typeof at === 'string' ? server.listen(at, resolve) : server.listen(at, '127.0.0.1', resolve)));
  return server;
}

/** A deleted pod is there for one more look, as it ends. Its node reads it by no name, as the node authorizer has it. */
function onePod(method: string, { name, body }: { name: string; body: string }): { status?: number; body: unknown } {
  const pod = pods.find((p) => p.metadata.name === name);
  if (pod === undefined) return { status: 404, body: { kind: 'Status', message: `pods "${name}" not found` } };
  if (method !== 'DELETE')
    return { status: 403, body: { kind: 'Status', message: 'no relationship found between the node and this object' } };
  const { preconditions } = JSON.parse(body) as { preconditions: { uid: string } };
  if (preconditions.uid !== pod.metadata.uid)
    return { status: 409, body: { kind: 'Status', message: 'the UID in the precondition is another' } };
  acts.push(`delete ${name} ${body}`);
  pod.metadata = { ...pod.metadata, deletionTimestamp: new Date(NOW).toISOString(), finalizers };
  return { body: pod };
}
function podsLeft(query: string): { status?: number; body: unknown } {
  const name = /^spec\.nodeName=n1,metadata\.name=(\w+)$/.exec(new URLSearchParams(query).get('fieldSelector') ?? '')?.[1];
  if (name === undefined) return { status: 403, body: { kind: 'Status', message: 'a node lists its own pods alone' } };
  const items = pods.filter((p) => p.metadata.name === name);
  if (finalizers === undefined) pods = pods.filter((p) => !items.includes(p));
  return { body: { kind: 'PodList', items } };
}

function apiServer(req: IncomingMessage, body: string): { status?: number; body: unknown } {
  const [path = '', query = ''] = (req.url ?? '').split('?');
  if (req.method === 'PATCH') {
    acts.push(`${req.headers['content-type']} ${path} ${body}`);
    return { body: {} };
  }
  const eviction = /pods\/([^/]+)\/eviction$/.exec(path)?.[1];
  if (eviction !== undefined) {
    if (refusals-- > 0) return { status: 429, body: { kind: 'Status', message: 'Cannot evict pod as it would violate the budget.' } };
    acts.push(`evict ${eviction}`);
    pods = pods.filter((p) => p.metadata.name !== eviction);
    return { status: 201, body: {} };
  }
  const named = /^\/api\/v1\/namespaces\/shop\/pods\/([^/]+)$/.exec(path)?.[1];
  if (named !== undefined) return onePod(req.method ?? '', { name: named, body });
  if (path === '/api/v1/namespaces/shop/pods') return podsLeft(query);
  if (path === '/api/v1/pods') return { body: { kind: 'PodList', items: pods } };
  if (path === '/api/v1/nodes/n1') {
    const nodeInfo = { kubeletVersion: 'v1.36.0+actorlet.1', containerRuntimeVersion: 'containerd://2.0.0' };
    const conditions = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'].map((type) => ({
      type,
      status: type === 'Ready' ? 'True' : 'False',
    }));
    return {
      body: {
        metadata: { name: 'n1', uid: 'uid-n1' },
        spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] },
        status: { nodeInfo, conditions },
      },
    };
  }
  if (path.endsWith('/leases/n1')) {
    return { body: { spec: { renewTime: new Date(NOW - 5_000).toISOString().replace('Z', '000Z'), leaseDurationSeconds: 40 } } };
  }
  return { status: 404, body: { kind: 'Status', message: `nodes ${path} not found` } };
}

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'actorlet-node-'));
  acts = [];
  refusals = 0;
  pods = [podOf('web')];
  known = {
    name: 'n1',
    version: 'v1.36.0+actorlet.1',
    kubeconfig: join(dir, 'kubeconfig'),
    startedAtMs: NOW - 60_000,
    runtime: { name: 'containerd', version: 'v2.0.0~ds1', ready: true, networkReady: true, reason: '' },
    pressures: [],
    api: { state: 'reachable', server: 'http://x', reason: '', sinceMs: NOW },
    registered: { uid: 'uid-n1', registered: true, deleting: false },
    pods: [{ uid: 'uid-web', namespace: 'shop', name: 'web', source: 'api', phase: 'Running' }],
  };
  summaries = [];
  finalizers = undefined;
  const ofDaemon: Record<string, () => unknown> = {
    '/pods': () => ({ pods: summaries }),
    '/configz': () => ({
      kubeletconfig: { staticPodURL: 'https://user:hunter2-planted@manifests.example:8443/pods.yaml?key=hunter2-planted' },
    }),
  };
  await listen((req) => ({ body: ofDaemon[req.url ?? '']?.() ?? known }), join(dir, 'admin.sock'));
  const { port } = (await listen(apiServer, 0)).address() as AddressInfo;
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'u', user: { token: 'hunter2-planted' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(known.kubeconfig, JSON.stringify(config));
});
afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  servers = [];
  rmSync(dir, { recursive: true, force: true });
});

const ctl = (...argv: string[]) => actorctl('node', ...argv);

async function actorctl(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCtl({
    argv: ['--socket', join(dir, 'admin.sock'), ...argv],
    env: {},
    out: (text) => void out.push(text),
    err: (text) => void err.push(text),
    exists: () => false,
    columns: 0,
    nowMs: () => NOW,
    stdin: Readable.from([]),
    outBytes: () => undefined,
    errBytes: () => undefined,
    signal: new AbortController().signal,
  });
  return { code, out: out.join(''), err: err.join('') };
}

describe('actorctl node', () => {
  it('shows both sides, and that they agree', async () => {
    const { code, out, err } = await ctl();
    expect(err).toBe('');
    expect(out).toContain('taints a:NoSchedule');
    expect(out).toMatch(/lease +renewed 5s ago +renews it within 40s/);
    expect(out).toContain('Both sides agree.');
    expect(code).toBe(0);
    expect(JSON.parse((await ctl('-o', 'json')).out)).toMatchObject({ api: { uid: 'uid-n1' }, daemon: { name: 'n1' } });
  });

  it('repeats nothing of a kubeconfig, whole or broken', async () => {
    const file = join(dir, 'other');
    writeFileSync(file, 'users:\n- user:\n    token: hunter2\n   bad: [}\n');
    expect((await ctl('--kubeconfig', file)).err).toMatch(/it is not YAML; give --kubeconfig FILE, or set KUBECONFIG\s*$/);
    writeFileSync(file, readFileSync(known.kubeconfig, 'utf8').replace('http://', 'http://me:hunter2@'));
    const { out, err } = await ctl('--kubeconfig', file);
    expect(out + err).toContain('127.0.0.1');
    expect(out + err).not.toContain('hunter2');
  });

  it('marks what differs', async () => {
    known.runtime.networkReady = false;
    known.pressures = ['DiskPressure'];
    known.pods = [{ uid: 'uid-old', namespace: 'shop', name: 'old', source: 'api', phase: 'Running' }];
    const { code, out } = await ctl();
    expect(code).toBe(1);
    expect(out).toMatch(/^! +Ready +True +False$/m);
    expect(out).toMatch(/^! +DiskPressure +False +True$/m);
    expect(out).toMatch(/^! +pod shop\/web +Running +unknown$/m);
    expect(out).toMatch(/^! +pod shop\/old +none +Running$/m);
    expect(out).toContain('4 of 10 differ (!).');
  });

  it('cordons and uncordons with a merge patch', async () => {
    expect((await ctl('cordon')).out).toBe('node n1 cordoned\n');
    expect((await ctl('uncordon')).code).toBe(0);
    expect(acts).toEqual([
      'application/merge-patch+json /api/v1/nodes/n1 {"spec":{"unschedulable":true}}',
      'application/merge-patch+json /api/v1/nodes/n1 {"spec":{"unschedulable":null}}',
    ]);
  });

  it('drains: evicts what comes again elsewhere, and leaves mirror pods and ended ones of DaemonSets alone', async () => {
    pods.push(
      podOf('static', { ownerReferences: undefined, annotations: { 'kubernetes.io/config.mirror': 'x' } }),
      podOf('agent', { ownerReferences: [{ kind: 'DaemonSet', name: 'ds', controller: true }] }),
    );
    const { code, out } = await ctl('drain', '--ignore-daemonsets');
    expect(out).toBe('node n1 cordoned\npod shop/web evicted\nnode n1 drained, 1 pods evicted\n');
    expect(code).toBe(0);
    expect(acts[1]).toBe('evict web');
  });

  it('does nothing when a pod would be lost, and names each', async () => {
    pods.push(
      podOf('bare', { ownerReferences: undefined }),
      podOf('agent', { ownerReferences: [{ kind: 'DaemonSet', name: 'ds', controller: true }] }),
      podOf('cache', {}, { volumes: [{ name: 'v', emptyDir: {} }] }),
    );
    const { code, err } = await ctl('drain');
    expect(code).toBe(1);
    for (const flag of ['--force', '--ignore-daemonsets', '--delete-emptydir-data']) expect(err).toContain(flag);
    expect(acts).toEqual([]);
  });

  it('says which pod its disruption budget holds back', async () => {
    refusals = 1;
    const { code, err } = await ctl('drain', '--timeout', '1');
    expect(code).toBe(5);
    expect(err).toContain('pod shop/web was not evicted in time: 429 Cannot evict pod as it would violate the budget.');
  });

  it('says what is wrong where there is no node, no cluster, or too old a Node.js', async () => {
    known.name = 'n2';
    const missing = await ctl();
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining('404')]);
    expect(missing.err).not.toContain('hunter2');
    known.api = null;
    expect((await ctl()).err).toContain('is a standalone node');
    expect(() => checkNode('v20.11.0')).toThrow('actorctl node and actorctl delete need Node.js 22.19 or newer');
    expect(() => checkNode('v22.19.0')).not.toThrow();
  });
});

describe('actorctl delete', () => {
  it('deletes the pod that the node has, by its UID, and waits until it is gone', async () => {
    summaries = [summaryOf('web')];
    const { code, out, err } = await actorctl('delete', 'pod', 'web', '-n', 'shop');
    expect([code, out, err]).toEqual([0, 'pod "web" deleted from shop namespace\n', '']);
    expect(acts).toEqual(['delete web {"preconditions":{"uid":"uid-web"}}']);
    expect(pods).toEqual([]);
  });

  it.each([['pod/web'], ['po/shop/web'], ['pods', 'shop/web'], ['pod', 'pod/web']])('takes names as kubectl does: %s', async (...words) => {
    summaries = [summaryOf('web')];
    const { code, out } = await actorctl('delete', ...words, '--grace-period=7', '-o', 'name');
    expect([code, out]).toEqual([0, 'pod/web\n']);
    expect(acts).toEqual(['delete web {"gracePeriodSeconds":7,"preconditions":{"uid":"uid-web"}}']);
  });

  it('deletes several, or none where one of them cannot be deleted', async () => {
    pods.push(podOf('api'));
    summaries = [summaryOf('web'), summaryOf('api'), summaryOf('etcd-n1', { source: 'file' })];
    known.pods = [
      { uid: 'uid-etcd-n1', namespace: 'shop', name: 'etcd-n1', source: 'file', phase: 'Running', manifest: '/etc/m/etcd.yaml' },
    ];
    const none = await actorctl('delete', 'pod', 'web', 'etcd');
    expect([none.code, acts]).toEqual([1, []]);
    expect(none.err).toContain('pod shop/etcd-n1 is a static pod, which no API call deletes. Move its manifest /etc/m/etcd.yaml out of');
    expect((await actorctl('delete', 'pod', 'web', 'absent')).err).toContain('no pod called absent on this node');
    expect(acts).toEqual([]);
    expect((await actorctl('delete', 'pod', 'web', 'api', 'shop/web')).code).toBe(0);
    expect(acts.map((act) => act.split(' ', 2)[1])).toEqual(['web', 'api']);
  });

  it('says what ends a pod that is not of the API server, on a standalone node too', async () => {
    known.api = null;
    summaries = [
      summaryOf('site-n1', { source: 'http' }),
      summaryOf('old-n1', { source: 'file', removed: true }),
      summaryOf('orphan', { source: 'runtime' }),
    ];
    const { err } = await actorctl('delete', 'pod', 'site');
    expect(err).toContain('Take it out of the manifest at https://manifests.example:8443/pods.yaml, and the node stops it.');
    expect(err).not.toContain('hunter2');
    expect((await actorctl('delete', 'pod', 'old')).err).toContain('the manifest of static pod shop/old-n1 is gone');
    expect((await actorctl('delete', 'pod', 'orphan')).err).toContain('no source wants pod shop/orphan, and the node is stopping it');
    expect(acts).toEqual([]);
  });

  it('deletes no other pod of the same name, and says what the API server answered', async () => {
    summaries = [summaryOf('web', { uid: 'uid-earlier' })];
    const { code, err } = await actorctl('delete', 'pod', 'web');
    expect([code, acts]).toEqual([5, []]);
    expect(err).toMatch(/pod shop\/web cannot be deleted at http:\S+: 409 the UID in the precondition is another/);
    pods = [];
    expect((await actorctl('delete', 'pod', 'web')).code).toBe(1);
  });

  it('names what holds a pod that does not end in time; --no-wait does not look', async () => {
    summaries = [summaryOf('web')];
    finalizers = ['example.com/hold'];
    const { code, err } = await actorctl('delete', 'pod', 'web', '--timeout', '0');
    expect([code, err]).toEqual([5, expect.stringContaining('pod shop/web is still being deleted (finalizers: example.com/hold)')]);
    expect((await actorctl('delete', 'pod', 'web', '--no-wait')).code).toBe(0);
  });

  it.each([
    [['pod'], 'say which pod'],
    [['node', 'n1'], 'only pods; kubectl deletes a node'],
    [['service', 'web'], 'and no service'],
    [['pod', 'web', '-l', 'a=b'], 'pods are named here'],
    [['pod', 'web', '-o', 'yaml'], 'the only output format is -o name'],
    [['pod', 'web', '--grace-period=0'], 'at least 1'],
    [['pod', 'web', '--grace-period=1.5'], 'a whole number'],
    [['pod', 'web', '--timeout=x'], '--timeout is a number'],
    [['pod', 'web', '--recording', 'x.rec'], 'a recording is the past'],
  ])('refuses %j', async (words, why) => {
    const { code, err } = await actorctl('delete', ...words);
    expect([code, err]).toEqual([2, expect.stringContaining(why)]);
    expect(acts).toEqual([]);
  });
});

it('compares mirror pods by name, an expired lease, and leaves out pods that ended long ago', () => {
  const api: ApiNode = {
    uid: 'uid-n1',
    unschedulable: false,
    kubeletVersion: 'x',
    runtimeVersion: '',
    conditions: [],
    taints: [],
    lease: { renewMs: NOW - 60_000, durationS: 40 },
    pods: [
      { uid: 'mirror-uid', namespace: 'shop', name: 'static', phase: 'Running', mirror: true, deleting: false },
      { uid: 'done', namespace: 'shop', name: 'done', phase: 'Succeeded', mirror: false, deleting: false },
    ],
  };
  const page = { ...known, pods: [{ uid: 'own', namespace: 'shop', name: 'static', source: 'file', phase: 'Running' }] };
  const rows = compareNode(page, api, NOW);
  expect(rows.filter((r) => r.what.startsWith('pod ')).map((r) => [r.what, r.differs])).toEqual([['pod shop/static', false]]);
  expect(rows.find((r) => r.what === 'lease')).toMatchObject({ differs: true, api: 'renewed 60s ago, expired' });
});
