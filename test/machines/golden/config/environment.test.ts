/** The environment of a container (pod lifecycle 5.11): a row for each line. */
import type { ApiObject, ObjectResult } from '../../../../src/machines/kube/objects.ts';
import type { Container, EnvVar } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { expand } from '../../../../src/machines/pod/execLimits.ts';
import { serviceVariables, toServiceEntry } from '../../../../src/machines/pod/serviceEnv.ts';
import { containerEnv, type EnvSources, fieldValue, resourceValue } from '../../../../src/machines/pods/workers/config/env.ts';
import { container, FACTS, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const secret = (data: Record<string, string>): ObjectResult<ApiObject> => ({
  kind: 'found',
  value: { data: Object.fromEntries(Object.entries(data).map(([k, v]) => [k, bytes(v)])) },
});
const configMap = (data: Record<string, string>): ObjectResult<ApiObject> => ({ kind: 'found', value: { data, binaryData: {} } });
const sources = (objects: Record<string, ObjectResult<ApiObject>>, services: Record<string, string> = {}): EnvSources => ({
  services: new Map(Object.entries(services)),
  objects: new Map(Object.entries(objects).map(([key, o]) => [key.replace(' ', ' ns/'), o])),
});
const env = (c: Partial<Container>, cluster: EnvSources | null = sources({}), spec: Partial<Pod['spec']> = {}) => {
  const result = containerEnv({
    pod: pod(spec),
    container: container('web', c),
    podIPs: ['10.0.0.5', 'fd00::5'],
    facts: FACTS,
    ...(cluster === null ? {} : { cluster }),
  });
  return result.ok ? Object.fromEntries(result.value.map(({ key, value }) => [key, value])) : result.message;
};
const keyOf = (kind: 'secretKeyRef' | 'configMapKeyRef', name: string, key: string, optional?: boolean): EnvVar => ({
  name: 'A',
  valueFrom: { [kind]: { name, key, ...(optional === undefined ? {} : { optional }) } },
});
const fields = (...paths: string[]) => {
  const p = pod({ nodeName: 'n1', serviceAccountName: 'sa' }, { metadata: { labels: { b: '2', a: 'x"y' }, annotations: { k: 'v' } } });
  const input = {
    pod: p,
    container: container('web'),
    podIPs: ['10.0.0.5', 'fd00::5'],
    facts: { ...FACTS, hostIPs: ['192.0.2.10', '2001:db8::1'] },
  };
  return Object.fromEntries(
    paths.map((path) => {
      const value = fieldValue(path, input);
      return [path, value.ok ? value.value : value.message];
    }),
  );
};
const amount = (ref: Parameters<typeof resourceValue>[0], r: NonNullable<Container['resources']> = {}) => {
  const web = container('web', { resources: r });
  const p = pod({
    containers: [web, container('other', { resources: { limits: { cpu: '3' } } })],
    initContainers: [container('init', { resources: { limits: { cpu: '4' } } })],
  });
  const value = resourceValue(ref, { pod: p, container: web, podIPs: [], facts: FACTS });
  return value.ok ? value.value : value.message;
};
const service = (name: string, spec: object, namespace = 'ns') =>
  toServiceEntry({ metadata: { name, namespace, uid: name, resourceVersion: '1' }, spec });
const told = (links: boolean, ...list: ReturnType<typeof service>[]) =>
  Object.fromEntries(
    serviceVariables(
      list.flatMap((s) => (s === null ? [] : [s])),
      { namespace: 'ns', links },
    ),
  );
const expanded = (text: string) => expand(text, (name) => ({ X: '1', L: '$(X)', E: '' })[name]);

goldenTable('the environment of a container is as recorded', 'config/environment', {
  '5.11 order: services, envFrom, env': () =>
    env(
      {
        envFrom: [{ configMapRef: { name: 'c' } }, { secretRef: { name: 's' }, prefix: 'S_' }, { configMapRef: { name: 'd' } }],
        env: [{ name: 'B', value: 'env' }],
      },
      sources(
        { 'configMap c': configMap({ A: 'c', B: 'c', C: 'c' }), 'secret s': secret({ A: '$(B)' }), 'configMap d': configMap({ C: 'd' }) },
        { C: 'service', D: 'service' },
      ),
    ),
  '5.11 a service variable that is replaced by itself': () => env({ env: [{ name: 'D', value: 'x$(D)' }] }, sources({}, { D: 'service' })),
  '5.11 value, then valueFrom, then nothing': () =>
    env({
      env: [{ name: 'A', value: '', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }, { name: 'B' }, { name: 'C', value: '$(A)' }],
    }),
  '5.11 the later definition': () =>
    env({
      env: [
        { name: 'A', value: '1' },
        { name: 'B', value: '$(A)' },
        { name: 'A', value: '2' },
      ],
    }),
  '5.11 key: there': () => [
    env({ env: [keyOf('secretKeyRef', 's', 'k')] }, sources({ 'secret s': secret({ k: 'v' }) })),
    env({ env: [keyOf('configMapKeyRef', 'c', 'k')] }, sources({ 'configMap c': configMap({ k: 'v' }) })),
  ],
  '5.11 key: no such object': () => [
    env({ env: [keyOf('secretKeyRef', 's', 'k')] }, sources({ 'secret s': { kind: 'absent' } })),
    env({ env: [keyOf('configMapKeyRef', 'c', 'k')] }, sources({ 'configMap c': { kind: 'absent' } })),
  ],
  '5.11 key: no such key': () => [
    env({ env: [keyOf('secretKeyRef', 's', 'k')] }, sources({ 'secret s': secret({}) })),
    env({ env: [keyOf('configMapKeyRef', 'c', 'k')] }, sources({ 'configMap c': configMap({}) })),
  ],
  '5.11 key: optional, no such object': () =>
    env({ env: [{ name: 'A', value: 'kept' }, keyOf('secretKeyRef', 's', 'k', true)] }, sources({ 'secret s': { kind: 'absent' } })),
  '5.11 key: optional, no such key': () =>
    env({ env: [keyOf('configMapKeyRef', 'c', 'k', true)] }, sources({ 'configMap c': configMap({}) }, { A: 'service' })),
  '5.11 key: optional, cannot be asked for': () =>
    env({ env: [keyOf('secretKeyRef', 's', 'k', true)] }, sources({ 'secret s': { kind: 'failed', message: 'no route' } })),
  '5.11 key: without a cluster': () => env({ env: [keyOf('secretKeyRef', 's', 'k')] }, null),
  '5.11 envFrom: no such object': () => env({ envFrom: [{ secretRef: { name: 's' } }] }, sources({ 'secret s': { kind: 'absent' } })),
  '5.11 envFrom: optional, no such object': () =>
    env({ envFrom: [{ secretRef: { name: 's', optional: true } }] }, sources({ 'secret s': { kind: 'absent' } })),
  '5.11 envFrom: names that shells do not take': () =>
    env(
      { envFrom: [{ configMapRef: { name: 'c' } }, { configMapRef: { name: 'c' }, prefix: '#1-' }] },
      sources({ 'configMap c': configMap({ '1a': '1', ok: '2', '..x': '3' }) }),
    ),
  '5.11 services: ports, named and not': () =>
    told(
      true,
      service('my-db', {
        clusterIP: '10.1.0.1',
        ports: [
          { port: 5432, protocol: 'TCP' },
          { name: 'admin-ui', port: 80, protocol: 'UDP' },
        ],
      }),
    ),
  '5.11 services: IPv6': () => told(true, service('db', { clusterIP: 'fd00::1', ports: [{ port: 1 }] })),
  '5.11 services: without an address': () => [
    service('a', { clusterIP: 'None', ports: [{ port: 1 }] }),
    service('b', { clusterIP: '', ports: [{ port: 1 }] }),
    service('c', { type: 'ExternalName' }),
  ],
  '5.11 services: of which namespaces': () => {
    const list = ['kubernetes', 'other'].map((name) => service(name, { clusterIP: '10.0.0.1' }, 'default'));
    const own = service('own', { clusterIP: '10.0.0.2' });
    const named = service('kubernetes', { clusterIP: '10.0.0.7' });
    return { links: told(true, ...list, own), none: told(false, ...list, own), own: told(true, named, ...list) };
  },
  '5.11 expansion': () =>
    Object.fromEntries(['a$(X)b', '$$(X)', '$$$(X)', '$(Y)', '$(X', '$x$', '$(L)', '$()', '$(E)', '$'].map((t) => [t, expanded(t)])),
  '5.11 fields': () =>
    fields(
      'metadata.name',
      'metadata.namespace',
      'metadata.uid',
      'metadata.labels',
      'metadata.annotations',
      "metadata.labels['b']",
      "metadata.labels['none']",
      "metadata.annotations['k']",
      'spec.nodeName',
      'spec.host',
      'spec.serviceAccountName',
      'status.hostIP',
      'status.hostIPs',
      'status.podIP',
      'status.podIPs',
    ),
  '5.11 fields: that cannot be resolved': () => fields('spec.restartPolicy', 'spec.schedulerName', 'status.phase', 'spec.odd'),
  '5.11 resources: rounded up': () =>
    [
      { resource: 'limits.cpu' },
      { resource: 'limits.cpu', divisor: '1m' },
      { resource: 'limits.memory' },
      { resource: 'limits.memory', divisor: '1Mi' },
      { resource: 'requests.cpu', divisor: 0 },
      { resource: 'limits.hugepages-2Mi' },
    ].map((ref) => amount(ref, { limits: { cpu: '1500m', memory: '1000001', 'hugepages-2Mi': '4Mi' }, requests: { cpu: '1001m' } })),
  '5.11 resources: limits that are not set': () =>
    ['limits.cpu', 'limits.memory', 'limits.ephemeral-storage', 'limits.hugepages-2Mi', 'requests.cpu'].map((resource) =>
      amount({ resource }),
    ),
  '5.11 resources: of another container, of an init container, of none': () =>
    ['other', 'init', 'gone'].map((containerName) => amount({ containerName, resource: 'limits.cpu' })),
  '5.11 resources: of no known name': () => amount({ resource: 'limits.gpu' }),
});
