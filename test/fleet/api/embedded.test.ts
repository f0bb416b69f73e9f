/** The API server of a fleet's own process: asked over HTTPS as kubectl asks, with nodes and the small scheduler behind it. */
import { request } from 'node:https';
import { describe, expect, it } from 'vitest';
import { createClock } from '../../../src/boot/dependencies/clock.ts';
import { startEmbeddedApi } from '../../../src/boot/fleet/embedded/server.ts';
import { embeddedWorld, quietLog } from '../../../src/boot/fleet/world.ts';
import { plainFleet } from '../../../src/fleet/file.ts';
import { Fleet } from '../../../src/fleet/fleet.ts';
import { chosenNode } from '../../../src/fleet/scheduler.ts';
import type { KubeObject } from '../../../src/machines/kube/request.ts';

interface Answer {
  status: number;
  body: { kind?: string; rows?: { cells: string[] }[]; items?: { spec: { nodeName?: string } }[]; resources?: { name: string }[] };
}

function client(kubeconfig: string) {
  const { clusters, users } = JSON.parse(kubeconfig) as {
    clusters: { cluster: { server: string } }[];
    users: { user: { token: string } }[];
  };
  const token = users[0]?.user.token ?? '';
  return (method: string, path: string, o: { body?: string; accept?: string; token?: string } = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${o.token ?? token}`,
        accept: o.accept ?? 'application/json',
        'content-type': 'application/json',
      };
      const req = request(`${clusters[0]?.cluster.server}${path}`, { method, headers, rejectUnauthorized: false, agent: false }, (res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        res.on('end', () => resolve({ status: res.statusCode ?? 0, body: JSON.parse(text) as Answer['body'] }));
      });
      req.once('error', reject);
      req.end(o.body);
    });
}

const POD = { apiVersion: 'v1', kind: 'Pod', spec: { containers: [{ name: 'main', image: 'web' }] } };
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';

describe('an embedded API server', () => {
  it('shows a fleet to kubectl, and binds pods that come up', { timeout: 60_000 }, async () => {
    const clock = createClock();
    const api = await startEmbeddedApi(clock, 1);
    const ask = client(api.kubeconfig);
    await using fleet = new Fleet(
      plainFleet({ name: 'demo', nodes: 3, prefix: 'n', seed: 1 }),
      embeddedWorld(api, { clock, socket: '', log: quietLog }),
    );
    // Before there is a node.
    expect(
      (await ask('POST', '/api/v1/namespaces/default/pods', { body: JSON.stringify({ ...POD, metadata: { name: 'early' } }) })).status,
    ).toBe(201);
    await fleet.start();
    for (const name of ['a', 'b'])
      await ask('POST', '/api/v1/namespaces/default/pods', { body: JSON.stringify({ ...POD, metadata: { name } }) });
    const table = async () =>
      (await ask('GET', '/api/v1/pods', { accept: TABLE })).body.rows?.map((r) => r.cells.slice(0, 4).join(' ')).sort();
    await expect.poll(table, { timeout: 30_000 }).toEqual(['a 1/1 Running 0', 'b 1/1 Running 0', 'early 1/1 Running 0']);
    const { items = [] } = (await ask('GET', '/api/v1/pods')).body;
    expect(new Set(items.map((p) => p.spec.nodeName)).size).toBe(3);
    expect((await ask('GET', '/api/v1')).body.resources?.map((r) => r.name)).toContain('pods');
    expect((await ask('GET', '/apis')).body.kind).toBe('APIGroupList');
    await api.close();
  });

  it('answers nobody without its token, and says what is wrong with a request', async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const ask = client(api.kubeconfig);
    const codes = [
      await ask('GET', '/api/v1/nodes', { token: 'other' }),
      await ask('GET', '/nowhere'),
      await ask('OPTIONS', '/api/v1/nodes'),
      await ask('POST', '/api/v1/namespaces/default/pods', { body: '{' }),
      await ask('PATCH', '/api/v1/nodes/n', { body: '{}' }),
      await ask('GET', '/api/v1/namespaces/default/pods/a/log'),
      await ask('POST', '/api/v1/namespaces/default/pods/a/exec'),
      await ask('GET', '/api/v1/nodes/n/proxy/stats/summary'),
    ].map(({ status, body }) => `${status} ${body.kind}`);
    expect(codes).toEqual(['401 Status', '404 Status', '405 Status', '400 Status', '415 Status', '501 Status', '501 Status', '501 Status']);
    await api.close();
  });
});

describe('the small scheduler', () => {
  const node = (
    name: string,
    o: { ready?: boolean; taints?: object[]; labels?: Record<string, string>; unschedulable?: boolean } = {},
  ): KubeObject => ({
    metadata: { name, labels: o.labels ?? {} },
    spec: { taints: o.taints ?? [], unschedulable: o.unschedulable ?? false },
    status: { conditions: [{ type: 'Ready', status: o.ready === false ? 'False' : 'True' }], allocatable: { pods: '2' } },
  });
  const GPU = [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }];
  const nodes = [
    node('a'),
    node('b', { labels: { zone: 'b' } }),
    node('gpu', { taints: GPU }),
    node('off', { ready: false }),
    node('cordoned', { unschedulable: true }),
  ];
  it.each([
    [{}, {}, 'a'],
    [{}, { a: 1 }, 'b'],
    [{ nodeSelector: { zone: 'b' } }, { b: 1 }, 'b'],
    [{ nodeSelector: { zone: 'b' } }, { b: 2 }, undefined],
    [{ tolerations: [{ key: 'gpu', operator: 'Exists' }] }, { a: 1, b: 1 }, 'gpu'],
    [{ tolerations: [{ key: 'gpu', value: 'no' }] }, { a: 2, b: 2 }, undefined],
    [{ tolerations: [{ operator: 'Exists', effect: 'NoExecute' }] }, { a: 2, b: 2 }, undefined],
  ])('takes for %j with %j the node %s', (spec, podsOn, name) => {
    expect(chosenNode({ metadata: { name: 'p' }, spec }, nodes, new Map(Object.entries(podsOn)))).toBe(name);
  });
});
