/** Faults of clients as data: how a file says them, what the seed draws, and which requests they select. */
import { describe, expect, it } from 'vitest';
import { decodeFleet, withFaults } from '../../src/file.ts';
import { startFleet } from '../../src/index.ts';
import { apiRequest, quotedObject, shownRequest } from '../../src/proxy/request.ts';
import { type ApiSelection, selects } from '../../src/proxy/selection.ts';

const fileOf = (spec: string): string => `apiVersion: actorlet.dev/v1alpha1
kind: Fleet
metadata: { name: trouble }
spec:
  groups: [{ name: a, count: 1 }]
  ${spec}`;
function wrong(spec: string): string[] {
  const read = decodeFleet(fileOf(spec));
  return read.ok ? [] : read.errors.map(({ field, message }) => `${field} ${message}`);
}
const specOf = (spec: string) => {
  const read = decodeFleet(fileOf(spec));
  if (!read.ok) throw new Error(JSON.stringify(read.errors));
  return read.value;
};

describe('a fleet file', () => {
  it('has faults of clients among its steps; what must be old first begins earlier', () => {
    const { steps } = specOf('steps: [{ at: 20s, do: inject, api: { fault: stale-reads, userAgents: [website], age: 5s, for: 3s } }]');
    expect(steps).toMatchObject([
      {
        atMs: 15_000,
        name: 'stale-reads@20s',
        api: { fault: 'stale-reads', ageMs: 5_000, forMs: 3_000, select: { userAgents: ['website'] } },
      },
    ]);
  });

  it.each([
    ['steps: [{ at: 1s, do: inject, api: { fault: stale } }]', /api\.fault must be one of stale-reads, /],
    ['steps: [{ at: 1s, do: inject, api: { fault: slow, age: 1s } }]', /api\.age belongs to stale-reads/],
    [
      'steps: [{ at: 1s, do: inject, api: { fault: conflict, verbs: [get] } }]',
      /verbs conflict is about update, patch, delete, not about get/,
    ],
    ['steps: [{ at: 1s, do: inject, api: { fault: conflict, userAgents: [] } }]', /userAgents must not be an empty list/],
    ['steps: [{ at: 1s, do: inject, api: { fault: slow }, scenario: x.yaml }]', /scenario stands beside api/],
    ['steps: [{ at: 1s, do: restart, api: { fault: slow } }]', /api belongs to inject/],
    ['trouble: { from: 9s, to: 1s }', /trouble\.to must not be less than from/],
    ['trouble: { faults: [slow, none] }', /faults/],
  ])('is told what is wrong with %s', (spec, message) => {
    expect(wrong(spec).join('\n')).toMatch(message);
  });

  it('draws the same faults for the same seed, within their times', () => {
    const drawn = (seed: number) =>
      withFaults(specOf(`seed: ${seed}\n  trouble: { userAgents: [website], count: 20, from: 10s, to: 20s }`)).steps;
    expect(drawn(1)).toEqual(drawn(1));
    expect(drawn(2)).not.toEqual(drawn(1));
    expect(drawn(1)).toHaveLength(20);
    for (const step of drawn(1)) {
      if (!('api' in step)) throw new Error('another step was drawn');
      const effectMs = step.atMs + (step.api.fault === 'stale-reads' ? step.api.ageMs : 0);
      expect(effectMs).toBeGreaterThanOrEqual(10_000);
      expect(effectMs).toBeLessThanOrEqual(20_000);
    }
  });
});

describe('a request', () => {
  const request = (method: string, url: string) =>
    apiRequest({ method, url, userAgent: 'website/v1.2 (linux/amd64)', user: 'system:serviceaccount:web:site' });

  it.each([
    ['GET', '/apis/apps/v1/namespaces/default/deployments?watch=1', 'watch deployments.apps default'],
    ['GET', '/apis/apps/v1/deployments?watch=false', 'list deployments.apps'],
    ['GET', '/api/v1/namespaces/default', 'get namespaces default'],
    ['PATCH', '/api/v1/namespaces/a/pods/b/status', 'patch pods/status a/b'],
    ['DELETE', '/api/v1/namespaces/a/pods', 'delete pods a'],
    ['GET', '/api/v1/namespaces/a/pods/%ZZ', 'get pods a/%ZZ'],
    ['GET', '/openapi/v3', '/openapi/v3'],
  ])('%s %s is: %s', (method, url, shown) => {
    expect(shownRequest(request(method, url))).toBe(shown);
  });

  it('for the status of an object is named in messages as the object is', () => {
    expect(quotedObject(request('PUT', '/apis/apps/v1/namespaces/default/deployments/web/status'))).toBe('deployments.apps "web"');
    expect(quotedObject(request('GET', '/api/v1/namespaces/default/pods/a'))).toBe('pods "a"');
  });

  it('is selected by client, user, verb, resource, namespace and name, and by nothing that differs', () => {
    const it = request('PUT', '/apis/apps/v1/namespaces/default/deployments/web/status');
    const yes: ApiSelection[] = [
      {},
      { userAgents: ['website'] },
      { userAgents: ['web*amd64*'] },
      { users: ['system:serviceaccount:web:*'] },
      { verbs: ['update'], resources: ['deployments/status'], namespaces: ['default'], names: ['w*'] },
      { resources: ['deployments.apps/status'] },
      { names: ['x', '**'] },
      { names: ['*e*'] },
      { names: ['w*e**b'] },
    ];
    const no: ApiSelection[] = [
      { userAgents: ['web'] },
      { users: ['system:serviceaccount:other:*'] },
      { verbs: ['patch'] },
      { resources: ['deployments'] },
      { namespaces: ['kube-system'] },
      { names: ['x'] },
      { names: ['web*b'] },
      { names: ['w*e*e*b'] },
      { names: ['*e'] },
    ];
    expect(yes.filter((selection) => !selects(selection)(it))).toEqual([]);
    expect(no.filter((selection) => selects(selection)(it))).toEqual([]);
  });

  it('is looked through once, however many stars a pattern has', () => {
    const long = request('GET', `/api/v1/namespaces/a/pods/${'a'.repeat(16_000)}`);
    expect(selects({ names: [`${'*a'.repeat(20)}b`] })(long)).toBe(false);
    expect(selects({ names: ['*a'.repeat(20)] })(long)).toBe(true);
  });
});

it('a test injects a fault, and is told what is wrong with one, or that there is no proxy', async () => {
  const fleet = await startFleet({ nodes: 1, api: 'embedded', proxy: true, seed: 57 });
  try {
    await fleet.injectApi({ fault: 'throttle', userAgents: ['website'], times: 1 });
    expect(fleet.apiHits()).toEqual([]);
    await expect(fleet.injectApi({ fault: 'throttle', age: '1s' })).rejects.toThrow('injectApi: age belongs to stale-reads');
  } finally {
    await fleet.stop();
  }
  const plain = await startFleet({ nodes: 1, api: 'embedded', name: 'plain' });
  try {
    await expect(plain.injectApi({ fault: 'slow' })).rejects.toThrow('proxy: true');
  } finally {
    await plain.stop();
  }
});
