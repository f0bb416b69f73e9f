/** Answers of the simulated API server that a user's controller meets, as a real one gives them (tried with 1.36.2). */

import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { KubeObject, KubeRequest, KubeVerb, PatchType } from '@actorlet/kubelet/machines/kube/request.ts';
import { describe, expect, it } from 'vitest';
import { simKube } from '../src/kube/kubeApi.ts';
import { simRng } from '../src/rng.ts';
import { SimTime } from '../src/time.ts';

const NAMESPACE = '/api/v1/namespaces/default';
const MAPS = `${NAMESPACE}/configmaps`;
const PODS = `${NAMESPACE}/pods`;
const SPEC = { containers: [{ name: 'main', image: 'web' }] };

interface Asked {
  query?: KubeRequest['query'];
  body?: unknown;
  patchType?: PatchType;
}
interface Said {
  code: number;
  message: string;
  object: KubeObject;
  /** Of a list. */
  names: string[];
  next: string;
}

function server() {
  const clock = new SimTime(simRng('ties')).clockFor({ on: true });
  const kube = simKube({ clock, rng: simRng('kube'), latencyMs: () => 0, forPeople: true });
  const ask = (verb: KubeVerb, path: string, { query = {}, ...rest }: Asked = {}): Said => {
    const result = kube.handle({ verb, path, query, ...rest });
    const body = (result.ok ? result.body : {}) as KubeObject & { items?: KubeObject[] };
    return {
      code: result.ok ? result.code : result.failure.code,
      message: result.ok ? '' : result.failure.message,
      object: body,
      names: body.items?.map((o) => o.metadata.name) ?? [],
      next: String((body.metadata as unknown as { continue?: string } | undefined)?.continue ?? ''),
    };
  };
  const make = (path: string, name: string, more: object = {}, metadata: object = {}): Said =>
    ask('POST', path, { body: { ...more, metadata: { name, ...metadata } } });
  return { kube, ask, make };
}

describe('a dry run', () => {
  const All = { dryRun: 'All' };
  it('answers as a write does, and writes nothing', () => {
    const { kube, ask, make } = server();
    make(MAPS, 'kept', { data: { a: '1' } });
    const before = kube.store.resourceVersion;
    const answers = [
      ask('POST', MAPS, { query: All, body: { metadata: { name: 'new' } } }),
      ask('POST', MAPS, { query: All, body: { metadata: { name: 'kept' } } }),
      ask('PATCH', `${MAPS}/kept`, { query: All, patchType: 'merge', body: { data: { a: '2' } } }),
      ask('DELETE', `${MAPS}/kept`, { query: All }),
      ask('DELETE', `${MAPS}/kept`, { body: { dryRun: ['All'] } }),
      ask('DELETE', MAPS, { query: All }),
      ask('DELETE', `${MAPS}/kept`, { query: { dryRun: 'some' } }),
    ];
    expect(answers.map(({ code }) => code)).toEqual([201, 409, 200, 200, 200, 200, 422]);
    expect(answers[2]?.object.data).toEqual({ a: '2' });
    expect(ask('GET', MAPS).names).toEqual(['kept']);
    expect(ask('GET', `${MAPS}/kept`).object.data).toEqual({ a: '1' });
    expect(kube.store.resourceVersion).toBe(before);
  });
});

describe('memory', () => {
  it('of old changes and calls is bounded where people use it', async () => {
    const { kube, ask, make } = server();
    make(MAPS, 'busy');
    const from = kube.store.resourceVersion;
    for (let n = 0; n < 25_000; n++) ask('PATCH', `${MAPS}/busy`, { patchType: 'merge', body: { data: { n: String(n) } } });
    expect(kube.store.since(0).length).toBeLessThanOrEqual(20_000);
    expect(kube.store.since(0).length).toBeGreaterThanOrEqual(10_000);
    const api = kube.connect({ power: { on: true }, clock: createClock() });
    const opts = { timeoutMs: null, signal: new AbortController().signal };
    await api.request({ verb: 'GET', path: MAPS }, opts);
    expect(kube.calls).toEqual([]);
    const read = async (resourceVersion: number): Promise<string> => {
      const watch = await api.watch({ path: MAPS, query: { resourceVersion: String(resourceVersion) } }, opts);
      for await (const line of watch.ok ? watch.lines : []) return line;
      return '';
    };
    expect(await read(from)).toContain('"code":410');
    expect(await read(kube.store.compactedTo)).toContain('"MODIFIED"');
  });

  it('of changes for a reader that does not read is bounded: its watch ends, and goes on from there', async () => {
    const { kube, ask, make } = server();
    make(MAPS, 'busy');
    const api = kube.connect({ power: { on: true }, clock: createClock() });
    const query = { resourceVersion: String(kube.store.resourceVersion) };
    const watch = await api.watch({ path: MAPS, query }, { timeoutMs: null, signal: new AbortController().signal });
    for (let n = 0; n < 6_000; n++) ask('PATCH', `${MAPS}/busy`, { patchType: 'merge', body: { data: { n: String(n) } } });
    const lines: string[] = [];
    for await (const line of watch.ok ? watch.lines : []) lines.push(line);
    expect(lines.length).toBe(5_000);
    expect(lines.at(-1)).toContain('"n":"4999"');
  });
});

describe('a selector', () => {
  it('of 160,000 signs is answered at once, whatever they are', () => {
    const { ask, make } = server();
    make(MAPS, 'one');
    const began = performance.now();
    for (const sign of ['a', '=', '!', ',', '\\', ' ', '(', 'a=', 'in (', '!=,'])
      for (const query of [{ fieldSelector: sign.repeat(160_000 / sign.length) }, { labelSelector: sign.repeat(160_000 / sign.length) }])
        expect([200, 400]).toContain(ask('GET', MAPS, { query }).code);
    // A quadratic one takes minutes.
    expect(performance.now() - began).toBeLessThan(20_000);
  });
});

describe('a list in pages', () => {
  it('is of one moment, whatever is made and deleted between them', () => {
    const { ask, make } = server();
    for (const name of ['b', 'c', 'd', 'e', 'f']) make(MAPS, name);
    const limit = '2';
    const first = ask('GET', MAPS, { query: { limit } });
    for (const name of ['b', 'e']) ask('DELETE', `${MAPS}/${name}`);
    make(MAPS, 'g');
    const second = ask('GET', MAPS, { query: { limit, continue: first.next } });
    const third = ask('GET', MAPS, { query: { limit, continue: second.next } });
    expect([first, second, third].map(({ names }) => names)).toEqual([['b', 'c'], ['d', 'e'], ['f']]);
    expect(third.object.metadata.resourceVersion).toBe(first.object.metadata.resourceVersion);
    expect(third.next).toBe('');
  });

  it.each([
    [{ continue: 'x' }, 400],
    [{ limit: 'x' }, 400],
    [{ resourceVersion: 'x' }, 400],
    [{ resourceVersion: '999999' }, 504],
    [{ resourceVersion: '999999', resourceVersionMatch: 'Exact' }, 504],
    [{ continue: '1:2' }, 410],
  ])('with %j is refused with %i', (query, code) => {
    const { ask, make } = server();
    make(MAPS, 'a');
    expect(ask('GET', MAPS, { query }).code).toBe(code);
  });
});

describe('a watch', () => {
  it('takes a version that is a number, and 0 seconds for no limit', async () => {
    const { kube } = server();
    const api = kube.connect({ power: { on: true }, clock: createClock() });
    const given = new AbortController();
    const opts = { timeoutMs: null, signal: given.signal };
    const codeOf = async (query: Record<string, string>): Promise<number> => {
      const watch = await api.watch({ path: MAPS, query }, opts);
      return watch.ok ? 200 : watch.failure.code;
    };
    expect([await codeOf({ resourceVersion: 'x' }), await codeOf({ timeoutSeconds: 'x' })]).toEqual([400, 400]);
    const watch = await api.watch({ path: MAPS, query: { timeoutSeconds: '0' } }, opts);
    const read = async (): Promise<void> => {
      for await (const line of watch.ok ? watch.lines : []) throw new Error(line);
    };
    setTimeout(() => given.abort(), 20);
    await expect(read()).rejects.toThrow('aborted');
  });
});

describe('an object', () => {
  it('goes with its last finalizer, a pod too once its grace is over', () => {
    const { ask, make } = server();
    const finalizers = ['example.com/a', 'example.com/b'];
    for (const [path, more] of [
      [MAPS, {}],
      [PODS, { spec: SPEC }],
    ] as const) {
      make(path, 'held', more, { finalizers });
      expect(ask('DELETE', `${path}/held`).object.metadata.deletionTimestamp).toBeDefined();
      const patch = (left: string[]): Said =>
        ask('PATCH', `${path}/held`, { patchType: 'merge', body: { metadata: { finalizers: left } } });
      expect(patch([...finalizers, 'example.com/c']).message).toContain('no new finalizers can be added');
      expect(patch(['example.com/b']).code).toBe(200);
      expect(ask('GET', `${path}/held`).code).toBe(200);
      expect(patch([]).code).toBe(200);
      expect(ask('GET', `${path}/held`).code).toBe(404);
    }
    make(PODS, 'runs', { spec: { ...SPEC, nodeName: 'n' } }, { finalizers });
    ask('DELETE', `${PODS}/runs`);
    ask('PATCH', `${PODS}/runs`, { patchType: 'merge', body: { metadata: { finalizers: [] } } });
    // Its node ends it.
    expect(ask('GET', `${PODS}/runs`).object.metadata.deletionGracePeriodSeconds).toBe(30);
    ask('DELETE', `${PODS}/runs`, { query: { gracePeriodSeconds: '0' } });
    expect(ask('GET', `${PODS}/runs`).code).toBe(404);
  });

  it('is made without what only a server sets, and is of its kind and name', () => {
    const { ask, make } = server();
    const deletionTimestamp = '2020-01-01T00:00:00Z';
    expect(make(MAPS, 'copied', {}, { deletionTimestamp, finalizers: ['a/b'] }).object.metadata.deletionTimestamp).toBeUndefined();
    make('/api/v1/nodes', 'node', {}, { namespace: 'default' });
    expect(ask('GET', '/api/v1/nodes/node').code).toBe(200);
    expect(make(MAPS, 'other', { kind: 'Secret' }).code).toBe(400);
    expect(make(MAPS, 'other', { apiVersion: 'v2' }).code).toBe(400);
    expect(ask('PUT', `${MAPS}/copied`, { body: { metadata: { name: 'another' } } }).code).toBe(400);
  });
});

describe('a subresource', () => {
  it('that is none is not found, and none is deleted in place of its object', () => {
    const { ask, make } = server();
    make(PODS, 'p', { spec: SPEC });
    make(MAPS, 'c');
    const merge = { patchType: 'merge', body: { metadata: { labels: { a: 'b' } } } } as const;
    const codes = [
      ask('DELETE', `${PODS}/p/status`),
      ask('DELETE', `${PODS}/p/nonsense`),
      ask('PATCH', `${PODS}/p/nonsense`, merge),
      ask('GET', `${PODS}/p/status/more`),
      ask('GET', `${MAPS}/c/status`),
      ask('PATCH', MAPS, merge),
      ask('DELETE', '/api/v1/configmaps'),
      ask('PATCH', `${PODS}/p/status`, merge),
      ask('GET', `${PODS}/p/resize`),
    ].map(({ code }) => code);
    expect(codes).toEqual([405, 404, 404, 404, 404, 405, 405, 200, 200]);
    expect(ask('GET', `${PODS}/p`).object.metadata.labels).toEqual({ a: 'b' });
  });

  it('binds a pod to a node, once', () => {
    const { ask, make } = server();
    make(PODS, 'p', { spec: SPEC });
    const bind = (name: string): Said => ask('POST', `${PODS}/p/binding`, { body: { target: { kind: 'Node', name } } });
    expect([bind('').code, bind('n1').code, bind('n2').code]).toEqual([422, 201, 409]);
    expect(ask('GET', `${PODS}/p`).object.spec).toMatchObject({ nodeName: 'n1' });
  });

  it('a collection of pods is deleted with the grace that is asked for', () => {
    const { ask, make } = server();
    make(PODS, 'p', { spec: { ...SPEC, nodeName: 'n' } });
    ask('DELETE', PODS, { body: { gracePeriodSeconds: 7 } });
    expect(ask('GET', `${PODS}/p`).object.metadata.deletionGracePeriodSeconds).toBe(7);
  });
});

describe('a patch', () => {
  const patched = (patchType: PatchType, body: unknown): Said => {
    const { ask, make } = server();
    const env = [{ name: 'A', value: '1' }];
    const spec = { containers: [{ ...SPEC.containers[0], env }], tolerations: [{ key: 'a' }] };
    make(PODS, 'p', { spec }, { finalizers: ['example.com/a'], labels: { app: 'web', 'a/b': 'c' } });
    return ask('PATCH', `${PODS}/p`, { patchType, body });
  };

  it('that is strategic merges finalizers and lists that have a key', () => {
    const finalizers = (metadata: object) => patched('strategic', { metadata }).object.metadata.finalizers;
    expect(finalizers({ finalizers: ['example.com/b'] })).toEqual(['example.com/b', 'example.com/a']);
    expect(finalizers({ '$deleteFromPrimitiveList/finalizers': ['example.com/a'] })).toEqual([]);
    const spec = { containers: [{ name: 'main', image: 'other', env: [{ name: 'A', value: '1' }] }] };
    expect(patched('strategic', { spec }).object.spec).toMatchObject({
      containers: [{ image: 'other', env: [{ name: 'A', value: '1' }] }],
    });
  });

  it.each([
    [[{ op: 'add', path: '/metadata/labels/tier', value: 'db' }], { app: 'web', 'a/b': 'c', tier: 'db' }],
    [[{ op: 'replace', path: '/metadata/labels/a~1b', value: 'd' }], { app: 'web', 'a/b': 'd' }],
    [[{ op: 'remove', path: '/metadata/labels/app' }], { 'a/b': 'c' }],
    [[{ op: 'move', from: '/metadata/labels/app', path: '/metadata/labels/was' }], { 'a/b': 'c', was: 'web' }],
    [[{ op: 'copy', from: '/metadata/labels/app', path: '/metadata/labels/too' }], { app: 'web', 'a/b': 'c', too: 'web' }],
    [[{ op: 'test', path: '/metadata/labels/app', value: 'db' }], 422],
    [[{ op: 'remove', path: '/metadata/labels/none' }], 422],
    [[{ op: 'replace', path: '/metadata/labels/none', value: '' }], 422],
    [[{ op: 'add', path: '/metadata/finalizers/2', value: '' }], 422],
    [[{ op: 'add', path: '/metadata/labels/__proto__', value: {} }], 422],
    [[{ op: 'add', path: 'metadata', value: 'b' }], 400],
    [[{ op: 'none', path: '/metadata' }], 400],
    [{ metadata: {} }, 400],
  ])('of JSON %j gives %j', (body, expected) => {
    const { code, object } = patched('json', body);
    expect(code === 200 ? object.metadata.labels : code).toEqual(expected);
  });

  it('of JSON makes no object large or deep by copies of copies', () => {
    const each = (count: number, made: (n: number) => object) =>
      patched(
        'json',
        Array.from({ length: count }, (_, n) => made(n)),
      ).message;
    const copied = each(30, (n) => ({ op: 'copy', from: '', path: `/spec/x${n}` }));
    expect(copied).toContain('copies of a JSON patch have at most');
    expect(each(210, (n) => ({ op: 'add', path: `/spec${'/x'.repeat(n + 1)}`, value: {} }))).toContain('nests deeper than');
  });

  it('of JSON knows places in lists', () => {
    const body = [
      { op: 'add', path: '/metadata/finalizers/-', value: 'example.com/c' },
      { op: 'add', path: '/metadata/finalizers/1', value: 'example.com/b' },
      { op: 'remove', path: '/metadata/finalizers/0' },
    ];
    expect(patched('json', body).object.metadata.finalizers).toEqual(['example.com/b', 'example.com/c']);
  });
});

describe('the spec of a pod', () => {
  it.each([
    ['', { containers: [{ ...SPEC.containers[0], image: 'other' }] }, 200],
    ['', { tolerations: [{ key: 'a' }], activeDeadlineSeconds: 5 }, 200],
    ['', { nodeName: 'n' }, 422],
    ['', { hostNetwork: true }, 422],
    ['', { nodeSelector: { a: 'b' } }, 422],
    ['', { containers: [{ ...SPEC.containers[0], command: ['x'] }] }, 422],
    ['', { containers: [...SPEC.containers, { name: 'more', image: 'web' }] }, 422],
    ['', { containers: [{ ...SPEC.containers[0], resources: { requests: { cpu: '1' } } }] }, 422],
    ['/resize', { containers: [{ ...SPEC.containers[0], resources: { requests: { cpu: '1' } } }] }, 200],
    ['', { ephemeralContainers: [{ name: 'debug', image: 'web' }] }, 422],
    ['/ephemeralcontainers', { ephemeralContainers: [{ name: 'debug', image: 'web' }] }, 200],
  ])('changed%s to %j is answered with %i', (sub, spec, code) => {
    const { ask, make } = server();
    make(PODS, 'p', { spec: SPEC });
    expect(ask('PATCH', `${PODS}/p${sub}`, { patchType: 'merge', body: { spec } }).code).toBe(code);
    const { object } = ask('GET', `${PODS}/p`);
    expect(ask('PUT', `${PODS}/p`, { body: { ...object, metadata: { ...object.metadata, labels: { a: 'b' } } } }).code).toBe(200);
  });

  it('that is gated may still say where the pod goes', () => {
    const { ask, make } = server();
    make(PODS, 'p', { spec: { ...SPEC, schedulingGates: [{ name: 'example.com/wait' }] } });
    const body = { spec: { schedulingGates: null, nodeSelector: { zone: 'a' } } };
    expect(ask('PATCH', `${PODS}/p`, { patchType: 'merge', body }).code).toBe(200);
    expect(ask('PATCH', `${PODS}/p`, { patchType: 'merge', body: { spec: { nodeSelector: null } } }).code).toBe(422);
  });
});
