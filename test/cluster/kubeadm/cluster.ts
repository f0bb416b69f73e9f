/** A cluster of kubeadm on nodes in namespaces: its configuration, its images, and what its API server shows. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { program } from '../../e2e/lab/cluster/controlPlane.ts';
import { buildImages, PAUSE_IMAGE } from '../../e2e/lab/images.ts';
import { until } from '../../e2e/lab/ports.ts';
import { archiveOf, coredns, corednsArchive, kubeProxyArchive } from '../../e2e/vm/kubeadm/images.ts';
import type { KubeadmNode } from './node.ts';

export const TEST_MS = 1_200_000;
const WAIT_MS = 420_000;

export interface PodSeen {
  metadata: { name: string; namespace: string; uid: string; labels?: Record<string, string> };
  spec: { nodeName?: string };
  status: {
    phase?: string;
    conditions?: { type: string; status: string; lastTransitionTime: string }[];
    initContainerStatuses?: ContainerSeen[];
    containerStatuses?: ContainerSeen[];
  };
}
interface ContainerSeen {
  restartCount: number;
  containerID: string;
}
interface NodeSeen {
  metadata: { name: string };
  status: { nodeInfo: { kubeletVersion: string }; conditions: { type: string; status: string }[] };
}

export const containersOf = ({ status }: PodSeen): ContainerSeen[] => [
  ...(status.initContainerStatuses ?? []),
  ...(status.containerStatuses ?? []),
];
export const isReady = ({ status }: PodSeen | NodeSeen): boolean =>
  status.conditions?.some((c: { type: string; status: string }) => c.type === 'Ready' && c.status === 'True') === true;
export const wait = (what: string, holds: () => Promise<boolean>): Promise<unknown> =>
  until(what, holds, { timeoutMs: WAIT_MS, everyMs: 1_000 });

export const STATIC = /^(?:etcd|kube-(?:apiserver|controller-manager|scheduler|vip)|keepalived|haproxy)-/;
export const isStatic = ({ metadata }: PodSeen): boolean => STATIC.test(metadata.name);

/** The cluster as it is seen by kubectl on one of its nodes. */
export class Seen {
  readonly #on: Pick<KubeadmNode, 'run'>;
  constructor(on: Pick<KubeadmNode, 'run'>) {
    this.#on = on;
  }
  async get<T>(what: string): Promise<T[]> {
    return (JSON.parse(await this.#on.run(`kubectl get ${what} -o json`)) as { items: T[] }).items;
  }
  pods(of: string): Promise<PodSeen[]> {
    return this.get<PodSeen>(`pods ${of}`);
  }
  podsReady(of: string, count: number): Promise<unknown> {
    return wait(`${count} pods (${of}) to be Ready`, async () => {
      const seen = await this.pods(of);
      return seen.length === count && seen.every(isReady);
    });
  }
  nodeIs(name: string, agent: 'actorlet' | 'kubelet'): Promise<unknown> {
    return wait(`${agent} to report of ${name}`, async () =>
      (await this.get<NodeSeen>('nodes')).some(
        (n) => n.metadata.name === name && isReady(n) && n.status.nodeInfo.kubeletVersion.includes('+actorlet') === (agent === 'actorlet'),
      ),
    );
  }
  /** The API server answers. */
  up(): Promise<unknown> {
    return wait('the API server', () => holds(this.#on, 'kubectl get --raw /readyz'));
  }
  /**
   * Static pods of the asked node are Ready, and the API server shows what the agent has: it writes statuses one after the other. actorlet
   * keeps the times that mirrors show, and has times of its own start for itself.
   */
  told(agent: 'actorlet' | 'kubelet' = 'actorlet'): Promise<unknown> {
    const lineOf = (pod: PodSeen) => (agent === 'actorlet' && isStatic(pod) ? untimed(lifeOf(pod)) : lifeOf(pod));
    return wait('the agent to have told of its pods', async () => {
      const answer = await this.#on.run('kubectl get --raw "/api/v1/nodes/$(hostname)/proxy/pods"');
      const own = (JSON.parse(answer) as { items: PodSeen[] }).items.filter(({ status }) => status.phase !== 'Succeeded');
      const shown = await this.pods('-A --field-selector spec.nodeName=$(hostname),status.phase!=Succeeded');
      return own.filter(isStatic).every(isReady) && isDeepStrictEqual(own.map(lineOf).sort(), shown.map(lineOf).sort());
    });
  }
  async lives(counts: (pod: PodSeen) => boolean = () => true): Promise<string[]> {
    return (await this.pods('-A')).filter(counts).map(lifeOf).sort();
  }
}

/** What a restart or a flip of Ready would change. */
function lifeOf(pod: PodSeen): string {
  const { metadata, status } = pod;
  const ready = status.conditions?.find((c) => c.type === 'Ready');
  const containers = containersOf(pod).map((c) => `${c.containerID} ${c.restartCount}`);
  return `${metadata.namespace}/${metadata.name} ${status.phase} ${ready?.status} since ${ready?.lastTransitionTime} ${containers.join()}`;
}

export const untimed = (line: string): string => line.replace(/since \S+/, '');

/** Whether a script ends well on that node. */
export const holds = (on: Pick<KubeadmNode, 'run'>, script: string): Promise<boolean> =>
  on.run(script).then(
    () => true,
    () => false,
  );

/** The end of the node's log joins what went wrong. */
export const orLog = (on: KubeadmNode, what: Promise<string>): Promise<string> =>
  what.catch((error: unknown) => {
    throw new Error(`${String(error)}\n${on.log().split('\n').slice(-30).join('\n')}`);
  });

export const kubeadmVersion = (assets?: string): string =>
  execFileSync(program('kubeadm', assets), ['version', '-o', 'short'], { encoding: 'utf8' }).trim();

const namesOf = ({ version, assets }: Release): string[] =>
  execFileSync(program('kubeadm', assets), ['config', 'images', 'list', '--kubernetes-version', version], { encoding: 'utf8' })
    .trim()
    .split('\n');

export interface Release {
  version: string;
  /** Folder of its programs. By default they are those of the tests. */
  assets?: string | undefined;
}

/** Whether CoreDNS is not a stand-in. */
export const resolvesNames = existsSync(coredns);

/** Of these releases. An image that two of them name is made once. */
export function images(releases: readonly Release[]) {
  const named = new Map(releases.flatMap((release) => namesOf(release).map((name) => [name, release.assets] as const)));
  const names = [...named.keys()];
  const built = buildImages();
  const archives = [...named].flatMap(([name, assets]) => {
    if (name.includes('/kube-proxy:')) return kubeProxyArchive(name, assets);
    return resolvesNames && name.includes('/coredns:') ? corednsArchive(name) : (archiveOf(name, assets) ?? []);
  });
  const pauses = names.filter((name) => name.includes('/pause:'));
  return { images: [...archives, built.busybox, built.pause], pauseImage: PAUSE_IMAGE, kubeadmsPause: pauses };
}

const TIMEOUTS =
  '{controlPlaneComponentHealthCheck: 8m, kubernetesAPICall: 8m, kubeletHealthCheck: 8m, etcdAPICall: 8m, tlsBootstrap: 8m, upgradeManifests: 8m}';

/**
 * Nodes and pods have no address of a Service: with nftables, kube-proxy drops what goes to such that nobody has.
 * Leases of leaders are not waited for on a slow machine, where there is one control plane. Nodes renew certificates after 6 to 9 minutes.
 */
export function clusterFile(o: { version: string; address: string; endpoint?: string }): string {
  const alone =
    o.endpoint === undefined
      ? '{name: leader-elect, value: "false"}'
      : '{name: leader-elect-lease-duration, value: 60s}, {name: leader-elect-renew-deadline, value: 40s}';
  return `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ${o.address}}
nodeRegistration: {ignorePreflightErrors: [all], kubeletExtraArgs: [{name: node-ip, value: ${o.address}}]}
timeouts: ${TIMEOUTS}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ${o.version}
${o.endpoint === undefined ? '' : `controlPlaneEndpoint: ${o.endpoint}\n`}networking: {podSubnet: 10.99.0.0/16, serviceSubnet: 10.100.0.0/16}
etcd: {local: {extraArgs: [{name: unsafe-no-fsync, value: "true"}, {name: heartbeat-interval, value: "500"}, {name: election-timeout, value: "5000"}]}}
controllerManager: {extraArgs: [${alone}, {name: node-monitor-grace-period, value: 10m}, {name: cluster-signing-duration, value: 10m}]}
scheduler: {extraArgs: [${alone}]}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: [none]
failCgroupV1: false
failSwapOn: false
evictionHard: {memory.available: "0%"}
imageGCHighThresholdPercent: 100
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {masqueradeAll: true}
nftables: {masqueradeAll: true}
`;
}
