/** Environment from secrets and config maps: what `golden/config/environment.test.ts` has no row for. */
import { describe, expect, it } from 'vitest';
import type { ApiObject, ObjectResult } from '../../../src/machines/kube/objects.ts';
import type { Container } from '../../../src/machines/kube/podTable.ts';
import { containerReferences, podReferences } from '../../../src/machines/pod/volumes/references.ts';
import { containerEnv } from '../../../src/machines/pods/workers/config/env.ts';
import { container, FACTS, pod } from '../pods/fixtures.ts';

const bytes = (s: string) => new TextEncoder().encode(s);
const secret = (data: Record<string, string>): ObjectResult<ApiObject> => ({
  kind: 'found',
  value: { data: Object.fromEntries(Object.entries(data).map(([k, v]) => [k, bytes(v)])) },
});
const configMap = (data: Record<string, string>): ObjectResult<ApiObject> => ({ kind: 'found', value: { data, binaryData: {} } });

function input(c: Partial<Container>, objects: Record<string, ObjectResult<ApiObject>> = {}) {
  const named = new Map(Object.entries(objects).map(([key, o]) => [key.replace(' ', ' ns/'), o]));
  return {
    pod: pod({}),
    container: container('main', c),
    podIPs: [],
    facts: FACTS,
    cluster: { services: new Map(), objects: named },
  };
}
function env(...args: Parameters<typeof input>): Record<string, string> | string {
  const result = containerEnv(input(...args));
  return result.ok ? Object.fromEntries(result.value.map(({ key, value }) => [key, value])) : result.message;
}
const fromSecret = (name: string, key: string, optional?: boolean) => ({
  secretKeyRef: { name, key, ...(optional === undefined ? {} : { optional }) },
});
const fromMap = (name: string, key: string, optional?: boolean) => ({
  configMapKeyRef: { name, key, ...(optional === undefined ? {} : { optional }) },
});

describe('a variable from an object', () => {
  it.each([
    [
      'the words of the API server',
      fromMap('c', 'k'),
      { 'configMap c': { kind: 'absent', message: 'configmaps "c" not found' } },
      'configmaps "c" not found',
    ],
    ['a key of every object', fromMap('c', 'toString'), { 'configMap c': configMap({}) }, "couldn't find key toString in ConfigMap ns/c"],
    ['an object nobody asked for', fromSecret('s', 'k'), {}, 'object "ns"/"s" not registered'],
  ] as const)('refuses %s', (_, valueFrom, objects, message) => {
    expect(env({ env: [{ name: 'A', valueFrom }] }, objects as Record<string, ObjectResult<ApiObject>>)).toBe(message);
  });

  it('that is no text refuses no container: what cannot be read of it is U+FFFD', () => {
    const data = { k: new Uint8Array([0x68, 0xff]), t: bytes('text') };
    const c = { envFrom: [{ secretRef: { name: 's' } }], env: [{ name: 'A', valueFrom: fromSecret('s', 'k') }] };
    expect(env(c, { 'secret s': { kind: 'found', value: { data } } })).toEqual({ k: 'h\ufffd', t: 'text', A: 'h\ufffd' });
  });
});

describe('envFrom', () => {
  it('takes names that shells do not: others may refer to them', () => {
    const c: Partial<Container> = {
      envFrom: [
        { prefix: '1-', secretRef: { name: 's' } },
        { prefix: '#', configMapRef: { name: 'c' } },
      ],
      env: [
        { name: '!"$%&', value: '$(1-a) $(#2b)' },
        { name: '#', value: '$(!"$%&)' },
      ],
    };
    expect(env(c, { 'configMap c': configMap({ '2b': 'x', '..': 'y' }), 'secret s': secret({ a: 'z' }) })).toEqual({
      '1-a': 'z',
      '#2b': 'x',
      '#..': 'y',
      '!"$%&': 'z x',
      '#': 'z x',
    });
  });
});

describe('what a pod names', () => {
  it('is found in environments of all containers, mounted volumes and pull secrets, each once', () => {
    const main = container('main', {
      envFrom: [{ secretRef: { name: 'a' } }, { configMapRef: { name: 'b' } }],
      env: [{ name: 'X', valueFrom: fromSecret('a', 'k') }],
      volumeMounts: [
        { name: 'v', mountPath: '/v' },
        { name: 'p', mountPath: '/p' },
      ],
    });
    const p = pod({
      containers: [main],
      initContainers: [container('init', { env: [{ name: 'Y', valueFrom: fromMap('i', 'k') }] })],
      imagePullSecrets: [{ name: 'pull' }, {}],
      volumes: [
        { name: 'v', secret: { secretName: 'vol' } },
        { name: 'unused', secret: { secretName: 'unused' } },
        {
          name: 'p',
          projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }, { secret: { name: 'vol' } }, { downwardAPI: {} }] },
        },
      ],
    });
    expect([...podReferences(p).keys()].sort()).toEqual([
      'configMap ns/b',
      'configMap ns/i',
      'configMap ns/kube-root-ca.crt',
      'secret ns/a',
      'secret ns/pull',
      'secret ns/vol',
    ]);
    expect(containerReferences(main, 'shop')).toEqual([
      { kind: 'secret', namespace: 'shop', name: 'a' },
      { kind: 'configMap', namespace: 'shop', name: 'b' },
    ]);
  });
});
