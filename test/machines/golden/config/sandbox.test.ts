/** What the sandbox of a pod is told (pod lifecycle 5.4, resources and volumes 12.5): a row for each line. `names.test.ts` has its names and resolver (5.5, 5.6). */
import { runtimeHandler } from '../../../../src/actors/pods/workers/sandbox/runtimeClass.ts';
import type { KubeRequest, KubeResult } from '../../../../src/machines/kube/request.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import type { NodeFacts } from '../../../../src/machines/nodeFacts.ts';
import { generateSandboxConfig, portMappings } from '../../../../src/machines/pods/workers/config/sandboxConfig.ts';
import { container, FACTS, pod, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const config = (p: Pod, facts: Partial<NodeFacts> = {}) => {
  const made = generateSandboxConfig(p, { attempt: 3, facts: { ...FACTS, ...facts } });
  if (!made.ok) throw new Error(made.message);
  return made.config;
};
const linux = (spec: Partial<Pod['spec']>) => config(pod(spec)).linux;
const security = (spec: Partial<Pod['spec']>) => linux(spec)?.securityContext;
const namespaces = (spec: Partial<Pod['spec']>) => security(spec)?.namespaceOptions;
const privileged = (list: 'containers' | 'initContainers' | 'ephemeralContainers') =>
  security({ [list]: [container('c', { securityContext: { privileged: true } })] })?.privileged;
const ports = (...list: object[]) => portMappings(pod({ containers: [container('c', { ports: list as { containerPort: number }[] })] }));
const asks = (cpu: string, memory: string) => ({ resources: { requests: { cpu, memory }, limits: { cpu, memory } } });

/** @param answer Of the API server; null: there is none. */
const handler = async (runtimeClassName: string | undefined, answer: KubeResult | null = null, last?: string) => {
  const asked: string[] = [];
  const request = async ({ verb, path }: KubeRequest): Promise<KubeResult> => {
    asked.push(`${verb} ${path}`);
    return answer ?? { ok: false, failure: { code: 0, reason: 'NetworkError', message: 'away', outcome: 'failed' } };
  };
  const ctx = {
    ports: answer === null ? {} : { kube: { request } },
    registry: { read: () => undefined, send: () => 'delivered' },
    signal: new AbortController().signal,
  } as unknown as Parameters<typeof runtimeHandler>[0];
  const of = { pod: pod(runtimeClassName === undefined ? {} : { runtimeClassName }), last };
  const result = await runtimeHandler(ctx, of, ctx.signal);
  return { asked, ...result };
};
const away = (code: number, message: string): KubeResult => ({
  ok: false,
  failure: { code, reason: code === 404 ? 'NotFound' : 'Forbidden', message, outcome: 'failed' },
});

goldenTable('what a sandbox is told is as recorded', 'config/sandbox', {
  '5.4 all of a plain pod': () => config(pod({}, { metadata: { labels: { app: 'web', 'io.kubernetes.pod.name': 'forged' } } })),
  '5.4 hostname: not on the network of the host': () => config(pod({ hostNetwork: true })).hostname,
  '5.4 hostname: impossible': () => generateSandboxConfig(pod({ hostname: 'A B' }), { attempt: 0, facts: FACTS }),
  '5.4 ports: of regular containers only': () =>
    portMappings(
      pod({
        containers: [container('a', { ports: [{ containerPort: 80 }] })],
        initContainers: [sidecar('s', { ports: [{ containerPort: 81, hostPort: 81 }] })],
      }),
    ),
  '5.4 ports: protocols': () =>
    ports(
      { containerPort: 1, protocol: 'TCP' },
      { containerPort: 2, protocol: 'UDP' },
      { containerPort: 3, protocol: 'SCTP' },
      { containerPort: 4, protocol: 'X' },
    ),
  '5.4 ports: the same, unnamed': () =>
    ports({ containerPort: 1, hostPort: 2 }, { containerPort: 1, hostPort: 2 }, { containerPort: 1, hostPort: 2, protocol: 'UDP' }),
  '5.4 ports: the same name': () => ports({ name: 'a', containerPort: 1 }, { name: 'a', containerPort: 2 }),
  '5.4 ports: of an address': () =>
    ports({ containerPort: 1, hostPort: 1, hostIP: '192.0.2.1' }, { containerPort: 1, hostPort: 1, hostIP: 'fd00::1' }),
  '5.4 sysctls': () => linux({ securityContext: { sysctls: [{ name: 'net/ipv4/ip_local_port_range', value: '1024 2000' }] } })?.sysctls,
  '5.4 privileged: a regular container': () => privileged('containers'),
  '5.4 privileged: an init container': () => privileged('initContainers'),
  '5.4 privileged: an ephemeral container': () => privileged('ephemeralContainers'),
  '5.4 user, group, SELinux, groups': () =>
    security({
      securityContext: {
        runAsUser: 1,
        runAsGroup: 2,
        fsGroup: 3,
        supplementalGroups: [4, 5],
        seLinuxOptions: { level: 's0:c1' },
        seccompProfile: { type: 'Unconfined' },
      },
    }),
  '5.4 overhead and totals': () => {
    const { overhead, resources } =
      linux({
        containers: [container('a', asks('1', '1Gi')), container('b', asks('500m', '512Mi'))],
        overhead: { cpu: '250m', memory: '64Mi' },
      }) ?? {};
    return { overhead, resources };
  },
  '5.4 totals: an init container that needs more': () =>
    linux({ containers: [container('a', asks('1', '1Gi'))], initContainers: [container('i', asks('2', '256Mi'))] })?.resources,
  '5.4 network: of its own, of the host': () => [namespaces({})?.network, namespaces({ hostNetwork: true })?.network],
  '5.4 ipc: of its own, of the host': () => [namespaces({})?.ipc, namespaces({ hostIPC: true })?.ipc],
  '5.4 pid: per container, shared, of the host': () =>
    [namespaces({}), namespaces({ shareProcessNamespace: true }), namespaces({ hostPID: true })].map((n) => n?.pid),
  '5.4 pid: of the host wins over shared': () => namespaces({ hostPID: true, shareProcessNamespace: true })?.pid,
  '5.4 users: of the host': () => [namespaces({}), namespaces({ hostUsers: true })].map((n) => n?.usernsOptions),
  '5.4 users: of its own, none set aside': () => generateSandboxConfig(pod({ hostUsers: false }), { attempt: 0, facts: FACTS }),
  '5.4 users: of its own': () => {
    const ids = [{ hostId: 65_536, containerId: 0, length: 65_536 }];
    const made = generateSandboxConfig(pod({ hostUsers: false }), {
      attempt: 0,
      facts: FACTS,
      userNamespace: { mode: 'POD', uids: ids, gids: ids },
    });
    return made.ok ? made.config.linux?.securityContext?.namespaceOptions?.usernsOptions : made.message;
  },

  '5.4 runtime class: none': () => handler(undefined),
  '5.4 runtime class: an empty name': () => handler(''),
  '5.4 runtime class: its handler': () => handler('fast', { ok: true, code: 200, body: { handler: 'kata' } }),
  '5.4 runtime class: not there': () => handler('fast', away(404, 'runtimeclasses.node.k8s.io "fast" not found')),
  '5.4 runtime class: not for this node to read': () => handler('fast', away(403, 'forbidden')),
  '5.4 runtime class: away, and the last sandbox had a handler': () => handler('fast', away(0, 'no route'), 'kata'),
  '5.4 runtime class: gone, and the last sandbox had a handler': () => handler('fast', away(404, 'gone'), 'kata'),
  '5.4 runtime class: without a handler': () => handler('fast', { ok: true, code: 200, body: {} }),
  '5.4 runtime class: no API server': () => handler('fast'),
});
