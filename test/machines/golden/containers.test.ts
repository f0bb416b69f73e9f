/** What a container is told (pod lifecycle 5.10), its environment (5.11), and what is said of its end (5.15, 5.16): a row for each line. */
import type { Container, EnvVar, Pod } from '../../../src/machines/k8s.ts';
import { logFileOf } from '../../../src/machines/podLogs.ts';
import {
  containerEnv,
  type EnvSources,
  expand,
  fieldValue,
  invalidEnvNames,
  resourceValue,
} from '../../../src/machines/pods/config/env.ts';
import { containerResources, cpuQuotaUs, cpuShares, oomScoreAdj } from '../../../src/machines/pods/config/resources.ts';
import { effectiveSecurity, verifyRunAsNonRoot } from '../../../src/machines/pods/config/security.ts';
import { serviceVariables, toServiceEntry } from '../../../src/machines/pods/config/serviceEnv.ts';
import { type ContainerConfigInput, generateContainerConfig, type ImageUser } from '../../../src/machines/pods/containerConfig.ts';
import { hashNameAndImage, hashWholeSpec } from '../../../src/machines/pods/containerHash.ts';
import { containerLogLinkName, restartCountFromLogNames } from '../../../src/machines/pods/logNames.ts';
import { chooseTerminationMessage, headBytes, messageBytesMax } from '../../../src/machines/pods/terminationMessage.ts';
import type { PodRecord } from '../../../src/machines/protocol.ts';
import type { ApiObject, ObjectResult } from '../../../src/machines/volumes/objects.ts';
import { container, FACTS, pod, rc, sidecar } from '../pods/fixtures.ts';
import { goldenTable } from './table.ts';

// ---- the configuration -------------------------------------------------------------------------------------------
const made = (c: Container, more: Partial<ContainerConfigInput> = {}, spec: Partial<Pod['spec']> = {}, metadata = {}) =>
  generateContainerConfig({
    pod: pod({ containers: [c], ...spec }, { metadata }),
    container: c,
    kind: 'regular',
    restartCount: 2,
    imageRef: 'sha256:abc',
    imageUser: { uid: null, username: '' },
    podIPs: ['10.0.0.5'],
    facts: FACTS,
    mounts: [],
    ...more,
  });
const config = (...of: Parameters<typeof made>) => {
  const result = made(...of);
  if (!result.ok) throw new Error(result.message);
  return result.config;
};
const security = (
  own: Container['securityContext'],
  outer: Pod['spec']['securityContext'] = undefined,
  user: ImageUser | null = { uid: null, username: '' },
) => {
  const result = made(
    container('web', own === undefined ? {} : { securityContext: own }),
    { imageUser: user },
    outer === undefined ? {} : { securityContext: outer },
  );
  return result.ok ? result.config.linux?.securityContext : result.message;
};
const field = <K extends string>(of: ReturnType<typeof security>, ...keys: K[]) =>
  typeof of === 'object' ? Object.fromEntries(keys.map((k) => [k, (of as unknown as Record<string, unknown>)[k]])) : of;
const nonRoot = (runAsUser: number | undefined, user: ImageUser | null) => {
  const result = verifyRunAsNonRoot({ runAsNonRoot: true, ...(runAsUser === undefined ? {} : { runAsUser }) }, user, 'container "web"');
  return result.ok ? 'ok' : result.message;
};
const armored = (value: string) =>
  field(
    (() => {
      const result = made(container('web'), {}, {}, { annotations: { 'container.apparmor.security.beta.kubernetes.io/web': value } });
      return result.ok ? result.config.linux?.securityContext : result.message;
    })(),
    'apparmor',
  );
const debug = (targetContainerId?: string, spec: Partial<Pod['spec']> = {}) => {
  const result = made(
    { ...container('debug'), targetContainerName: 'web' } as Container,
    targetContainerId === undefined ? {} : { targetContainerId },
    spec,
  );
  return result.ok ? result.config.linux?.securityContext?.namespaceOptions : result.message;
};
const resources = (r: NonNullable<Container['resources']>, facts: Partial<typeof FACTS> = {}) =>
  containerResources(pod(), container('web', { resources: r }), { ...FACTS, ...facts });
const GI = 1024 ** 3;
const score = (r: NonNullable<Container['resources']>, spec: Partial<Pod['spec']> = {}, source = 'api') =>
  oomScoreAdj(pod({ containers: [container('web', { resources: r })], ...spec }, { source }), container('web', { resources: r }), 4 * GI);

// ---- the environment ---------------------------------------------------------------------------------------------
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
const invalid = (data: Record<string, string>, prefix?: string) =>
  invalidEnvNames({
    pod: pod(),
    container: container('web', { envFrom: [{ configMapRef: { name: 'c' }, ...(prefix === undefined ? {} : { prefix }) }] }),
    podIPs: [],
    facts: FACTS,
    cluster: sources({ 'configMap c': configMap(data) }),
  }).map((i) => i.names);
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

// ---- the end -----------------------------------------------------------------------------------------------------
const last = (o: {
  file?: string | null;
  log?: string | null;
  policy?: string;
  exitCode?: number;
  reason?: string;
  message?: string;
  path?: string;
  state?: 'exited' | 'running';
}) =>
  chooseTerminationMessage(
    rc('web', o.state ?? 'exited', {
      exitCode: o.exitCode ?? 1,
      reason: o.reason ?? 'Error',
      message: o.message ?? '',
      terminationMessagePolicy: o.policy ?? 'File',
      terminationMessagePath: o.path ?? '/dev/termination-log',
    }),
    o.file === undefined ? null : o.file,
    async () => o.log ?? null,
  );
const FALLBACK = 'FallbackToLogsOnError';
const lines = (n: number) => Array.from({ length: n }, (_, i) => `2024-05-01T10:00:00Z stdout F line ${i}\n`).join('');
const logOf = (
  state: object,
  o: {
    restartCount?: number;
    previous?: boolean;
    lastState?: object;
    container?: string;
    containers?: Container[];
    containerID?: string;
  } = {},
) => {
  const p = pod({ containers: o.containers ?? [container('web')] });
  const record = { pod: p, source: 'api', removed: false, rejected: false, seenAtMs: 0, worker: null } as PodRecord;
  const file = logFileOf({
    record,
    status: {
      phase: 'Running',
      containerStatuses: [
        {
          name: 'web',
          state,
          lastState: o.lastState ?? {},
          ready: false,
          restartCount: o.restartCount ?? 0,
          image: '',
          imageID: '',
          ...(o.containerID === undefined ? {} : { containerID: o.containerID }),
        },
      ],
    },
    container: o.container ?? 'web',
    previous: o.previous ?? false,
    podLogsDir: '/var/log/pods',
  });
  return file.ok ? file.path : file.reason;
};
const hook = { lifecycle: { preStop: { exec: { command: ['bye'] } } } };

goldenTable('what a container is told, and what is said of its end, is as recorded', 'containers', {
  '5.10 all of a plain container': () => config(container('web')),
  '5.10 command and arguments': () => {
    const { command, args, workingDir, stdin, stdinOnce, tty } = config(
      container('web', {
        command: ['run', '$(A)'],
        args: ['$(B)'],
        env: [{ name: 'A', value: 'x' }],
        workingDir: '/w',
        stdin: true,
        stdinOnce: true,
        tty: true,
      }),
    );
    return { command, args, workingDir, stdin, stdinOnce, tty };
  },
  '5.10 annotations: of a deleted pod, with a hook and ports': () =>
    config(container('web', { ...hook, ports: [{ containerPort: 80 }] }), {}, {}, { deletionGracePeriodSeconds: 3 }).annotations,
  '5.10 hash: name and image': () => hashNameAndImage(container('test_container', { image: 'foo/image:v1' })),
  '5.10 hash: whole definition': () => hashWholeSpec({ name: 'c1', image: 'busybox:1.36' }),

  '5.10 security: of the container over that of the pod': () =>
    effectiveSecurity(
      pod({ securityContext: { runAsUser: 1, runAsGroup: 2, runAsNonRoot: true, seLinuxOptions: { level: 'pod' } } }),
      container('web', { securityContext: { runAsUser: 7, privileged: true, readOnlyRootFilesystem: true } }),
    ),
  '5.10 user: of the container, of the pod': () =>
    [security({ runAsUser: 0 }, { runAsUser: 7 }), security(undefined, { runAsUser: 7 })].map((s) => field(s, 'runAsUser')),
  '5.10 user: number, name, none of the image; not known': () =>
    ([{ uid: 9, username: '' }, { uid: null, username: 'www' }, { uid: null, username: '' }, null] as const).map((u) =>
      field(security(undefined, undefined, u), 'runAsUser', 'runAsUsername'),
    ),
  '5.10 groups': () =>
    field(security(undefined, { fsGroup: 1, supplementalGroups: [2, 3], runAsGroup: 4 }), 'supplementalGroups', 'runAsGroup'),
  '5.10 no new privileges: only where escalation is forbidden': () =>
    [undefined, true, false].map((v) => field(security(v === undefined ? {} : { allowPrivilegeEscalation: v }), 'noNewPrivs')),
  '5.10 masked paths: by default, Unmasked': () =>
    [security({}), security({ procMount: 'Unmasked' })].map((s) => field(s, 'maskedPaths', 'readonlyPaths')),
  '5.10 seccomp: none': () => field(security({}), 'seccomp'),
  '5.10 seccomp: of the container, of the pod': () =>
    [
      security({ seccompProfile: { type: 'Unconfined' } }, { seccompProfile: { type: 'RuntimeDefault' } }),
      security({}, { seccompProfile: { type: 'RuntimeDefault' } }),
    ].map((s) => field(s, 'seccomp')),
  '5.10 seccomp: Localhost, with and without a path': () =>
    [
      security({ seccompProfile: { type: 'Localhost', localhostProfile: 'a.json' } }),
      security({ seccompProfile: { type: 'Localhost' } }),
    ].map((s) => field(s, 'seccomp')),
  '5.10 seccomp: the default of the node': () => {
    const result = made(container('web'), { facts: { ...FACTS, seccompDefault: true } });
    return result.ok ? result.config.linux?.securityContext?.seccomp : result.message;
  },
  '5.10 AppArmor: fields': () =>
    (['RuntimeDefault', 'Unconfined', 'Localhost'] as const).map((type) =>
      field(security({ appArmorProfile: { type, ...(type === 'Localhost' ? { localhostProfile: 'mine' } : {}) } }), 'apparmor'),
    ),
  '5.10 AppArmor: Localhost without a name': () => security({ appArmorProfile: { type: 'Localhost' } }),
  '5.10 AppArmor: annotation': () => ['runtime/default', 'localhost/mine', 'unconfined', 'odd'].map(armored),
  '5.10 capabilities': () => field(security({ capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] } }), 'capabilities'),
  '5.10 privileged and read-only root': () =>
    field(security({ privileged: true, readOnlyRootFilesystem: true }), 'privileged', 'readonlyRootfs'),
  '5.10 ephemeral: its target': () => debug('web-1'),
  '5.10 ephemeral: its target, processes are shared': () => debug('web-1', { shareProcessNamespace: true }),
  '5.10 ephemeral: its target has no instance': () => debug(),
  '5.10 runAsNonRoot: user 0': () => nonRoot(0, { uid: 5, username: '' }),
  '5.10 runAsNonRoot: user 5': () => nonRoot(5, { uid: 0, username: '' }),
  '5.10 runAsNonRoot: image 0': () => nonRoot(undefined, { uid: 0, username: '' }),
  '5.10 runAsNonRoot: image without a user': () => nonRoot(undefined, { uid: null, username: '' }),
  '5.10 runAsNonRoot: image with a name': () => nonRoot(undefined, { uid: null, username: 'www' }),
  '5.10 runAsNonRoot: image 5': () => nonRoot(undefined, { uid: 5, username: '' }),
  '5.10 runAsNonRoot: image not known': () => nonRoot(undefined, null),

  '5.10 shares': () => Object.fromEntries([0, 1, 2, 100, 1_000, 256_000, 300_000].map((m) => [m, cpuShares(m)])),
  '5.10 quota': () => Object.fromEntries([0, 1, 10, 500, 1_500].map((m) => [m, cpuQuotaUs(m, 100_000)])),
  '5.10 resources: none': () => resources({}),
  '5.10 resources: requests': () => resources({ requests: { cpu: '500m', memory: '1Gi' } }),
  '5.10 resources: limits only': () => resources({ limits: { cpu: '2', memory: '1Gi' } }),
  '5.10 resources: without quota': () => resources({ limits: { cpu: '2' } }, { cpuCFSQuota: false }),
  '5.10 resources: another period': () => resources({ limits: { cpu: '2' } }, { cpuCFSQuotaPeriodMs: 10 }),
  '5.10 resources: pages of the host': () => resources({ limits: { 'hugepages-2Mi': '4Mi' } }, { hugePageSizes: ['2MB', '1GB'] }),
  '5.10 OOM: node-critical': () => score({}, { priority: 2_000_001_000 }),
  '5.10 OOM: critical to the cluster only': () => score({}, { priority: 2_000_000_000 }),
  '5.10 OOM: Guaranteed': () => score({ limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1', memory: '1Gi' } }),
  '5.10 OOM: BestEffort': () => score({}),
  '5.10 OOM: Burstable, a quarter': () => score({ requests: { memory: '1Gi' } }),
  '5.10 OOM: Burstable, nothing': () => score({ requests: { cpu: '1' } }),
  '5.10 OOM: Burstable, all': () => score({ requests: { memory: '4Gi' } }),
  '5.10 OOM: a sidecar is no worse off than those it serves': () => {
    const s = sidecar('s', { resources: { requests: { memory: '1Mi' } } });
    return oomScoreAdj(
      pod({ containers: [container('web', { resources: { requests: { memory: '2Gi' } } })], initContainers: [s] }),
      s,
      4 * GI,
    );
  },

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
  '5.11 envFrom: keys that are no names': () => [invalid({ '1a': '', 'a b': '', ok: '', '..x': '' }), invalid({ '1a': '' }, 'P_')],
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
  ],
  '5.11 services: of which namespaces': () => {
    const list = ['kubernetes', 'other'].map((name) => service(name, { clusterIP: '10.0.0.1' }, 'default'));
    const own = service('own', { clusterIP: '10.0.0.2' });
    return { links: told(true, ...list, own), none: told(false, ...list, own) };
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

  '5.15 the file': () => last({ file: 'bye' }),
  '5.15 the end of a long file': async () => (await last({ file: `${'a'.repeat(1_000)}${'b'.repeat(4_096)}` })).replaceAll('b', '').length,
  '5.15 no file': () => last({ log: 'never asked for' }),
  '5.15 no path': () => last({ path: '', file: 'bye', message: 'of the runtime' }),
  '5.15 no path, and the log was asked for': () => last({ policy: FALLBACK, path: '', file: 'never looked at', log: lines(1) }),
  '5.15 beside the words of the runtime': () => last({ file: 'bye', message: 'of the runtime' }),
  '5.15 log: not of a good end': () => last({ policy: FALLBACK, exitCode: 0, log: lines(1) }),
  '5.15 log: of a bad end': () => last({ policy: FALLBACK, log: lines(2) }),
  '5.15 log: not where there is a file': () => last({ policy: FALLBACK, file: 'bye', log: lines(1) }),
  '5.15 log: not of what could not run': () =>
    last({ policy: FALLBACK, reason: 'ContainerCannotRun', message: 'no such file', log: lines(1) }),
  '5.15 log: the last 80 lines': async () => {
    const text = await last({ policy: FALLBACK, log: lines(100) });
    return [text.split('\n').length - 1, text.split('\n')[0]];
  },
  '5.15 log: the last 2048 bytes': async () =>
    (await last({ policy: FALLBACK, log: `2024-05-01T10:00:00Z stdout F ${'x'.repeat(5_000)}\n` })).length,
  '5.15 log: parts of a line': () =>
    last({ policy: FALLBACK, log: '2024-05-01T10:00:00Z stdout P one \n2024-05-01T10:00:01Z stdout F line\n' }),
  '5.15 still runs': () => last({ state: 'running', file: 'bye' }),
  '5.15 all of a status': () => [
    messageBytesMax({ phase: 'Running' }),
    messageBytesMax({ containerStatuses: [1, 2, 3].map((n) => ({ name: `c${n}` }) as never) }),
    headBytes('aüb', 2),
  ],

  '5.16 log: runs': () => logOf({ running: { startedAt: '2024-05-01T10:00:00Z' } }, { restartCount: 3 }),
  '5.16 log: ended': () => logOf({ terminated: { exitCode: 1 } }, { restartCount: 3 }),
  '5.16 log: waits after an end': () =>
    logOf({ waiting: { reason: 'CrashLoopBackOff' } }, { restartCount: 3, lastState: { terminated: { exitCode: 1 } } }),
  '5.16 log: has not started': () => logOf({ waiting: { reason: 'ErrImagePull', message: 'no such image' } }),
  '5.16 log: previous': () => logOf({ running: { startedAt: '2024-05-01T10:00:00Z' } }, { restartCount: 3, previous: true }),
  '5.16 log: previous, waits after an end': () =>
    logOf({ waiting: { reason: 'CrashLoopBackOff' } }, { restartCount: 3, previous: true, lastState: { terminated: { exitCode: 1 } } }),
  '5.16 log: previous, waits after an end and its next instance is there': () =>
    logOf(
      { waiting: { reason: 'ContainerCreating' } },
      {
        restartCount: 4,
        previous: true,
        lastState: { terminated: { exitCode: 1, containerID: 'containerd://web-3' } },
        containerID: 'containerd://web-4',
      },
    ),
  '5.16 log: previous, has not started': () => logOf({ waiting: { reason: 'ErrImagePull' } }, { previous: true }),
  '5.16 log: previous, of the first': () => logOf({ running: { startedAt: '2024-05-01T10:00:00Z' } }, { previous: true }),
  '5.16 log: of several containers, none named': () => logOf({}, { container: '', containers: [container('web'), container('api')] }),
  '5.16 log: of a container that is not there': () => logOf({}, { container: 'nope' }),
  '5.7 restart count from the names of logs': () =>
    [[], ['0.log'], ['0.log', '10.log', '9.log.20240501-100000.gz', 'x.log']].map(restartCountFromLogNames),
  '5.7 link: no longer than a file name may be': () => [
    containerLogLinkName({ uid: 'u', name: 'p', namespace: 'ns' }, 'web', 'abcdef'),
    containerLogLinkName({ uid: 'u', name: 'p'.repeat(260), namespace: 'ns' }, 'web', 'abcdef').length,
  ],
});
