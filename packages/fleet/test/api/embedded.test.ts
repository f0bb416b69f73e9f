/** The API server of a fleet's own process: asked over HTTPS as kubectl asks, with nodes and the small scheduler behind it. */
import { request } from 'node:https';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { RESOURCES } from '@actorlet/world/src/kube/kubeRoutes.ts';
import { describe, expect, it } from 'vitest';
import { limited } from '../../src/boot/api/limited.ts';
import { startEmbeddedApi } from '../../src/boot/embedded/server.ts';
import { embeddedWorld, quietLog } from '../../src/boot/world.ts';
import { plainFleet } from '../../src/file.ts';
import { Fleet } from '../../src/fleet.ts';
import { Cluster } from '../../src/run/cluster.ts';
import { chosenNode, wishesOf } from '../../src/scheduler.ts';

interface Answer {
  status: number;
  body: {
    kind?: string;
    message?: string;
    metadata?: { uid: string; deletionGracePeriodSeconds?: number };
    rows?: { cells: string[]; object?: { metadata: { labels?: Record<string, string> } } }[];
    items?: { metadata: { name: string }; spec: { nodeName?: string } }[];
    resources?: { name: string }[];
    paths?: Record<
      string,
      { serverRelativeURL?: string; patch?: { parameters: { name: string }[]; 'x-kubernetes-group-version-kind': object } }
    >;
  };
}

function accessOf(kubeconfig: string): { server: string; token: string } {
  const { clusters, users } = JSON.parse(kubeconfig) as {
    clusters: { cluster: { server: string } }[];
    users: { user: { token: string } }[];
  };
  return { server: clusters[0]?.cluster.server ?? '', token: users[0]?.user.token ?? '' };
}

/** A request whose answer is never read. Gives its end. */
function unread(kubeconfig: string, path: string): Promise<() => void> {
  const { server, token } = accessOf(kubeconfig);
  return new Promise((resolve, reject) => {
    const options = { headers: { authorization: `Bearer ${token}` }, rejectUnauthorized: false, agent: false };
    const req = request(`${server}${path}`, options, (res) => {
      res.pause();
      resolve(() => void res.destroy());
    });
    req.once('error', reject);
    req.end();
  });
}

function client(kubeconfig: string) {
  const { server, token } = accessOf(kubeconfig);
  return (
    method: string,
    path: string,
    o: { body?: string | Buffer; accept?: string; token?: string; type?: string } = {},
  ): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = {
        authorization: `Bearer ${o.token ?? token}`,
        accept: o.accept ?? 'application/json',
        'content-type': o.type ?? 'application/json',
        'content-length': Buffer.byteLength(o.body ?? ''),
      };
      const req = request(`${server}${path}`, { method, headers, rejectUnauthorized: false, agent: false }, (res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        res.on('end', () => resolve({ status: res.statusCode ?? 0, body: JSON.parse(text || '{}') as Answer['body'] }));
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
    await expect.poll(table).toEqual(['a 1/1 Running 0', 'b 1/1 Running 0', 'early 1/1 Running 0']);
    const { rows = [] } = (await ask('GET', '/api/v1/nodes', { accept: TABLE })).body;
    expect(rows.map((r) => r.object?.metadata.labels?.['actorlet.dev/fleet'])).toEqual(['demo', 'demo', 'demo']);
    expect(api.connect('n-0').server).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
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
      await ask('GET', '//'),
      await ask('GET', '//[/x'),
      await ask('OPTIONS', '/api/v1/nodes'),
      await ask('POST', '/api/v1/namespaces/default/pods', { body: '{' }),
      await ask('PATCH', '/api/v1/nodes/n', { body: '{}' }),
      await ask('GET', '/api/v1/namespaces/default/pods/a/log'),
      await ask('POST', '/api/v1/namespaces/default/pods/a/exec'),
      await ask('GET', '/api/v1/nodes/n/proxy/stats/summary'),
    ].map(({ status, body }) => `${status} ${body.kind}`);
    expect(codes).toEqual([
      '401 Status',
      '404 Status',
      '404 Status',
      '404 Status',
      '405 Status',
      '400 Status',
      '415 Status',
      '501 Status',
      '501 Status',
      '501 Status',
    ]);
    await api.close();
  });
});

describe('readers that do not read', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heldMiB = (): number => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return (heapUsed + external) / 2 ** 20;
  };
  const MAPS = '/api/v1/namespaces/default/configmaps';
  const big = (i: number) => ({ metadata: { name: 'big' }, data: { text: `${i}`.padEnd(2 ** 20, 'x') } });

  it('cost what the history may hold, however many watches there are, and go on from where they stopped', async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const signal = AbortSignal.timeout(60_000);
    const write = (verb: 'POST' | 'PUT', path: string, i: number) =>
      api.admin.request({ verb, path, body: big(i) }, { timeoutMs: 10_000, signal });
    expect((await write('POST', MAPS, 0)).ok).toBe(true);
    const path = `${MAPS}?watch=true&resourceVersion=1001`;
    const ends = await Promise.all(Array.from({ length: 12 }, () => unread(api.kubeconfig, path)));
    const before = heldMiB();
    for (let i = 1; i <= 200; i++) expect((await write('PUT', `${MAPS}/big`, i)).ok).toBe(true);
    // 12 * 200 MiB would wait for them.
    expect(heldMiB() - before).toBeLessThan(200);
    const behind = await api.admin.watch({ path: MAPS, query: { resourceVersion: '1001' } }, { timeoutMs: null, signal });
    const lines: string[] = [];
    if (behind.ok) for await (const line of behind.lines) lines.push(line);
    expect(lines.join()).toContain('too old resource version');
    for (const end of ends) end();
    await api.close();
  });

  it('of long lists make others wait, who are told so', async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const signal = AbortSignal.timeout(60_000);
    for (let i = 0; i < 16; i++) {
      const body = { ...big(i), metadata: { name: `big-${i}` } };
      await api.admin.request({ verb: 'POST', path: MAPS, body }, { timeoutMs: 10_000, signal });
    }
    const ask = client(api.kubeconfig);
    const ends: (() => void)[] = [];
    const isRefused = async () => (await ask('GET', '/api/v1/nodes')).status === 429;
    while (!(await isRefused()) && ends.length < 40) ends.push(await unread(api.kubeconfig, MAPS));
    expect(ends.length).toBeLessThan(20);
    for (const end of ends) end();
    await expect.poll(async () => (await ask('GET', '/api/v1/nodes')).status).toBe(200);
    await api.close();
  });
});

describe('numbers of a client', () => {
  const NUMBERS = ['-1e99', '1e99', '1e308', '-1', '0', '0.5', '9007199254740991', '-9007199254740991', '"x"', 'null', '[]'];
  it('that lead out of the calendar or are none are refused or bounded, and are no error of the server', async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const ask = client(api.kubeconfig);
    const namespace = '/api/v1/namespaces/default';
    for (const n of NUMBERS) {
      const token = await ask('POST', `${namespace}/serviceaccounts/default/token`, { body: `{"spec":{"expirationSeconds":${n}}}` });
      expect([n, token.status]).toEqual([n, n === 'null' ? 201 : /^-?\d+$/.test(n) ? 422 : 400]);
      await ask('POST', `${namespace}/pods`, { body: JSON.stringify({ ...POD, metadata: { name: 'p', finalizers: ['a/b'] } }) });
      const answers = [
        await ask('DELETE', `${namespace}/pods/p`, { body: `{"gracePeriodSeconds":${n}}` }),
        await ask('DELETE', `${namespace}/pods/p?gracePeriodSeconds=${encodeURIComponent(n)}`),
        await ask('GET', `/api/v1/pods?limit=${encodeURIComponent(n)}&resourceVersion=${encodeURIComponent(n)}`),
        await ask('GET', `/api/v1/pods?continue=${encodeURIComponent(`${n}:${n}`)}`),
        await ask('POST', `${namespace}/events`, { body: `{"metadata":{"generateName":"e"},"lastTimestamp":${n},"count":${n}}` }),
        await ask('GET', '/api/v1/events', { accept: TABLE }),
        await ask('POST', `${namespace}/pods`, {
          body: JSON.stringify({ ...POD, metadata: { name: 'q' } }).replace('"spec":{', `"spec":{"terminationGracePeriodSeconds":${n},`),
        }),
      ];
      expect(answers.filter(({ status }) => status === 500).map(({ body }) => `${n}: ${body.message}`)).toEqual([]);
    }
    await api.close();
  });
});

describe('a client', () => {
  it('is told in a Status what was not there, and which version was too new', async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const ask = client(api.kubeconfig);
    const path = '/api/v1/namespaces/default/configmaps';
    expect((await ask('GET', `${path}/none`)).body).toMatchObject({ reason: 'NotFound', details: { name: 'none', kind: 'configmaps' } });
    expect((await ask('GET', `${path}?resourceVersion=999999`)).body).toMatchObject({
      ...{ code: 504, reason: 'Timeout', details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } },
    });
    await api.close();
  });

  it.each([
    ['watch=1', 'BOOKMARK'],
    ['watch=True', 'BOOKMARK'],
    ['watch=0', 'ConfigMapList'],
    ['watch=false', 'ConfigMapList'],
  ])('that says %s gets a %s', async (parameter, expected) => {
    const api = await startEmbeddedApi(createClock(), 1);
    const query = `${parameter}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1`;
    const { body } = await client(api.kubeconfig)('GET', `/api/v1/namespaces/default/configmaps?${query}`);
    expect((body as { type?: string }).type ?? body.kind).toBe(expected);
    await api.close();
  });
});

describe('kubectl', () => {
  const PROTOBUF = 'application/vnd.kubernetes.protobuf';
  const field = (number: number, bytes: Buffer | string): Buffer => {
    const content = Buffer.from(bytes);
    return Buffer.concat([Buffer.from([number * 8 + 2, content.length]), content]);
  };
  const envelope = (raw: Buffer): Buffer =>
    Buffer.concat([Buffer.from('k8s\0'), field(1, Buffer.concat([field(1, 'v1'), field(2, 'DeleteOptions')])), field(2, raw)]);

  it('hears that bodies are JSON, and first that a resource is not there', async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const ask = client(api.kubeconfig);
    const create = async (path: string) => {
      const { status, body } = await ask('POST', path, { body: envelope(Buffer.alloc(0)), type: PROTOBUF });
      return `${status} ${body.message}`;
    };
    expect(await create('/api/v1/namespaces/default/configmaps')).toMatch(
      /^415 .*reads application\/json alone. Use kubectl create -f FILE/,
    );
    for (const path of ['/api/v1/namespaces', '/apis/apps/v1/namespaces/default/deployments'])
      expect(await create(path)).toBe(`404 the server could not find the requested resource: ${path}`);
    await api.close();
  });

  it('drains a node: options of a deletion are read in protobuf too', async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const ask = client(api.kubeconfig);
    const path = '/api/v1/namespaces/default/pods';
    const pod = { ...POD, metadata: { name: 'p' }, spec: { ...POD.spec, nodeName: 'n' } };
    const uid = (await ask('POST', path, { body: JSON.stringify(pod) })).body.metadata?.uid ?? '';
    const remove = async (raw: Buffer, body = envelope(raw)) => ask('DELETE', `${path}/p`, { body, type: PROTOBUF });
    const grace = Buffer.from([8, 7]);
    expect((await remove(field(2, field(1, 'another')))).status).toBe(409);
    expect((await remove(grace, envelope(grace).subarray(0, -1))).body.message).toContain('the body: index out of range');
    expect((await remove(grace, Buffer.from('{}'))).body.message).toBe('the body: is no protobuf of Kubernetes');
    const { status, body } = await remove(Buffer.concat([grace, field(2, field(1, uid))]));
    expect({ status, grace: body.metadata?.deletionGracePeriodSeconds }).toEqual({ status: 200, grace: 7 });
    await api.close();
  });

  it('finds in OpenAPI that the server itself judges objects of every kind', async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const ask = client(api.kubeconfig);
    const { paths = {} } = (await ask('GET', '/openapi/v3')).body;
    const pages = await Promise.all(Object.values(paths).map(async (p) => (await ask('GET', p.serverRelativeURL ?? '')).body.paths ?? {}));
    const kinds = pages.flatMap((page) => Object.values(page)).map(({ patch }) => patch);
    expect(kinds.length).toBe(RESOURCES.length);
    expect(await ask('GET', '/openapi/v2')).toEqual({ status: 200, body: {} });
    for (const patch of kinds) expect(patch?.parameters[0]?.name).toBe('fieldValidation');
    expect(kinds.map((patch) => patch?.['x-kubernetes-group-version-kind'])).toContainEqual({
      group: 'coordination.k8s.io',
      version: 'v1',
      kind: 'Lease',
    });
    await api.close();
  });
});

describe('selectors', () => {
  it.each([
    ['pods', 'fieldSelector=spec.nodeName=n1', ['a', 'b']],
    ['pods', 'fieldSelector=spec.nodeName==n1,status.phase!=Failed,status.phase!=Succeeded', ['a']],
    ['pods', 'fieldSelector=spec.nodeName!=', ['a', 'b']],
    ['pods', 'fieldSelector=spec.nodeName=,metadata.name!=x', ['c']],
    ['pods', 'fieldSelector=spec.hostNetwork=false', ['a', 'b', 'c']],
    ['pods', 'fieldSelector=spec.tolerations=x', 'field label not supported: spec.tolerations'],
    ['pods', 'fieldSelector=metadata.name', "invalid selector: can't understand 'metadata.name'"],
    ['pods', 'watch=true&fieldSelector=x=y', 'field label not supported: x'],
    ['pods', 'labelSelector=app=web', ['a']],
    ['pods', 'labelSelector=app in (db,web),app!=web', ['b']],
    ['pods', 'labelSelector=((', 'unable to parse requirement: (('],
    ['nodes', 'fieldSelector=spec.unschedulable=false', ['n1']],
    ['nodes', 'fieldSelector=metadata.name!=n1', []],
    // As the kubelet of 1.36 asks.
    ['services', 'fieldSelector=spec.clusterIP!=None', ['s1']],
    ['events', 'fieldSelector=involvedObject.name=a,reason!=Pulled', ['e1']],
  ])('of %s: %s', async (resource, query, expected) => {
    const api = await startEmbeddedApi(createClock(), 1);
    const ask = client(api.kubeconfig);
    const post = (path: string, body: object) => ask('POST', path, { body: JSON.stringify(body) });
    const namespace = '/api/v1/namespaces/default';
    await post('/api/v1/nodes', { metadata: { name: 'n1' } });
    for (const [name, app, nodeName] of [
      ['a', 'web', 'n1'],
      ['b', 'db', 'n1'],
      ['c', 'other', ''],
    ])
      await post(`${namespace}/pods`, { metadata: { name, labels: { app } }, spec: { ...POD.spec, nodeName } });
    for (const [name, clusterIP] of [
      ['s1', '10.0.0.1'],
      ['s2', 'None'],
    ])
      await post(`${namespace}/services`, { metadata: { name }, spec: { clusterIP } });
    await ask('PATCH', `${namespace}/pods/b/status`, { body: '{"status":{"phase":"Failed"}}', type: 'application/merge-patch+json' });
    await post(`${namespace}/events`, { metadata: { name: 'e1' }, involvedObject: { name: 'a' }, reason: 'Started' });
    await post(`${namespace}/events`, { metadata: { name: 'e2' }, involvedObject: { name: 'a' }, reason: 'Pulled' });
    const { status, body } = await ask('GET', `/api/v1/${resource}?${encodeURI(query)}`);
    if (Array.isArray(expected)) expect(body.items?.map((o) => o.metadata.name)).toEqual(expected);
    else expect({ status, message: body.message }).toEqual({ status: 400, message: expected });
    await api.close();
  });
});

describe('malformed objects', () => {
  const containers = [{ name: 'main', image: 'web' }];
  const pod = (spec: unknown, metadata: unknown = { name: 'p' }) => ({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
  const nested = (depth: number): string => `{"metadata":{"name":"deep"},"data":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`;
  it.each([
    ['pods', 422, 'Pod "p" is invalid: spec.containers: at least one container is required', pod({ containerz: [] })],
    ['pods', 400, 'cannot be handled as a Pod: spec.containers: must be a list, not a mapping', pod({ containers: {} })],
    ['pods', 422, 'spec.containers[0].name: required', pod({ containers: [null] })],
    ['pods', 400, 'spec.containers[0]: must be a mapping, not a string', pod({ containers: ['web'] })],
    ['pods', 400, 'spec.initContainers: must be a list', pod({ containers, initContainers: 7 })],
    ['pods', 422, 'spec.volumes[0].name', pod({ containers, volumes: [null] })],
    ['pods', 400, 'spec.tolerations: must be a list', pod({ containers, tolerations: { a: 1 } })],
    ['pods', 400, 'spec: must be a mapping, not a list', pod([])],
    ['pods', 422, 'spec.containers: at least one container is required', pod(undefined)],
    ['pods', 422, 'metadata.name: required', pod({ containers }, null)],
    ['pods', 400, 'metadata.name: must be a string, not a number', pod({ containers }, { name: 7 })],
    ['pods', 422, 'metadata.name', pod({ containers }, { name: 'A B' })],
    ['pods', 400, 'metadata.labels.a: must be a string', pod({ containers }, { name: 'p', labels: { a: 1 } })],
    ['pods', 400, 'metadata: must be a mapping', pod({ containers }, [])],
    ['configmaps', 422, 'metadata.name', { metadata: { name: 'a/b' } }],
    ['configmaps', 400, 'data: must be a mapping, not a list', { metadata: { name: 'c' }, data: [] }],
    ['events', 400, 'metadata: must be a mapping', { metadata: 'e' }],
    ['configmaps', 400, 'the body is no object', []],
    ['configmaps', 400, 'the body is no object', null],
    ['configmaps', 400, 'nests deeper than', nested(300)],
    ['configmaps', 400, 'nests deeper than', nested(100_000)],
    ['configmaps', 400, 'is longer than', ' '.repeat(3 * 1024 * 1024 + 1)],
    ['pods/p', 405, 'does not allow this method', pod({ containers })],
  ])('are refused in %s with %s: %s', async (where, code, message, body) => {
    const api = await startEmbeddedApi(createClock(), 1);
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await client(api.kubeconfig)('POST', `/api/v1/namespaces/default/${where}`, { body: text });
    expect(answer.body.message).toContain(message);
    expect(answer.status).toBe(code);
    await api.close();
  });

  it('are refused where a patch makes them so, and a node needs no status', async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const ask = client(api.kubeconfig);
    const patch = (path: string, body: unknown) => ask('PATCH', path, { body: JSON.stringify(body), type: 'application/merge-patch+json' });
    await ask('POST', '/api/v1/namespaces/default/pods', { body: JSON.stringify(pod({ containers })) });
    expect((await ask('POST', '/api/v1/nodes', { body: '{"metadata":{"name":"bare"}}' })).status).toBe(201);
    const path = '/api/v1/namespaces/default/pods/p';
    const answers = [
      await patch(path, { spec: { containers: null } }),
      await patch(path, { spec: [] }),
      await patch(path, { metadata: null }),
      await patch(`${path}/status`, { status: { conditions: 'all' } }),
      await patch('/api/v1/nodes/bare/status', { status: { conditions: [7] } }),
      await patch(path, null),
      await ask('GET', '/api/v1/nodes', { accept: TABLE }),
      await ask('GET', '/api/v1/pods', { accept: TABLE }),
      await ask('GET', '/api/v1/namespaces/%zz/pods'),
    ];
    expect(answers.map((a) => a.status)).toEqual([422, 400, 200, 400, 400, 400, 200, 200, 400]);
    await api.close();
  });

  it('are told by the step of a fleet that applies them, which goes on', async () => {
    const clock = createClock();
    const api = await startEmbeddedApi(clock, 1);
    const signal = new AbortController().signal;
    const cluster = new Cluster(api.admin, { limited, clock, signal });
    await expect(cluster.apply(pod({ containerz: [] }) as unknown as KubeObject)).rejects.toThrow(
      'Invalid: Pod "p" is invalid: spec.containers: at least one container is required',
    );
    await cluster.apply(pod({ containers }) as unknown as KubeObject);
    await api.close();
  });
});

describe('events', () => {
  it('go an hour after their last change', { timeout: 20_000 }, async () => {
    const clock = createClock();
    let passedMs = 0;
    const hurried = { ...clock, wallMs: () => clock.wallMs() + passedMs, setTimeout: (fn: () => void) => clock.setTimeout(fn, 20) };
    const api = await startEmbeddedApi(hurried, 1);
    const ask = client(api.kubeconfig);
    const path = '/api/v1/namespaces/default/events';
    const post = (name: string, lastTimestamp: number) =>
      ask('POST', path, { body: JSON.stringify({ metadata: { name }, lastTimestamp: new Date(lastTimestamp).toISOString() }) });
    await post('old', clock.wallMs());
    await post('repeated', clock.wallMs() + 3_000_000);
    passedMs = 3_700_000;
    await expect.poll(async () => (await ask('GET', path)).body.items?.map((e) => e.metadata.name)).toEqual(['repeated']);
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

  const READY = { conditions: [{ type: 'Ready', status: 'True' }], allocatable: { pods: '2' } };
  const world = async () => {
    const api = await startEmbeddedApi(createClock(), 1);
    const ask = client(api.kubeconfig);
    const path = '/api/v1/namespaces/default/pods';
    const make = (name: string, spec: object = {}) =>
      ask('POST', path, { body: JSON.stringify({ ...POD, metadata: { name }, spec: { ...POD.spec, ...spec } }) });
    const merge = (at: string, body: object) => ask('PATCH', at, { body: JSON.stringify(body), type: 'application/merge-patch+json' });
    const bound = async (): Promise<string[] | undefined> =>
      (await ask('GET', `${path}?fieldSelector=spec.nodeName!=`)).body.items?.map((p) => p.metadata.name);
    await ask('POST', '/api/v1/nodes', { body: JSON.stringify({ metadata: { name: 'n' }, status: READY }) });
    return { api, path, make, merge, bound };
  };

  it('leaves pods of another scheduler and gated ones alone, and counts no pod that has ended', { timeout: 20_000 }, async () => {
    const { api, path, make, merge, bound } = await world();
    await make('other', { schedulerName: 'mine' });
    await make('gated', { schedulingGates: [{ name: 'example.com/wait' }] });
    for (const name of ['done', 'a', 'b']) await make(name);
    await expect.poll(bound).toEqual(['a', 'done']);
    await merge(`${path}/done/status`, { status: { phase: 'Succeeded' } });
    await expect.poll(bound).toEqual(['a', 'b', 'done']);
    await merge(`${path}/a/status`, { status: { phase: 'Failed' } });
    await merge(`${path}/gated`, { spec: { schedulingGates: null } });
    await expect.poll(bound).toEqual(['a', 'b', 'done', 'gated']);
    await api.close();
  });

  it('looks once at pods that wish the same and have no place', () => {
    const all = Array.from({ length: 5 }, () => node('gpu', { taints: GPU }));
    const wishes = wishesOf({ metadata: { name: 'p' }, spec: { tolerations: GPU, containers: [] } });
    expect(wishes).toBe(wishesOf({ metadata: { name: 'q' }, spec: { tolerations: GPU } }));
    expect(wishes).not.toBe(wishesOf({ metadata: { name: 'q' }, spec: {} }));
    expect(chosenNode({ metadata: { name: 'p' }, spec: {} }, all, new Map())).toBeUndefined();
  });
});
