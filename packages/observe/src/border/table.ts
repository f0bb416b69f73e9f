/**
 * What becomes of each function of each port on a node whose kubelet is another program. The types hold that no function is left
 * out; at run time one that is not in here is refused.
 */
import type { KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { CsiMethod } from '@actorlet/kubelet/machines/wire/csi.ts';
import type { Ports } from '@actorlet/kubelet/ports/ports.ts';

/**
 * `read`: it changes nothing, and is passed on. `own`: it concerns this process and its own folder. `expected`: the kubelet does it;
 * the world shows when. `refused`: it fails, saying why.
 */
export type Verdict = 'read' | 'own' | 'expected' | 'refused';

type FunctionsOf<T> = { [K in keyof T]-?: NonNullable<T[K]> extends (...args: never[]) => unknown ? K : never }[keyof T];
/** `absent`: the node has no such port, as on a machine without it. */
type PortRow<T> = { readonly [K in FunctionsOf<T>]: Verdict };
type PortTable = { readonly [P in keyof Required<Ports>]: PortRow<NonNullable<Ports[P]>> | 'absent' };

export const PORTS = {
  clock: { wallMs: 'own', monoMs: 'own', setTimeout: 'own', clearTimeout: 'own' },
  rng: { next: 'own' },
  entropy: { bytes: 'own', md5Hex: 'own', sha256Hex: 'own' },
  yield: { defer: 'own' },
  documents: { decode: 'own' },
  fs: {
    readFile: 'read',
    readTail: 'read',
    openRead: 'read',
    readdir: 'read',
    stat: 'read',
    lstat: 'read',
    readlink: 'read',
    statfs: 'read',
    writeFile: 'expected',
    rename: 'expected',
    fsyncDir: 'expected',
    mkdirp: 'expected',
    symlink: 'expected',
    chmod: 'expected',
    unlink: 'expected',
    rmdir: 'expected',
  },
  // The notification is that of the observer's own unit.
  sys: { watchDir: 'read', notify: 'own' },
  net: { httpGet: 'expected', serveHttp: 'own', serveHealth: 'refused' },
  prober: { httpGet: 'refused', tcpDial: 'refused', grpcHealth: 'refused' },
  host: {
    hostname: 'read',
    bootId: 'read',
    bootTimeMs: 'read',
    identity: 'read',
    inUserNamespace: 'read',
    capacity: 'read',
    idleMs: 'read',
    usedCpuNs: 'read',
    memory: 'read',
    memoryControl: 'read',
    tasks: 'read',
    cpus: 'read',
    numaNodes: 'read',
    addresses: 'read',
    lookup: 'read',
    cpuUsageMs: 'read',
    rssBytes: 'read',
  },
  // Calls by their method: CRI.
  cri: { call: 'expected', hints: 'read', reconnect: 'own', close: 'own' },
  // Programs that know credentials; the kubelet pulls.
  credentialPrograms: 'absent',
  mounter: {
    list: 'read',
    kindOf: 'read',
    groupOf: 'read',
    mount: 'expected',
    bindSubPath: 'expected',
    unmount: 'expected',
    detach: 'expected',
    sever: 'refused',
    makeDir: 'expected',
    makeFile: 'expected',
    giveToGroup: 'expected',
    growFileSystem: 'expected',
    tool: 'refused',
    tellKernel: 'refused',
    chown: 'expected',
  },
  journal: { read: 'read' },
  diskUsage: { measure: 'read' },
  gzip: { compress: 'expected' },
  // Calls by their method: CSI.
  csi: { getInfo: 'read', notify: 'expected', call: 'expected' },
  cgroups: {
    detect: 'read',
    exists: 'read',
    read: 'read',
    list: 'read',
    pids: 'read',
    create: 'expected',
    apply: 'expected',
    enter: 'refused',
    moveFromRoot: 'refused',
    kill: 'expected',
    remove: 'expected',
  },
  // Sockets of these belong to the kubelet.
  devicePlugins: 'absent',
  dra: 'absent',
  podResources: 'absent',
  podsApi: 'absent',
  kernelLog: { follow: 'read' },
  // A lock delays the shutdown of the machine.
  inhibitor: 'absent',
  iptables: 'absent',
  // Requests by what they change: writeOf.
  kube: { request: 'expected', watch: 'read', closeConnections: 'own', reload: 'own', close: 'own' },
  certificates: { generateKey: 'own', request: 'own', podKey: 'own', sameRequest: 'own', inspect: 'own' },
  log: { debug: 'own', info: 'own', warn: 'own', error: 'own', child: 'own', setVerbosity: 'own' },
  metrics: { counter: 'own', gauge: 'own', histogram: 'own', onCollect: 'own', render: 'own' },
  handling: { of: 'own', documentAside: 'own', podAside: 'own' },
  profiler: { cpu: 'own', heap: 'own' },
  debugger: { open: 'own', close: 'own' },
  inputRecorder: { now: 'own', start: 'own', stop: 'own' },
  observer: { ledger: 'own', watch: 'own', pods: 'own', unexpected: 'own' },
} as const satisfies PortTable;

export const CRI = {
  Version: 'read',
  Status: 'read',
  RuntimeConfig: 'read',
  PodSandboxStatus: 'read',
  ListPodSandbox: 'read',
  ListContainers: 'read',
  ContainerStatus: 'read',
  ContainerStats: 'read',
  ListContainerStats: 'read',
  PodSandboxStats: 'read',
  ListPodSandboxStats: 'read',
  ListMetricDescriptors: 'read',
  ListPodSandboxMetrics: 'read',
  ListImages: 'read',
  ImageStatus: 'read',
  ImageFsInfo: 'read',
  RunPodSandbox: 'expected',
  StopPodSandbox: 'expected',
  RemovePodSandbox: 'expected',
  CreateContainer: 'expected',
  StartContainer: 'expected',
  StopContainer: 'expected',
  RemoveContainer: 'expected',
  PullImage: 'expected',
  RemoveImage: 'expected',
  UpdateContainerResources: 'expected',
  UpdatePodSandboxResources: 'expected',
  UpdateRuntimeConfig: 'expected',
  ReopenContainerLog: 'expected',
  ExecSync: 'expected',
  CheckpointContainer: 'refused',
  Exec: 'refused',
  Attach: 'refused',
  PortForward: 'refused',
} as const satisfies Record<CriMethod, Verdict>;

export const CSI = {
  NodeGetInfo: 'read',
  NodeGetCapabilities: 'read',
  NodeGetVolumeStats: 'read',
  NodeStageVolume: 'expected',
  NodeUnstageVolume: 'expected',
  NodePublishVolume: 'expected',
  NodeUnpublishVolume: 'expected',
  NodeExpandVolume: 'expected',
} as const satisfies Record<CsiMethod, Verdict>;

/** A write of the API that the kubelet makes. */
export type KubeWrite =
  | { kind: 'podStatus' | 'podDeletion'; namespace: string; name: string }
  | { kind: 'mirrorPod'; namespace: string }
  | { kind: 'nodeStatus' | 'csiNode' | 'lease' }
  | { kind: 'event' }
  | { kind: 'token' };

const WRITES: readonly { verbs: readonly KubeRequest['verb'][]; path: RegExp; write(parts: readonly string[]): KubeWrite }[] = [
  {
    verbs: ['PATCH'],
    path: /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/status$/,
    write: ([namespace = '', name = '']) => ({ kind: 'podStatus', namespace, name }),
  },
  {
    verbs: ['DELETE'],
    path: /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)$/,
    write: ([namespace = '', name = '']) => ({ kind: 'podDeletion', namespace, name }),
  },
  { verbs: ['POST'], path: /^\/api\/v1\/namespaces\/([^/]+)\/pods$/, write: ([namespace = '']) => ({ kind: 'mirrorPod', namespace }) },
  { verbs: ['POST', 'PUT', 'PATCH'], path: /^\/api\/v1\/nodes(\/[^/]+(\/status)?)?$/, write: () => ({ kind: 'nodeStatus' }) },
  {
    verbs: ['POST', 'PUT'],
    path: /^\/apis\/coordination\.k8s\.io\/v1\/namespaces\/kube-node-lease\/leases(\/[^/]+)?$/,
    write: () => ({ kind: 'lease' }),
  },
  { verbs: ['POST', 'PUT', 'PATCH'], path: /^\/apis\/storage\.k8s\.io\/v1\/csinodes(\/[^/]+)?$/, write: () => ({ kind: 'csiNode' }) },
  { verbs: ['POST', 'PATCH'], path: /^\/api\/v1\/namespaces\/[^/]+\/events(\/[^/]+)?$/, write: () => ({ kind: 'event' }) },
  { verbs: ['POST'], path: /^\/api\/v1\/namespaces\/[^/]+\/serviceaccounts\/[^/]+\/token$/, write: () => ({ kind: 'token' }) },
];

/** What a request changes. Null: what nobody expects of a kubelet here, and is refused. Not for GET. */
export function writeOf({ verb, path }: Pick<KubeRequest, 'verb' | 'path'>): KubeWrite | null {
  for (const { verbs, path: pattern, write } of WRITES) {
    const match = verbs.includes(verb) ? pattern.exec(path) : null;
    if (match !== null) return write(match.slice(1).map((part) => decodeURIComponent(part ?? '')));
  }
  return null;
}
