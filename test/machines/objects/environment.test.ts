/** Environment from secrets, config maps and services. */
import { describe, expect, it } from 'vitest';
import type { ApiObject, ObjectResult, ServiceEntry } from '../../../src/machines/kube/objects.ts';
import type { Container } from '../../../src/machines/kube/podTable.ts';
import { serviceVariables, toServiceEntry } from '../../../src/machines/pod/serviceEnv.ts';
import { containerReferences, podReferences } from '../../../src/machines/pod/volumes/references.ts';
import { containerEnv } from '../../../src/machines/pods/workers/config/env.ts';
import { container, FACTS, pod } from '../pods/fixtures.ts';

const bytes = (s: string) => new TextEncoder().encode(s);
const secret = (data: Record<string, string>): ObjectResult<ApiObject> => ({
  kind: 'found',
  value: { data: Object.fromEntries(Object.entries(data).map(([k, v]) => [k, bytes(v)])) },
});
const configMap = (data: Record<string, string>): ObjectResult<ApiObject> => ({ kind: 'found', value: { data, binaryData: {} } });
const GONE: ObjectResult<ApiObject> = { kind: 'absent' };

function input(c: Partial<Container>, objects: Record<string, ObjectResult<ApiObject>> = {}, services: Record<string, string> = {}) {
  const named = new Map(Object.entries(objects).map(([key, o]) => [key.replace(' ', ' ns/'), o]));
  return {
    pod: pod({}),
    container: container('main', c),
    podIPs: [],
    facts: FACTS,
    cluster: { services: new Map(Object.entries(services)), objects: named },
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
  it('has the value of its key', () => {
    const c = {
      env: [
        { name: 'A', valueFrom: fromSecret('s', 'user') },
        { name: 'B', valueFrom: fromMap('c', 'mode') },
      ],
    };
    expect(env(c, { 'secret s': secret({ user: 'röot' }), 'configMap c': configMap({ mode: 'fast $(A)' }) })).toEqual({
      A: 'röot',
      B: 'fast $(A)',
    });
  });

  it.each([
    ['a secret that is not there', fromSecret('s', 'k'), { 'secret s': GONE }, 'secret "s" not found'],
    ['a config map that is not there', fromMap('c', 'k'), { 'configMap c': GONE }, 'configmap "c" not found'],
    [
      'the words of the API server',
      fromMap('c', 'k'),
      { 'configMap c': { kind: 'absent', message: 'configmaps "c" not found' } },
      'configmaps "c" not found',
    ],
    ['a key that is not there', fromSecret('s', 'k'), { 'secret s': secret({}) }, "couldn't find key k in Secret ns/s"],
    [
      'a key of a config map that is not there',
      fromMap('c', 'k'),
      { 'configMap c': configMap({ x: '' }) },
      "couldn't find key k in ConfigMap ns/c",
    ],
    ['a key of every object', fromMap('c', 'toString'), { 'configMap c': configMap({}) }, "couldn't find key toString in ConfigMap ns/c"],
    [
      'an object that cannot be asked for, though optional',
      fromSecret('s', 'k', true),
      { 'secret s': { kind: 'failed', message: 'no route' } },
      'no route',
    ],
    ['an object nobody asked for', fromSecret('s', 'k'), {}, 'object "ns"/"s" not registered'],
  ] as const)('refuses %s', (_, valueFrom, objects, message) => {
    expect(env({ env: [{ name: 'A', valueFrom }] }, objects as Record<string, ObjectResult<ApiObject>>)).toBe(message);
  });

  it('that is no text refuses no container: what cannot be read of it is U+FFFD', () => {
    const data = { k: new Uint8Array([0x68, 0xff]), t: bytes('text') };
    const c = { envFrom: [{ secretRef: { name: 's' } }], env: [{ name: 'A', valueFrom: fromSecret('s', 'k') }] };
    expect(env(c, { 'secret s': { kind: 'found', value: { data } } })).toEqual({ k: 'h\ufffd', t: 'text', A: 'h\ufffd' });
  });

  it('optional and missing leaves what envFrom and services gave (trap 47)', () => {
    const c = {
      envFrom: [{ configMapRef: { name: 'c' } }],
      env: [
        { name: 'A', valueFrom: fromSecret('s', 'k', true) },
        { name: 'WEB_PORT', valueFrom: fromMap('c', 'none', true) },
      ],
    };
    expect(env(c, { 'configMap c': configMap({ A: 'kept' }), 'secret s': GONE }, { WEB_PORT: '80' })).toEqual({
      A: 'kept',
      WEB_PORT: '80',
    });
  });

  it('may refer to the service variable that it replaces (trap 48)', () => {
    const c = { env: [{ name: 'KUBERNETES_SERVICE_HOST', value: 'x$(KUBERNETES_SERVICE_HOST)' }] };
    expect(env(c, {}, { KUBERNETES_SERVICE_HOST: '10.0.0.1' })).toEqual({ KUBERNETES_SERVICE_HOST: 'x10.0.0.1' });
  });
});

describe('envFrom', () => {
  it('takes every key with its prefix, later sources win, nothing is expanded, env wins over it', () => {
    const c = {
      envFrom: [{ configMapRef: { name: 'c' } }, { prefix: 'S_', secretRef: { name: 's' } }, { secretRef: { name: 's' } }],
      env: [{ name: 'OWN', value: '$(S_A)' }],
    };
    expect(env(c, { 'configMap c': configMap({ A: 'map', B: '$(A)', OWN: 'no' }), 'secret s': secret({ A: 'secret' }) })).toEqual({
      A: 'secret',
      B: '$(A)',
      S_A: 'secret',
      OWN: 'secret',
    });
  });

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

  it('of an optional object that is not there is empty; of another it is refused', () => {
    expect(env({ envFrom: [{ secretRef: { name: 's', optional: true } }] }, { 'secret s': GONE })).toEqual({});
    expect(env({ envFrom: [{ secretRef: { name: 's' } }] }, { 'secret s': GONE })).toBe('secret "s" not found');
  });

  it('is refused on a node without a cluster', () => {
    const { cluster: _, ...standalone } = input({ envFrom: [{ secretRef: { name: 's' } }] });
    expect(containerEnv(standalone)).toMatchObject({ ok: false, message: expect.stringContaining('envFrom') });
  });
});

describe('variables of services', () => {
  const service = (namespace: string, name: string, clusterIP = '10.0.0.9'): ServiceEntry => ({
    namespace,
    name,
    clusterIP,
    ports: [
      { name: 'http', protocol: 'TCP', port: 80 },
      { name: 'dns-udp', protocol: 'UDP', port: 53 },
    ],
  });

  it('are those of the reference', () => {
    expect(Object.fromEntries(serviceVariables([service('shop', 'my-web')], { namespace: 'shop', links: true }))).toEqual({
      MY_WEB_SERVICE_HOST: '10.0.0.9',
      MY_WEB_SERVICE_PORT: '80',
      MY_WEB_SERVICE_PORT_HTTP: '80',
      MY_WEB_SERVICE_PORT_DNS_UDP: '53',
      MY_WEB_PORT: 'tcp://10.0.0.9:80',
      MY_WEB_PORT_80_TCP: 'tcp://10.0.0.9:80',
      MY_WEB_PORT_80_TCP_PROTO: 'tcp',
      MY_WEB_PORT_80_TCP_PORT: '80',
      MY_WEB_PORT_80_TCP_ADDR: '10.0.0.9',
      MY_WEB_PORT_53_UDP: 'udp://10.0.0.9:53',
      MY_WEB_PORT_53_UDP_PROTO: 'udp',
      MY_WEB_PORT_53_UDP_PORT: '53',
      MY_WEB_PORT_53_UDP_ADDR: '10.0.0.9',
    });
    expect(serviceVariables([service('a', 'six', 'fd00::1')], { namespace: 'a', links: true }).get('SIX_PORT')).toBe('tcp://[fd00::1]:80');
  });

  it('are of the own namespace, with links only, and of the API server in any case', () => {
    const all = [service('default', 'kubernetes', '10.0.0.1'), service('default', 'other'), service('shop', 'web'), service('else', 'no')];
    const hosts = (namespace: string, links: boolean) =>
      [...serviceVariables(all, { namespace, links }).keys()].filter((k) => k.endsWith('_SERVICE_HOST'));
    expect(hosts('shop', true)).toEqual(['KUBERNETES_SERVICE_HOST', 'WEB_SERVICE_HOST']);
    expect(hosts('shop', false)).toEqual(['KUBERNETES_SERVICE_HOST']);
    expect(hosts('default', true)).toEqual(['KUBERNETES_SERVICE_HOST', 'OTHER_SERVICE_HOST']);
    const own = serviceVariables([service('shop', 'kubernetes', '10.0.0.7'), ...all], { namespace: 'shop', links: true });
    expect(own.get('KUBERNETES_SERVICE_HOST')).toBe('10.0.0.7');
  });

  it('leave out services without an address', () => {
    const of = (spec: object) => toServiceEntry({ metadata: { name: 'a', namespace: 'b' }, spec });
    expect(of({ clusterIP: 'None' })).toBeNull();
    expect(of({ type: 'ExternalName' })).toBeNull();
    expect(of({ clusterIP: '' })).toBeNull();
    expect(of({ clusterIP: '10.0.0.1', ports: [{ port: 80 }] })).toEqual({
      namespace: 'b',
      name: 'a',
      clusterIP: '10.0.0.1',
      ports: [{ name: '', protocol: 'TCP', port: 80 }],
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
