/** Pods and runtime states in few words. */
import type { Container, PodSpec } from '../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import type { NodeFacts } from '../../../src/machines/nodeFacts.ts';
import { hashNameAndImage } from '../../../src/machines/pod/runtime/containerHash.ts';
import { sortContainers, sortSandboxes } from '../../../src/machines/pod/runtime/runtimeStatus.ts';
import type { PodRuntimeStatus, RuntimeContainer, RuntimeSandbox } from '../../../src/machines/pod/runtime/seen.ts';
import type { ThresholdConfig } from '../../../src/machines/reclaim/eviction/thresholds.ts';

export const T0_MS = Date.parse('2024-05-01T10:00:00Z');
export const NOW_MS = T0_MS + 3_600_000;

export const FACTS: NodeFacts = {
  nodeName: 'node-a',
  hostIPs: ['192.0.2.10'],
  rootDir: '/var/lib/kubelet',
  podLogsDir: '/var/log/pods',
  containerLogsDir: '/var/log/containers',
  clusterDomain: 'cluster.local',
  clusterDNS: ['10.96.0.10'],
  hostDns: { servers: ['192.0.2.53'], searches: ['example.org'], options: ['edns0'] },
  hostsFile: '/etc/hosts',
  capacity: { cpu: '4', memory: '8Gi', pods: '110' },
  memoryCapacityBytes: 4 * 1024 ** 3,
  allocatable: { cpu: '2', memory: '4Gi', 'ephemeral-storage': '20Gi' },
  cpuCFSQuota: true,
  cpuCFSQuotaPeriodMs: 100,
  seccompDefault: false,
  hugePageSizes: [],
  runtimeName: 'containerd',
  maxRestartBackoffMs: 300_000,
};

export function container(name: string, more: Partial<Container> = {}): Container {
  return { name, image: `example.org/${name}:v1`, ...more };
}
export function sidecar(name: string, more: Partial<Container> = {}): Container {
  return container(name, { restartPolicy: 'Always', ...more });
}

/** A pod of the API server unless `source` says otherwise; restart policy Always. */
export function pod(
  spec: Partial<PodSpec> = {},
  more: { metadata?: Partial<Pod['metadata']>; status?: Pod['status']; source?: string } = {},
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'p',
      namespace: 'ns',
      uid: 'uid-1',
      annotations: { 'kubernetes.io/config.source': more.source ?? 'api' },
      ...more.metadata,
    },
    spec: { restartPolicy: 'Always', terminationGracePeriodSeconds: 30, containers: [container('web')], ...spec },
    status: more.status ?? { phase: 'Pending' },
  };
}

/** `n` is the age rank: a larger one is newer. Id is `{name}-{n}`. The hash is that of `container(name)`. */
export function rc(
  name: string,
  state: RuntimeContainer['state'],
  more: Partial<RuntimeContainer> & { n?: number } = {},
): RuntimeContainer {
  const { n = 1, ...fields } = more;
  const startedAtMs = T0_MS + n * 1000;
  return {
    id: `${name}-${n}`,
    name,
    state,
    createdAtNs: BigInt(T0_MS + n * 1000) * 1_000_000n,
    startedAtMs: state === 'created' ? null : startedAtMs,
    finishedAtMs: state === 'exited' ? startedAtMs + 500 : null,
    exitCode: 0,
    image: `example.org/${name}:v1`,
    imageRef: `sha256:${name}`,
    reason: '',
    message: '',
    hash: hashNameAndImage(container(name)),
    restartCount: n - 1,
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    logPath: `/var/log/pods/ns_p_uid-1/${name}/${n - 1}.log`,
    terminationMessageHostPath: null,
    annotations: {},
    ...fields,
  };
}

export function box(more: Partial<RuntimeSandbox> & { n?: number } = {}): RuntimeSandbox {
  const { n = 1, ...fields } = more;
  return {
    id: `sandbox-${n}`,
    attempt: n - 1,
    ready: true,
    createdAtNs: BigInt(T0_MS + n * 1000) * 1_000_000n,
    ips: ['10.0.0.5'],
    hostNetwork: false,
    ...fields,
  };
}

export function observed(containers: readonly RuntimeContainer[], sandboxes: readonly RuntimeSandbox[] = [box()]): PodRuntimeStatus {
  const sorted = sortSandboxes(sandboxes);
  return {
    uid: 'uid-1',
    name: 'p',
    namespace: 'ns',
    ips: sorted[0]?.ready === true ? [...sorted[0].ips] : [],
    sandboxes: sorted,
    containers: sortContainers(containers),
    observedAtMonoMs: 1,
  };
}

/** Nothing is evicted, and nothing is kept from pods. */
export const NO_THRESHOLDS: ThresholdConfig = {
  evictionHard: {},
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  evictionMinimumReclaim: {},
  enforceNodeAllocatable: [],
  cgroupsPerQOS: true,
};
