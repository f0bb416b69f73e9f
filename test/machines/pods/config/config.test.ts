/** What CRI is told of sandboxes and containers. */
import { describe, expect, it } from 'vitest';
import type { Container, EnvVar } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { expand } from '../../../../src/machines/pod/execLimits.ts';
import { oomScoreAdj } from '../../../../src/machines/pod/resources/oomScore.ts';
import { podTotal } from '../../../../src/machines/pod/resources/podLevel.ts';
import { containerResources, cpuQuotaUs, cpuShares, sandboxResources } from '../../../../src/machines/pod/resources/resources.ts';
import { generateContainerConfig, type ImageUser } from '../../../../src/machines/pods/workers/config/containerConfig.ts';
import { parseResolvConf, podDns } from '../../../../src/machines/pods/workers/config/dns.ts';
import { containerEnv } from '../../../../src/machines/pods/workers/config/env.ts';
import { etcHosts, podHostname } from '../../../../src/machines/pods/workers/config/hosts.ts';
import { generateSandboxConfig } from '../../../../src/machines/pods/workers/config/sandboxConfig.ts';
import { container, FACTS, pod, sidecar } from '../fixtures.ts';

const GI = 1024 ** 3;

describe('environment', () => {
  const env = (variables: EnvVar[], more: Partial<Container> = {}, p: Pod = pod()) =>
    containerEnv({ pod: p, container: container('web', { env: variables, ...more }), podIPs: ['10.0.0.5', 'fd00::5'], facts: FACTS });
  const values = (variables: EnvVar[], more: Partial<Container> = {}, p?: Pod) => {
    const result = env(variables, more, p);
    return result.ok ? Object.fromEntries(result.value.map((v) => [v.key, v.value])) : result.message;
  };

  it.each([
    ['a$(X)b', 'a1b'],
    ['$$(X)', '$(X)'],
    ['$$$(X)', '$1'],
    ['$(Y)', '$(Y)'],
    ['$(X', '$(X'],
    ['$x$', '$x$'],
    ['$(L)', '$(X)'],
    ['$()', '$()'],
  ])('%s expands to %s', (text, expected) => {
    const known = new Map([
      ['X', '1'],
      ['L', '$(X)'],
    ]);
    expect(expand(text, (name) => known.get(name))).toBe(expected);
  });

  it('expands earlier variables only; the last definition of a name wins', () => {
    const list = [
      { name: 'A', value: '$(B)' },
      { name: 'B', value: '1' },
      { name: 'C', value: '$(B)2' },
      { name: 'B', value: '$(C)3' },
    ];
    expect(values(list)).toEqual({ A: '$(B)', C: '12', B: '123' });
  });

  it('resolves fields of the pod', () => {
    const field = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } });
    const p = pod({ serviceAccountName: 'sa' }, { metadata: { labels: { app: 'x', b: 'q"' } } });
    const list = [
      field('A', "metadata.labels['app']"),
      field('B', 'metadata.labels'),
      field('C', 'status.podIPs'),
      field('D', 'status.hostIP'),
      field('E', 'spec.nodeName'),
      field('F', "metadata.annotations['none']"),
    ];
    expect(values(list, {}, p)).toEqual({ A: 'x', B: 'app="x"\nb="q\\""', C: '10.0.0.5,fd00::5', D: '192.0.2.10', E: 'node-a', F: '' });
    expect(values([field('A', 'status.phase')])).toContain('status.phase');
  });

  it('names the addresses of the pod as its status does: the family of --node-ip first, one of each', () => {
    const variables = ['status.podIP', 'status.podIPs'].map((fieldPath) => ({ name: fieldPath, valueFrom: { fieldRef: { fieldPath } } }));
    const told = (more: { ipv6First?: boolean; hostIPs?: string[] }) => {
      const podIPs = ['10.0.0.5', 'fd00::5', '10.9.9.9'];
      const made = containerEnv({ pod: pod(), container: container('web', { env: variables }), podIPs, facts: { ...FACTS, ...more } });
      return made.ok ? made.value.map(({ value }) => value) : made.message;
    };
    expect(told({ ipv6First: true })).toEqual(['fd00::5', 'fd00::5,10.0.0.5']);
    // The address of a cloud, or of the node's name, is no --node-ip.
    expect(told({ hostIPs: ['fd00::10', '192.0.2.10'] })).toEqual(['10.0.0.5', '10.0.0.5,fd00::5']);
  });

  it('trap 50: resource references round up and fall back to what the node can give', () => {
    const ref = (name: string, resource: string, divisor?: string): EnvVar => ({
      name,
      valueFrom: { resourceFieldRef: { resource, ...(divisor === undefined ? {} : { divisor }) } },
    });
    const list = [
      ref('A', 'limits.cpu'),
      ref('B', 'limits.cpu', '1m'),
      ref('C', 'limits.memory', '1Mi'),
      ref('D', 'requests.memory'),
      ref('E', 'limits.ephemeral-storage', '1Gi'),
    ];
    expect(values(list, { resources: { limits: { cpu: '1500m' } } })).toEqual({ A: '2', B: '1500', C: '4096', D: '0', E: '20' });
  });

  it('refuses what this node cannot resolve rather than starting without it', () => {
    expect(values([{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }])).toContain('secretKeyRef');
    expect(values([], { envFrom: [{ configMapRef: { name: 'c' } }] })).toContain('envFrom');
  });
});

describe('Linux resources', () => {
  it('follows the formulas at their edges', () => {
    expect([0, 1, 100, 1000, 1_000_000].map(cpuShares)).toEqual([2, 2, 102, 1024, 262_144]);
    expect([0, 5, 500, 2000].map((m) => cpuQuotaUs(m, 100_000))).toEqual([0, 1000, 50_000, 200_000]);
  });

  it('takes shares from the limit when nothing is requested, and leaves out an absent memory limit', () => {
    const web = container('web', { resources: { limits: { cpu: '250m' } } });
    expect(containerResources(pod({ containers: [web] }), web, { ...FACTS, hugePageSizes: ['2Mi'] })).toEqual({
      cpuShares: 256,
      cpuPeriod: 100_000,
      cpuQuota: 25_000,
      oomScoreAdj: 999,
      hugepageLimits: [{ pageSize: '2MB', limit: 0 }],
    });
    expect(containerResources(pod(), container('web'), { ...FACTS, cpuCFSQuota: false })).toEqual({ cpuShares: 2, oomScoreAdj: 1000 });
  });

  it('gives the least share to what asks for no cpu in so many words, whatever it may have', () => {
    const web = container('web', { resources: { requests: { cpu: '0' }, limits: { cpu: '2' } } });
    const of = pod({ containers: [web] });
    expect(containerResources(of, web, FACTS)).toMatchObject({ cpuShares: 2, cpuQuota: 200_000 });
    expect(sandboxResources(of, FACTS)).toMatchObject({ cpuShares: 2, cpuQuota: 200_000 });
  });

  it('scores by class, request and priority; a sidecar no higher than those it serves', () => {
    const burst = (memory: string) => container('web', { resources: { requests: { memory } } });
    const score = (c: Container, p = pod({ containers: [c] })) => oomScoreAdj(p, c, 4 * GI);
    expect(['1Gi', '1', '5Gi'].map((m) => score(burst(m)))).toEqual([750, 999, 3]);
    const all = { cpu: '1', memory: '1Gi' };
    expect(score(container('web', { resources: { limits: all, requests: all } }))).toBe(-997);
    expect(score(container('web'), pod({ priority: 2_000_001_000, priorityClassName: 'system-node-critical' }))).toBe(-997);
    const s1 = sidecar('s1');
    expect(score(s1, pod({ initContainers: [s1], containers: [burst('1Gi')] }))).toBe(750);
    const two = [burst('1Gi'), container('db', { resources: { requests: { memory: '2Gi' } } })];
    expect(score(s1, pod({ initContainers: [s1], containers: two }))).toBe(750);
  });

  it('totals a pod: containers and sidecars, or the neediest init container beside the sidecars before it', () => {
    const of = (cpu: string): Partial<Container> => ({ resources: { requests: { cpu } } });
    const p = (init: string) =>
      pod({
        initContainers: [sidecar('s', of('100m')), container('i', of(init))],
        containers: [container('a', of('1')), container('b', of('1'))],
      });
    expect([podTotal(p('1'), 'requests', 'cpu'), podTotal(p('5'), 'requests', 'cpu'), podTotal(p('1'), 'limits', 'cpu')]).toEqual([
      '2100m',
      '5100m',
      undefined,
    ]);
  });
});

describe('names and resolver', () => {
  it('cuts host names and refuses a fully qualified name that the kernel cannot hold', () => {
    const long = pod({}, { metadata: { name: `${'a'.repeat(62)}.b.c` } });
    expect(podHostname(long, 'cluster.local')).toMatchObject({ ok: true, value: { hostname: 'a'.repeat(62) } });
    const fqdn = pod({ subdomain: 'sub', setHostnameAsFQDN: true });
    expect(podHostname(fqdn, 'cluster.local')).toMatchObject({ value: { kernelHostname: 'p.sub.ns.svc.cluster.local' } });
    expect(podHostname(fqdn, 'd'.repeat(60))).toMatchObject({ ok: false });
    expect(podHostname(pod({ hostname: 'Not_A_Label' }), '')).toMatchObject({ ok: false });
  });

  it('writes the hosts file of a pod and of one on the host network', () => {
    const p = pod({ subdomain: 'sub', hostAliases: [{ ip: '192.0.2.1', hostnames: ['x', 'y'] }] });
    expect(etcHosts({ pod: p, podIPs: ['10.0.0.5'], facts: FACTS })).toBe(
      '# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\nfe00::0\tip6-localnet\n' +
        'fe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n10.0.0.5\tp.sub.ns.svc.cluster.local\tp\n' +
        '\n# Entries added by HostAliases.\n192.0.2.1\tx\ty\n',
    );
    expect(etcHosts({ pod: pod({ hostNetwork: true }), podIPs: [], facts: FACTS, nodeHosts: '127.0.0.1 me\n' })).toBe(
      '# Kubernetes-managed hosts file (host network).\n127.0.0.1 me\n',
    );
  });

  it.each([
    ['ClusterFirst', false, ['10.96.0.10'], ['ns.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'example.org'], ['ndots:5']],
    ['ClusterFirst', true, ['192.0.2.53'], ['example.org'], ['edns0']],
    [
      'ClusterFirstWithHostNet',
      true,
      ['10.96.0.10'],
      ['ns.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'example.org'],
      ['ndots:5'],
    ],
    ['Default', false, ['192.0.2.53'], ['example.org'], ['edns0']],
    ['None', false, [], [], []],
  ] as const)('policy %s, host network %s', (dnsPolicy, hostNetwork, servers, searches, options) => {
    expect(podDns(pod({ dnsPolicy, hostNetwork }), FACTS)).toEqual({ config: { servers, searches, options }, warnings: [] });
  });

  it("merges the pod's own resolver settings, keeps the limits and says what it dropped", () => {
    const dnsConfig = {
      nameservers: ['1.1.1.1', '2.2.2.2', '3.3.3.3'],
      searches: ['example.org', 'x.y'],
      options: [{ name: 'ndots', value: '2' }, { name: 'edns0' }],
    };
    const { config, warnings } = podDns(pod({ dnsConfig }), FACTS);
    expect(config.servers).toEqual(['10.96.0.10', '1.1.1.1', '2.2.2.2']);
    expect(config.searches.slice(-2)).toEqual(['example.org', 'x.y']);
    expect(config.options).toEqual(['edns0', 'ndots:2']);
    expect(warnings.map((w) => w.reason)).toEqual(['DNSConfigForming']);
    const many = podDns(
      pod({ dnsPolicy: 'None', dnsConfig: { searches: Array.from({ length: 40 }, (_, i) => `${'d'.repeat(100)}${i}`) } }),
      FACTS,
    );
    expect(many.config.searches.join(' ').length).toBeLessThanOrEqual(2048);
  });

  it('falls back to the node without cluster DNS, and to loopback without a resolv.conf', () => {
    const { config, warnings } = podDns(pod(), { ...FACTS, clusterDNS: [], hostDns: null });
    expect(config).toEqual({ servers: ['127.0.0.1'], searches: ['.'], options: [] });
    expect(warnings.map((w) => w.reason)).toEqual(['MissingClusterDNS']);
  });

  it('reads resolv.conf', () => {
    const text = '# c\nnameserver 1.1.1.1\nsearch a.\nsearch b. .\nnameserver ::1 \noptions ndots:1 edns0\noptions ndots:2\n';
    expect(parseResolvConf(text)).toEqual({
      servers: ['1.1.1.1', '::1'],
      searches: ['b'],
      options: ['ndots:2', 'edns0'],
    });
    expect(() => parseResolvConf('search a\nnameserver\n')).toThrow('line 2');
  });
});

describe('sandbox configuration', () => {
  it("names the pod, keeps the node's labels over the pod's, and drops repeated ports", () => {
    const web = container('web', {
      ports: [
        { containerPort: 80, hostPort: 8080 },
        { containerPort: 80, hostPort: 8080 },
        { containerPort: 53, protocol: 'UDP' },
      ],
      securityContext: { privileged: true },
    });
    const p = pod(
      {
        containers: [web],
        hostPID: true,
        securityContext: { fsGroup: 5, supplementalGroups: [6], runAsUser: 0, sysctls: [{ name: 'net/core/somaxconn', value: '1' }] },
      },
      { metadata: { labels: { app: 'x', 'io.kubernetes.pod.uid': 'fake' } } },
    );
    const result = generateSandboxConfig(p, { attempt: 2, facts: FACTS, cgroupParent: '/kubepods' });
    expect(result).toMatchObject({
      ok: true,
      config: {
        metadata: { name: 'p', namespace: 'ns', uid: 'uid-1', attempt: 2 },
        hostname: 'p',
        logDirectory: '/var/log/pods/ns_p_uid-1',
        labels: { app: 'x', 'io.kubernetes.pod.uid': 'uid-1' },
        portMappings: [
          { protocol: 'TCP', containerPort: 80, hostPort: 8080, hostIp: '' },
          { protocol: 'UDP', containerPort: 53, hostPort: 0, hostIp: '' },
        ],
        linux: {
          cgroupParent: '/kubepods',
          sysctls: { 'net.core.somaxconn': '1' },
          securityContext: {
            privileged: true,
            runAsUser: { value: 0 },
            supplementalGroups: [5, 6],
            seccomp: { profileType: 'RuntimeDefault' },
            namespaceOptions: { network: 'POD', ipc: 'POD', pid: 'NODE' },
          },
        },
      },
    });
  });

  it.each([
    ['unless it says otherwise', {}, 'CONTAINER'],
    ['unless it shares them', { shareProcessNamespace: true }, 'POD'],
    ["unless they are the host's", { hostPID: true }, 'NODE'],
  ])('CRI trap 5: each container of a pod has processes of its own, %s', (_what, spec, pid) => {
    const sandbox = generateSandboxConfig(pod(spec), { attempt: 0, facts: FACTS });
    expect(sandbox.ok && sandbox.config.linux?.securityContext?.namespaceOptions?.pid).toBe(pid);
    const of = { kind: 'regular', restartCount: 0, imageRef: 'i', imageUser: null, podIPs: [], facts: FACTS, mounts: [] } as const;
    const one = generateContainerConfig({ ...of, pod: pod(spec), container: container('web') });
    expect(one.ok && one.config.linux?.securityContext?.namespaceOptions?.pid).toBe(pid);
  });

  it('leaves the host name out on the host network and refuses an impossible one', () => {
    const host = generateSandboxConfig(pod({ hostNetwork: true }), { attempt: 0, facts: FACTS });
    expect(host.ok && 'hostname' in host.config).toBe(false);
    expect(generateSandboxConfig(pod({ subdomain: '-' }), { attempt: 0, facts: FACTS })).toMatchObject({ ok: false });
  });
});

describe('container configuration', () => {
  const make = (
    c: Container,
    options: { spec?: Partial<Pod['spec']>; user?: ImageUser | null; facts?: Partial<typeof FACTS>; target?: string } = {},
  ) =>
    generateContainerConfig({
      pod: pod({ containers: [c], ...options.spec }, { metadata: { deletionGracePeriodSeconds: 3 } }),
      container: c,
      kind: 'regular',
      restartCount: 2,
      imageRef: 'sha256:abc',
      imageUser: options.user === undefined ? { uid: null, username: '' } : options.user,
      podIPs: ['10.0.0.5'],
      facts: { ...FACTS, ...options.facts },
      mounts: [],
      ...(options.target === undefined ? {} : { targetContainerId: options.target }),
    });
  const security = (c: Container, options: Parameters<typeof make>[1] = {}) => {
    const result = make(c, options);
    return result.ok ? result.config.linux?.securityContext : result.message;
  };

  it('writes on the container what must be read back after a restart', () => {
    const web = container('web', {
      command: ['run', '$(A)'],
      args: ['$(B)'],
      env: [{ name: 'A', value: 'x' }],
      lifecycle: { preStop: { exec: { command: ['bye'] } }, stopSignal: 'SIGUSR1' },
      terminationMessagePath: '/dev/termination-log',
      terminationMessagePolicy: 'File',
    });
    const result = make(web);
    expect(result).toMatchObject({
      ok: true,
      config: {
        metadata: { name: 'web', attempt: 2 },
        image: { image: 'sha256:abc', userSpecifiedImage: 'example.org/web:v1' },
        command: ['run', 'x'],
        args: ['$(B)'],
        logPath: 'web/2.log',
        stopSignal: 'SIGUSR1',
      },
    });
    expect(result.ok && result.config.labels).toEqual({
      'io.kubernetes.container.name': 'web',
      'io.kubernetes.pod.name': 'p',
      'io.kubernetes.pod.namespace': 'ns',
      'io.kubernetes.pod.uid': 'uid-1',
    });
    expect(result.ok && result.config.annotations).toEqual({
      'io.kubernetes.container.hash': expect.stringMatching(/^[0-9a-f]+$/),
      'io.kubernetes.container.restartCount': '2',
      'io.kubernetes.container.terminationMessagePath': '/dev/termination-log',
      'io.kubernetes.container.terminationMessagePolicy': 'File',
      'io.kubernetes.container.preStopHandler': '{"exec":{"command":["bye"]}}',
      'io.kubernetes.pod.deletionGracePeriod': '3',
      'io.kubernetes.pod.terminationGracePeriod': '30',
    });
  });

  it("user: the container's, the pod's, the image's number, its name, or root; left to the runtime when not known", () => {
    const web = container('web');
    expect(
      security(container('web', { securityContext: { runAsUser: 0 } }), { spec: { securityContext: { runAsUser: 7 } } }),
    ).toMatchObject({ runAsUser: { value: 0 } });
    expect(security(web, { spec: { securityContext: { runAsUser: 7, runAsGroup: 8 } } })).toMatchObject({
      runAsUser: { value: 7 },
      runAsGroup: { value: 8 },
    });
    expect(security(web, { user: { uid: 9, username: '' } })).toMatchObject({ runAsUser: { value: 9 } });
    expect(security(web, { user: { uid: null, username: 'www' } })).toMatchObject({ runAsUsername: 'www' });
    expect(security(web)).toMatchObject({ runAsUser: { value: 0 } });
    expect(security(web, { user: null })).not.toHaveProperty('runAsUser');
  });

  it.each([
    [0, { uid: 1, username: '' }, false],
    [5, { uid: 0, username: '' }, true],
    [undefined, { uid: 0, username: '' }, false],
    [undefined, { uid: null, username: '' }, false],
    [undefined, { uid: null, username: 'www' }, false],
    [undefined, { uid: 1000, username: '' }, true],
    [undefined, null, false],
  ] as const)('runAsNonRoot with user %s and image user %o: allowed is %s', (runAsUser, user, allowed) => {
    const web = container('web', { securityContext: { runAsNonRoot: true, ...(runAsUser === undefined ? {} : { runAsUser }) } });
    expect(make(web, { user }).ok).toBe(allowed);
  });

  it('seccomp, masked paths, privileges', () => {
    expect(security(container('web'))).toMatchObject({ seccomp: { profileType: 'Unconfined' }, noNewPrivs: false, privileged: false });
    expect(security(container('web'), { facts: { seccompDefault: true } })).toMatchObject({ seccomp: { profileType: 'RuntimeDefault' } });
    const local = container('web', {
      securityContext: {
        seccompProfile: { type: 'Localhost', localhostProfile: 'a/b.json' },
        procMount: 'Unmasked',
        allowPrivilegeEscalation: false,
      },
    });
    expect(security(local)).toMatchObject({
      seccomp: { profileType: 'Localhost', localhostRef: '/var/lib/kubelet/seccomp/a/b.json' },
      maskedPaths: [],
      readonlyPaths: [],
      noNewPrivs: true,
    });
    expect(make(container('web', { securityContext: { seccompProfile: { type: 'Localhost' } } })).ok).toBe(false);
    expect(security(container('web'))).toMatchObject({ maskedPaths: expect.arrayContaining(['/proc/kcore']) });
  });

  it('an ephemeral container joins the processes of its target, or is refused without one', () => {
    const debug = { ...container('debug'), targetContainerName: 'web' };
    expect(security(debug, { target: 'web-1' })).toMatchObject({ namespaceOptions: { pid: 'TARGET', targetId: 'web-1' } });
    expect(security(debug)).toContain('target container "web"');
  });
});
