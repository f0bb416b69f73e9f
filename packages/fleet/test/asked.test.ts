/** Expectations about objects, events, requests of clients, and what is left behind. */
import { createClock } from '@actorlet/kubelet/boot/dependencies/clock.ts';
import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { simKube } from '@actorlet/world/src/kube/kubeApi.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { describe, expect, it } from 'vitest';
import { limited } from '../src/boot/api/limited.ts';
import { asksProxy, decodeFleet, withFaults } from '../src/file.ts';
import { startFleet } from '../src/index.ts';
import { ApiCalls } from '../src/proxy/calls.ts';
import { apiRequest } from '../src/proxy/request.ts';
import { Cluster } from '../src/run/cluster.ts';
import { leftBehind } from '../src/run/leftBehind.ts';
import { where } from '../src/run/where.ts';

const fileOf = (spec: string) =>
  decodeFleet(`apiVersion: actorlet.dev/v1alpha1
kind: Fleet
metadata: { name: asked }
spec:
  groups: [{ name: a, count: 1 }]
  ${spec}`);
function specOf(spec: string) {
  const read = fileOf(spec);
  if (!read.ok) throw new Error(JSON.stringify(read.errors));
  return read.value;
}

describe('a condition in CEL', () => {
  const object = { spec: { replicas: 3 }, status: { ready: 3, share: 0.5, conditions: [{ type: 'Ready', status: 'True' }] } };

  it.each([
    ['object.spec.replicas == object.status.ready', true],
    ['object.spec.replicas * 2 == 6 && object.status.share < 1', true],
    ['object.status.conditions.exists(c, c.type == "Ready" && c.status == "True")', true],
    ['!has(object.metadata) && object.?spec.?nope.orValue(7) == 7', true],
    ['object.status.conditions.exists(c, c.type.matches("^R.*y$"))', true],
    ['object.status.conditions.all(c, c.type.matches("^r"))', false],
    ['object.nope.deeper == 1', false],
    ['object.spec', false],
  ])('%s: %s', (text, fits) => {
    expect(where(text)(object)).toBe(fits);
  });

  it.each([
    ['object.spec.replicas ==', /where is no condition in CEL: Unexpected token/],
    ['objekt.spec.replicas == 1', /where is no condition in CEL: Unknown variable: objekt/],
    ['object.name.matches("(?=a)b")', /where is no condition in CEL: error parsing regexp: invalid or unsupported Perl syntax/],
    ['object.all(o, o.matches("(a)\\\\1"))', /where is no condition in CEL: error parsing regexp: invalid escape sequence/],
    ['1.matches("a")', /where is no condition in CEL: .*matches/],
    ['1 + 1', /where is no condition in CEL: gives int, and must be true or false/],
  ])('that is wrong is told with its field: %s', (text, message) => {
    const read = fileOf(`expect: [{ objects: { kind: Pod }, where: '${text}', atLeast: 1, within: 5s }]`);
    expect(read.ok ? '' : read.errors.map((e) => `${e.field.replace(/.*\./, '')} ${e.message}`).join('\n')).toMatch(message);
  });
});

it('a pattern of matches takes no longer than the text is long', () => {
  const fits = where('object.texts.exists(t, t.matches("^(a+)+$")) || object.texts.exists(t, t.matches(object.pattern))');
  const fromMs = performance.now();
  expect(fits({ texts: [`${'a'.repeat(5_000)}b`], pattern: '(a|aa)+$' })).toBe(false);
  expect(fits({ texts: ['aaa'], pattern: 'x'.repeat(2_000) })).toBe(true);
  // JavaScript's own expressions would not end.
  expect(performance.now() - fromMs).toBeLessThan(20_000);
});

it('a condition that would take for ever is ended, and that is said', () => {
  const objects = [{ metadata: { name: 'a' }, list: Array.from({ length: 1_000 }, (_, i) => i) }];
  const holds = where('object.list.all(a, object.list.all(b, object.list.all(c, a + b + c >= 0)))');
  const clock = createClock();
  const kube = simKube({ clock, rng: simRng('asked'), latencyMs: () => 0 }).connect({ power: { on: true }, clock, node: '' });
  const cluster = new Cluster(kube, { limited: (act) => limited(act, 50), clock, signal: AbortSignal.timeout(60_000) });
  expect(() => cluster.fitting(objects, holds)).toThrow('the condition on 1 objects takes too long: it was ended after 0.05 s');
});

it('an expectation after the faults is looked at from the end of the last one on', () => {
  const spec = specOf(`steps:
    - { at: 10s, do: inject, api: { fault: stale-reads, age: 4s, for: 3s } }
    - { at: 12s, do: restart }
  expect:
    - { objects: { kind: Pod }, atLeast: 1, afterFaults: 20s }
    - { requests: { verbs: [update], per: minute }, atMost: 30 }
    - { leftBehind: 0, within: 90s }`);
  expect(asksProxy(spec)).toBe(true);
  expect(withFaults(spec).expect).toMatchObject([
    { afterMs: 13_000, withinMs: 33_000 },
    { name: 'at most 30 requests a minute update', withinMs: null },
    { name: 'at most 0 objects left behind', atMost: 0, withinMs: 90_000 },
  ]);
});

it('requests of clients are counted by what they are about, and the most within any minute is known', () => {
  let nowMs = 0;
  const calls = new ApiCalls(() => nowMs);
  const count = (method: string, name: string, userAgent = 'website/v1') =>
    calls.count(apiRequest({ method, url: `/api/v1/namespaces/default/configmaps/${name}`, userAgent, user: '' }));
  for (const atS of [0, 10, 50, 65, 100, 200]) {
    nowMs = atS * 1_000;
    count('PUT', 'a');
  }
  count('GET', 'a');
  count('PUT', 'b', 'kubectl/v1');
  const writes = { userAgents: ['website'], verbs: ['update'] } as const;
  expect(calls.sum(writes, 'run')).toBe(6);
  // From 10 s to 65 s, and from 50 s to 100 s.
  expect(calls.sum(writes, 'minute')).toBe(3);
  expect(calls.table()).toEqual({ 'website: update configmaps': 6, 'website: get configmaps': 1, 'kubectl: update configmaps': 1 });
});

it('a client that calls itself by ever new names is counted, and costs no more than so much', () => {
  const calls = new ApiCalls(() => 0);
  for (let i = 0; i < 22_500; i += 1) calls.count(apiRequest({ method: 'GET', url: '/api/v1/pods', userAgent: `a${i}`, user: '' }));
  calls.count(apiRequest({ method: 'GET', url: `/api/v1/${'x'.repeat(10_000)}`, userAgent: 'a0', user: '' }));
  expect(calls.sum({}, 'run')).toBe(22_501);
  expect(Object.keys(calls.table())).toHaveLength(22_000);
});

it('what waits for a finalizer is left behind, and so is what has lost all its owners', () => {
  const object = (name: string, more: object): KubeObject => ({ metadata: { name, namespace: 'default', uid: name, ...more } });
  const owner = (kind: string, uid: string) => ({ kind, name: uid, uid });
  const left = leftBehind([
    { kind: 'Website', objects: [object('site', {}), object('stuck', { deletionTimestamp: 'now', finalizers: ['example.com/site'] })] },
    {
      kind: 'Deployment',
      objects: [
        object('owned', { ownerReferences: [owner('Website', 'site')] }),
        object('orphan', { ownerReferences: [owner('Website', 'gone')] }),
        object('half', { ownerReferences: [owner('Website', 'gone'), owner('Website', 'site')] }),
        object('unknown', { ownerReferences: [owner('Other', 'gone')] }),
      ],
    },
  ]);
  expect(left).toEqual(['Website/default/stuck: waits for example.com/site', 'Deployment/default/orphan: its owner Website gone is gone']);
});

it('a test expects conditions, events and that nothing is left behind', async () => {
  const fleet = await startFleet({ nodes: 1, api: 'embedded', name: 'asked', proxy: true });
  try {
    await fleet.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { size: '3' } });
    const settings = { kind: 'ConfigMap', name: 'settings' };
    expect(await fleet.expect({ objects: settings, where: 'int(object.data.size) >= 3', atLeast: 1 })).toBe(1);
    await expect(fleet.expect({ objects: settings, where: 'object.data.size == "4"', atLeast: 1, within: '1s' })).rejects.toThrow(
      'there is 0',
    );
    await fleet.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, spec: { containers: [{ name: 'web', image: 'web' }] } });
    await fleet.expect({ events: { reason: 'Started', kind: 'Pod', name: 'web' }, atLeast: 1 });
    expect(await fleet.expect({ requests: { verbs: ['update'] }, atMost: 0 })).toBe(0);
    await fleet.expect({ leftBehind: 0 });
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'gone' };
    await fleet.apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'orphan', ownerReferences: [owner] } });
    await expect(fleet.expect({ leftBehind: 0, within: '1s' })).rejects.toThrow('there is 1');
  } finally {
    await fleet.stop();
  }
});
