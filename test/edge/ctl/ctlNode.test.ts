/** `actorctl node` between a daemon's admin socket and an API server, both played by small HTTP servers. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runCtl } from '../../../src/ctl/cli.ts';
import { checkNode } from '../../../src/ctl/commands/nodeApi.ts';
import { type ApiNode, compareNode, type NodeFactsPage } from '../../../src/machines/shown/nodePage.ts';

const NOW = Date.parse('2026-05-01T12:00:00Z');
let dir = '';
let known: NodeFactsPage;
let servers: Server[] = [];
/** What the API server was asked to do. */
let acts: string[] = [];
/** Evictions that the disruption budget refuses. */
let refusals = 0;
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

function apiServer(req: IncomingMessage, body: string): { status?: number; body: unknown } {
  const path = (req.url ?? '').split('?', 1)[0] ?? '';
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
    runtime: { name: 'containerd', version: '2.0.0', ready: true, networkReady: true, reason: '' },
    pressures: [],
    api: { state: 'reachable', server: 'http://x', reason: '', sinceMs: NOW },
    registered: { uid: 'uid-n1', registered: true, deleting: false },
    pods: [{ uid: 'uid-web', namespace: 'shop', name: 'web', source: 'api', phase: 'Running' }],
  };
  await listen(() => ({ body: known }), join(dir, 'admin.sock'));
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

async function ctl(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCtl({
    argv: ['--socket', join(dir, 'admin.sock'), 'node', ...argv],
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
    expect(() => checkNode('v20.11.0')).toThrow('actorctl node needs Node.js 22.19 or newer');
    expect(() => checkNode('v22.19.0')).not.toThrow();
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
