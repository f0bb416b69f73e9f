/** Validation reports every violation, each with field and flag (boot-and-node 2.6, 3). */
import { describe, expect, it } from 'vitest';
import { getPath } from '../../../src/boot/config/paths.ts';
import { runnable } from '../../../src/boot/config/runnable.ts';
import { createFeatureGates } from '../../../src/machines/config/gates.ts';
import { load, problemsOf } from '../helpers.ts';

describe('the configuration', () => {
  it('of defaults is valid, with and without a file', async () => {
    expect(await problemsOf([])).toEqual([]);
    expect(await problemsOf([], '')).toEqual([]);
  });

  it.each([
    ['port: 70000', 'port (--port): 70000 must be in 1..65535'],
    ['readOnlyPort: -1', 'readOnlyPort (--read-only-port): -1 must be in 0..65535'],
    ['oomScoreAdj: 1001', 'oomScoreAdj (--oom-score-adj): 1001 must be in -1000..1000'],
    ['nodeLeaseDurationSeconds: -1', 'nodeLeaseDurationSeconds: -1 must be at least 1'],
    ['syncFrequency: -1s', 'syncFrequency (--sync-frequency): -1s must be at least 1ms'],
    ['address: nowhere', 'address (--address): "nowhere" is not an IP address'],
    ['podLogsDir: /var/../log', 'podLogsDir: "/var/../log" must be an absolute path'],
    ['podLogsDir: /var/log/', 'podLogsDir: "/var/log/" must be an absolute path'],
    ['authorization: {mode: RBAC}', 'authorization.mode (--authorization-mode): "RBAC" is not one of AlwaysAllow, Webhook'],
    ['tlsMinVersion: TLS1', 'tlsMinVersion (--tls-min-version): "TLS1" is not one of'],
    ['tlsCipherSuites: [NOPE]', 'tlsCipherSuites (--tls-cipher-suites): "NOPE" is not a known suite'],
    ['imageGCLowThresholdPercent: 90', 'imageGCLowThresholdPercent (--image-gc-low-threshold): 90 must be below'],
    ['imageMaximumGCAge: 1m', 'imageMaximumGCAge: 1m0s must exceed imageMinimumGCAge'],
    ['maxParallelImagePulls: 0', 'maxParallelImagePulls: 0 must be at least 1'],
    ['maxParallelImagePulls: 2\nserializeImagePulls: true', 'maxParallelImagePulls: 2 contradicts serializeImagePulls'],
    [
      'imagePullCredentialsVerificationPolicy: NeverVerify\nfeatureGates: {KubeletEnsureSecretPulledImages: false}',
      'needs feature gate KubeletEnsureSecretPulledImages',
    ],
    ['imagePullCredentialsVerificationPolicy: Sometimes', '"Sometimes" is not one of'],
    ['preloadedImagesVerificationAllowlist: [r.io/a]', 'is only possible with'],
    ['imageMinimumGCAge: -1s', '-1s must not be negative'],
    ...['busybox:1', 'r.io/a:1', 'r.io/*/a', '/*', 'r.io/ a'].map((entry): [string, string] => [
      `preloadedImagesVerificationAllowlist: ["${entry}"]`,
      `"${entry}" must be an image name without tag or digest`,
    ]),
    ['cpuCFSQuotaPeriod: 50ms\nfeatureGates: {CustomCPUCFSQuotaPeriod: false}', 'needs feature gate CustomCPUCFSQuotaPeriod'],
    ['memoryReservationPolicy: TieredReservation', 'TieredReservation needs feature gate MemoryQoS'],
    ['memoryReservationPolicy: All', 'is not one of None, TieredReservation'],
    ['tlsCurvePreferences: [29, 7]', '7 is not one of 4588'],
    ['tlsCurvePreferences: [29, 29]', 'names a curve twice'],
    [
      'enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]\nkubeReservedCgroup: /k',
      'kube-reserved and kube-reserved-compressible exclude each other',
    ],
    ['cpuCFSQuotaPeriod: 2s\nfeatureGates: {CustomCPUCFSQuotaPeriod: true}', '2s must be in 1ms..1s'],
    ['evictionHard: {memory.free: 1Gi}', 'evictionHard.memory.free: is not an eviction signal'],
    ['evictionHard: {memory.available: 101%}', '"101%" must be in 0%..100%'],
    ['evictionHard: {memory.available: "0"}', '0 must be above 0'],
    ['evictionSoft: {memory.available: 5%}', 'evictionSoft.memory.available: needs an entry in evictionSoftGracePeriod'],
    ['evictionSoftGracePeriod: {memory.available: -1s}', '"-1s" must be a duration of at least 0s'],
    ['evictionMinimumReclaim: {memory.available: -1Gi}', '-1Gi must be at least 0'],
    ['systemCgroups: /sys', 'systemCgroups (--system-cgroups): needs cgroupRoot (--cgroup-root) to be set'],
    ['cgroupsPerQOS: false', 'enforceNodeAllocatable (--enforce-node-allocatable): must be empty'],
    ['enforceNodeAllocatable: [none, pods]', 'none must stand alone'],
    ['enforceNodeAllocatable: [kube-reserved]', 'kubeReservedCgroup (--kube-reserved-cgroup): is needed by kube-reserved'],
    ['systemReserved: {gpu: "1"}', 'systemReserved.gpu: cannot be reserved'],
    ['systemReserved: {cpu: lots}', 'systemReserved.cpu: "lots" is not a quantity'],
    ['reservedSystemCPUs: 3-1', 'reservedSystemCPUs (--reserved-cpus): "3-1" is not a CPU list'],
    ['reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 0, limits: {memory: 1Gi}}]', 'is given twice for NUMA node 0'],
    ['memorySwap: {swapBehavior: UnlimitedSwap}', '"UnlimitedSwap" is not one of NoSwap, LimitedSwap'],
    ['hairpinMode: maybe', 'hairpinMode (--hairpin-mode): "maybe" is not one of'],
    ['containerLogMaxFiles: 1', 'containerLogMaxFiles (--container-log-max-files): 1 must be at least 2'],
    ['containerLogMonitorInterval: 1s', 'containerLogMonitorInterval: 1s must be at least 3s'],
    ['shutdownGracePeriod: 500ms', 'shutdownGracePeriod: 500ms must be 0s or at least 1s'],
    ['shutdownGracePeriod: 5s\nshutdownGracePeriodCriticalPods: 6s', '6s must not exceed shutdownGracePeriod'],
    ['memoryThrottlingFactor: 1.5', '1.5 must be above 0 and at most 1'],
    ['registerWithTaints: [{key: a, effect: Never}]', 'registerWithTaints[0].effect: "Never" is not one of'],
    ['tracing: {samplingRatePerMillion: 2000000}', 'tracing.samplingRatePerMillion: 2000000 must be in 0..1000000'],
    ['tracing: {endpoint: "http://localhost:4317"}', 'tracing.endpoint: "http://localhost:4317": the scheme must be none, dns or unix'],
    ['tracing: {endpoint: "://me:hu/sh@h:1"}', 'tracing.endpoint: "<masked>@h:1": the scheme must be'],
    ['containerRuntimeEndpoint: http://me:hush@h', '"http://<masked>@h/" must be unix:///path/to.sock'],
    ['tracing: {endpoint: "unix-abstract://otel"}', 'the scheme must be none, dns or unix'],
    ['tracing: {endpoint: "a b"}', 'tracing.endpoint: "a b" is not host:port'],
    ['tracing: {endpoint: "dns:///"}', 'tracing.endpoint: "dns:///" is not host:port'],
    [
      'containerRuntimeEndpoint: tcp://1.2.3.4:1',
      'must be unix:///path/to.sock or one of embedded://process, embedded://oci, embedded://hollow',
    ],
    ['containerRuntimeEndpoint: embedded://magic', 'must be unix:///path/to.sock'],
    ['imageServiceEndpoint: tcp://1.2.3.4:1', 'must be unix:///path/to.sock'],
    ['containerRuntimeEndpoint: embedded://process\nimageServiceEndpoint: unix:///x.sock', 'serves its images itself'],
    [
      'crashLoopBackOff: {maxContainerRestartPeriod: 10s}\nfeatureGates: {KubeletCrashLoopBackOffMax: false}',
      'needs feature gate KubeletCrashLoopBackOffMax',
    ],
    ['crashLoopBackOff: {maxContainerRestartPeriod: 10m}\nfeatureGates: {KubeletCrashLoopBackOffMax: true}', '10m0s must be in 1s..300s'],
    ['userNamespaces: {idsPerPod: 1000}', '1000 must be a multiple of 65536'],
    ['allowedUnsafeSysctls: [vm.swappiness]', '"vm.swappiness" is not namespaced'],
    ['allowedUnsafeSysctls: ["vm.*"]', '"vm.*" is not namespaced'],
    ['allowedUnsafeSysctls: ["*"]', '"*" is not a sysctl name or a prefix ending in *'],
    ['allowedUnsafeSysctls: ["net.*.forwarding"]', '"net.*.forwarding" is not a sysctl name or a prefix ending in *'],
    ['allowedUnsafeSysctls: ["Net.core.somaxconn"]', 'is not a sysctl name or a prefix ending in *'],
    ['logging: {format: xml}', 'logging.format (--logging-format): "xml" is not one of text, json'],
    ['showHiddenMetricsForVersion: "1.20"', 'must be empty or 1.35'],
  ])('%s', async (body, problem) => {
    const found = await problemsOf([], `${body}\n`);
    expect(found.join('\n')).toContain(problem);
  });

  it.each([
    'containerRuntimeEndpoint: embedded://process',
    'containerRuntimeEndpoint: embedded://hollow',
    'imageServiceEndpoint: unix:///run/containerd/containerd.sock',
    'imageServiceEndpoint: unix:///other.sock',
    'enforceNodeAllocatable: []\ncgroupsPerQOS: false',
    'evictionHard: {memory.available: 0%, pid.available: 100%}',
    'allowedUnsafeSysctls: ["net.ipv4.*", "kernel.msg*", "net/core/*", "net.ipv4.tcp_*", kernel.sem]',
    'podPidsLimit: -7',
  ])('accepts %s', async (body) => {
    expect(await problemsOf([], `${body}\n`)).toEqual([]);
  });

  it('reports all of it at once, with file and line', async () => {
    const found = await problemsOf(
      ['--node-labels=node-role.kubernetes.io/x=,bad_/k=v', '--exit-on-lock-contention'],
      'port: 70000\nhairpinMode: x\nmaxPods: five\n',
    );
    expect(found).toHaveLength(6);
    expect(found.join('\n')).toMatch(/port \(--port\): 70000 must be in 1\.\.65535 \[.*kubelet\.yaml:3\]/);
  });
});

describe('flags', () => {
  it.each([
    [['--exit-on-lock-contention'], '--exit-on-lock-contention: needs --lock-file'],
    [['--node-labels=node-role.kubernetes.io/master='], '--node-labels: node-role.kubernetes.io/master: in a namespace of Kubernetes'],
    [['--node-ip=1.2.3.4,5.6.7.8'], '--node-ip: 1.2.3.4,5.6.7.8 must be one address, or one IPv4 and one IPv6 address'],
    [['--node-ip=0.0.0.0,fd00::1'], '--node-ip: 0.0.0.0 cannot be one of a pair'],
    [['--cloud-provider=aws'], '--cloud-provider: "aws" must be empty or external'],
    [['--dynamic-config-dir='], '--dynamic-config-dir: dynamic configuration was removed'],
    [['--container-runtime=docker'], '--container-runtime: only "remote" is possible'],
    [['--allow-privileged=false'], '--allow-privileged: only "true" is possible'],
    [['--image-credential-provider-config=/x'], 'must be given together'],
    [['--root-dir='], '--root-dir: must not be empty'],
  ])('%j', async (argv, problem) => {
    expect((await problemsOf(argv)).join('\n')).toContain(problem);
  });

  it('accepts labels of the kubelet and of other owners', async () => {
    expect(
      await problemsOf([
        '--node-labels=topology.kubernetes.io/zone=a,node.kubernetes.io/x=1,sub.kubelet.kubernetes.io/y=,example.com/z=1,plain=2',
        '--container-runtime=remote',
        '--node-ip=1.2.3.4,fd00::1',
      ]),
    ).toEqual([]);
  });
});

/** The kubelet of 1.36 was seen to start with each of these. */
describe('what has no meaning', () => {
  it.each([
    ['serverTLSBootstrap: true', 'serverTLSBootstrap', false],
    ['tlsCertFile: /a', 'tlsCertFile', ''],
    ['tlsPrivateKeyFile: /a', 'tlsPrivateKeyFile', ''],
    ['cgroupDriver: systmd', 'cgroupDriver', 'cgroupfs'],
    ['configMapAndSecretChangeDetectionStrategy: watch', 'configMapAndSecretChangeDetectionStrategy', 'Watch'],
    ['containerLogMaxSize: "0"', 'containerLogMaxSize', '10Mi'],
    ['fileCheckFrequency: -1s', 'fileCheckFrequency', 20_000],
    ['httpCheckFrequency: -1s', 'httpCheckFrequency', 20_000],
    ['cpuManagerReconcilePeriod: -1s', 'cpuManagerReconcilePeriod', 10_000],
    ['healthzBindAddress: localhost', 'healthzBindAddress', '127.0.0.1'],
    ['healthzBindAddress: here', 'healthzPort', 0],
    ['qosReserved: {memory: 50%}', 'qosReserved', {}],
    ['registerWithTaints: [{key: a}]', 'registerWithTaints', []],
    [
      'shutdownGracePeriodByPodPriority: [{priority: 5, shutdownGracePeriodSeconds: -1}]',
      'shutdownGracePeriodByPodPriority',
      [{ priority: 5, shutdownGracePeriodSeconds: 0 }],
    ],
    ['staticPodURL: ftp://x', 'staticPodURL', ''],
    ['tracing: {endpoint: ""}', 'tracing.endpoint', null],
  ] as const)('is left without effect, with a warning: %s', async (body, path, value) => {
    const loaded = await load([], `${body}\n`);
    expect(await problemsOf([], `${body}\n`)).toEqual([]);
    const { config, warnings } = runnable({ ...loaded, gates: createFeatureGates({}).gates });
    expect(getPath(config, path)).toEqual(value);
    expect(warnings).toHaveLength(1);
  });

  it('has a meaning in a cluster, where the kubelet refuses it', async () => {
    expect(await problemsOf(['--kubeconfig=/k'], 'configMapAndSecretChangeDetectionStrategy: watch\n')).toHaveLength(1);
    expect(await problemsOf(['--kubeconfig=/k'], 'registerWithTaints: [{key: a}]\n')).toHaveLength(1);
    expect(await problemsOf(['--kubeconfig=/k'], 'serverTLSBootstrap: true\n')).toEqual([]);
  });
});

describe('feature gates', () => {
  it('refuse the opposite of a lock, leave an unknown name alone, and warn of GA and deprecated ones (trap 11)', () => {
    expect(createFeatureGates({ NoSuch: true, MemoryQoS: true })).toMatchObject({ locked: [], unknown: ['NoSuch'] });
    expect(createFeatureGates({ ExecProbeTimeout: false }).locked).toEqual(['ExecProbeTimeout']);
    // Of an older release: passed over, and it is on.
    const gone = createFeatureGates({ NodeLease: false });
    expect([gone.locked, gone.unknown, gone.gates.enabled('NodeLease')]).toEqual([[], ['NodeLease'], true]);
    const same = createFeatureGates({ NodeLease: true, AllowDNSOnlyNodeCSR: true });
    expect(same.locked).toEqual([]);
    expect(same.warnings).toHaveLength(2);
    expect(same.gates.enabled('AllowDNSOnlyNodeCSR')).toBe(true);
  });

  it('let an explicit sibling win over AllAlpha, whatever the order (trap 12)', () => {
    for (const map of [
      { AllAlpha: true, QOSReserved: false },
      { QOSReserved: false, AllAlpha: true },
    ]) {
      const { gates } = createFeatureGates(map);
      expect([gates.enabled('QOSReserved'), gates.enabled('MemoryQoS'), gates.enabled('SELinuxMount')]).toEqual([false, true, false]);
    }
    expect(createFeatureGates({ AllBeta: true }).gates.enabled('SELinuxMount')).toBe(true);
    expect(createFeatureGates({ AllBeta: false }).gates.enabled('ComponentStatusz')).toBe(false);
    expect(createFeatureGates({ AllBeta: false }).gates.enabled('SystemdWatchdog')).toBe(true);
  });

  it('store nothing on an error and throw when code asks for a gate that is not registered', () => {
    const { gates } = createFeatureGates({ MemoryQoS: true, ExecProbeTimeout: false });
    expect(gates.enabled('MemoryQoS')).toBe(false);
    expect(() => gates.enabled('Nope')).toThrow(/not registered/);
    expect(gates.list().length).toBeGreaterThan(150);
  });
});
