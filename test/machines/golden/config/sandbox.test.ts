/** What the sandbox of a pod is told (pod lifecycle 5.4, resources and volumes 12.5), its names and hosts (5.5) and its resolver (5.6): a row for each line. */
import { runtimeHandler } from '../../../../src/actors/pods/workers/sandbox/runtimeClass.ts';
import type { KubeRequest, KubeResult } from '../../../../src/machines/kube/request.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import type { NodeFacts } from '../../../../src/machines/nodeFacts.ts';
import { parseResolvConf, podDns } from '../../../../src/machines/pods/workers/config/dns.ts';
import { etcHosts, podHostname } from '../../../../src/machines/pods/workers/config/hosts.ts';
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

const hostname = (spec: Partial<Pod['spec']>, name = 'web') => podHostname(pod(spec, { metadata: { name } }), 'cluster.local');
const hosts = (spec: Partial<Pod['spec']>, podIPs = ['10.0.0.5']) =>
  etcHosts({ pod: pod(spec), podIPs, facts: FACTS, nodeHosts: '127.0.0.1 node\n' }).split('\n');

const dns = (spec: Partial<Pod['spec']>, facts: Partial<NodeFacts> = {}) => podDns(pod(spec), { ...FACTS, ...facts });
const many = (n: number) => Array.from({ length: n }, (_, i) => `s${i}.example`);
const parsed = (...lines: string[]) => {
  try {
    return parseResolvConf(`${lines.join('\n')}\n`);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

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
  '5.5 hostname: of the pod': () => hostname({}),
  '5.5 hostname: of the definition': () => hostname({ hostname: 'own' }),
  '5.5 hostname: no DNS label': () => hostname({ hostname: 'Own' }),
  '5.5 hostname: too long a name': () => hostname({}, `${'a'.repeat(62)}-bcd`),
  '5.5 hostname: with dots': () => hostname({}, 'web.v1'),
  '5.5 domain': () => hostname({ subdomain: 'sub' }),
  '5.5 domain: no DNS label': () => hostname({ subdomain: 'Sub' }),
  '5.5 FQDN as the name of the host': () => hostname({ subdomain: 'sub', setHostnameAsFQDN: true }),
  '5.5 FQDN as the name of the host, without a domain': () => hostname({ setHostnameAsFQDN: true }),
  '5.5 FQDN as the name of the host, too long': () => hostname({ subdomain: 'sub', setHostnameAsFQDN: true }, 'a'.repeat(60)),
  '5.5 hosts: of a pod': () => hosts({}),
  '5.5 hosts: of two families, with a domain': () => hosts({ subdomain: 'sub' }, ['10.0.0.5', 'fd00::5']),
  '5.5 hosts: on the network of the host': () => hosts({ hostNetwork: true }),
  '5.5 hosts: aliases': () =>
    hosts({
      hostAliases: [
        { ip: '1.2.3.4', hostnames: ['a', 'b'] },
        { ip: '5.6.7.8', hostnames: ['c'] },
      ],
    }),

  '5.6 policy: None': () => dns({ dnsPolicy: 'None' }),
  '5.6 policy: ClusterFirst': () => dns({ dnsPolicy: 'ClusterFirst' }),
  '5.6 policy: ClusterFirst, on the network of the host': () => dns({ dnsPolicy: 'ClusterFirst', hostNetwork: true }),
  '5.6 policy: ClusterFirstWithHostNet': () => dns({ dnsPolicy: 'ClusterFirstWithHostNet', hostNetwork: true }),
  '5.6 policy: Default': () => dns({ dnsPolicy: 'Default' }),
  '5.6 policy: of no known name': () => dns({ dnsPolicy: 'Odd' } as unknown as Partial<Pod['spec']>),
  '5.6 policy: none said': () => dns({}),
  '5.6 cluster: without a domain': () => dns({}, { clusterDomain: '' }),
  '5.6 cluster: the host searches the same': () =>
    dns({}, { hostDns: { servers: [], searches: ['cluster.local', 'example.org'], options: [] } }),
  '5.6 cluster: without servers': () => dns({}, { clusterDNS: [] }),
  '5.6 host: without a resolver of its own': () => dns({ dnsPolicy: 'Default' }, { hostDns: null }),
  '5.6 host: without a resolver of its own, of IPv6': () => dns({ dnsPolicy: 'Default' }, { hostDns: null, hostIPs: ['2001:db8::1'] }),
  '5.6 config of the pod: on top': () =>
    dns({
      dnsConfig: {
        nameservers: ['192.0.2.1', '10.96.0.10'],
        searches: ['own.example', 'cluster.local'],
        options: [{ name: 'ndots', value: '2' }, { name: 'debug' }],
      },
    }),
  '5.6 config of the pod: with None': () =>
    dns({ dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.1'], searches: ['a'], options: [{ name: 'edns0' }] } }),
  '5.6 limits: servers': () => dns({ dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4'] } }),
  '5.6 limits: searches': () => {
    const made = dns({ dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.1'], searches: many(33) } });
    return { searches: made.config.searches.length, last: made.config.searches.at(-1), warnings: made.warnings.map((w) => w.reason) };
  },
  '5.6 limits: characters': () => {
    const made = dns({
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['192.0.2.1'], searches: many(30).map((s) => `${'x'.repeat(100)}.${s}`) },
    });
    return {
      searches: made.config.searches.length,
      characters: made.config.searches.join(' ').length,
      warnings: made.warnings.map((w) => w.reason),
    };
  },
  '5.6 resolv.conf: servers add up': () => parsed('nameserver 192.0.2.1', 'nameserver 192.0.2.2'),
  '5.6 resolv.conf: the last search line, without dots at the end': () => parsed('search a.example', 'search b.example. c.example .'),
  '5.6 resolv.conf: options, the last of each name': () => parsed('options ndots:1', 'options ndots:2 edns0'),
  '5.6 resolv.conf: comments': () => parsed('# nameserver 192.0.2.1', '; nameserver 192.0.2.2', '  # x', ''),
  '5.6 resolv.conf: a server without an address': () => parsed('', 'nameserver'),
});
