/**
 * The node's own object (boot-and-node 9.1, 9.2, 9.4, 9.6): what it is registered with, what is put right, its conditions with
 * the very reasons and messages, what it has and gives, and the events about it.
 */
import { type HostResources, nodeResources } from '../../../../src/machines/api/node/nodeCapacity.ts';
import { nodeEvents, schedulableEvent } from '../../../../src/machines/api/node/nodeEvents.ts';
import {
  initialNode,
  type NodeObject,
  type NodeReadings,
  type NodeStatus,
  nodeConditions,
  nodeStatus,
  nodeStatusPatch,
  readyProblems,
  reconcileNode,
  sameNodeStatus,
} from '../../../../src/machines/api/node/nodeObject.ts';
import type { ReservationConfig } from '../../../../src/machines/config/reservations.ts';
import type { NodeIdentity } from '../../../../src/machines/nodeFacts.ts';
import type { RuntimePodsView } from '../../../../src/machines/pod/runtime/seen.ts';
import type { CriView } from '../../../../src/machines/runtime/cri/messages.ts';
import { goldenTable } from '../table.ts';

const GI = 1024 ** 3;
const ID: NodeIdentity = {
  name: 'n1',
  hostname: 'host1',
  labels: {},
  taints: [],
  schedulable: true,
  providerID: '',
  externalCloud: false,
  providedIPs: '',
  controllerAttachDetach: true,
  os: 'linux',
  arch: 'amd64',
};
const registered = (over: Partial<NodeIdentity>) => () => {
  const { metadata, spec } = initialNode({ ...ID, ...over }, {});
  return { metadata, spec };
};

const node = (metadata: Partial<NodeObject['metadata']>, spec: NodeObject['spec'] = {}): NodeObject => ({
  ...initialNode(ID, {}),
  spec,
  metadata: { ...initialNode(ID, {}).metadata, ...metadata },
});
const labels = (over: Record<string, string>) => ({ labels: { ...initialNode(ID, {}).metadata.labels, ...over } });
const reconciled =
  (existing: NodeObject, over: Partial<NodeIdentity> = {}) =>
  () =>
    reconcileNode(existing, initialNode({ ...ID, ...over }, {}));

const cri = (over: Partial<CriView> = {}): CriView => ({
  state: 'ready',
  reason: '',
  runtimeName: 'r',
  runtimeVersion: '1',
  runtimeReady: true,
  networkReady: true,
  networkReason: '',
  lastGoodMonoMs: 1_000_000,
  ...over,
});
const listing = (atMonoMs = 1_000_000): RuntimePodsView => ({ atMonoMs, pods: new Map(), via: 'poll' });
const RESOURCES = { cpu: '4', memory: '1', pods: '110' };
const readings = (over: Partial<NodeReadings> = {}): NodeReadings => ({
  addresses: ['192.0.2.1'],
  hostname: 'host1',
  capacity: RESOURCES,
  allocatable: RESOURCES,
  nodeInfo: { bootID: 'b1' },
  port: 10_250,
  images: [],
  runtimeHandlers: [],
  cri: cri(),
  listing: listing(),
  shuttingDown: false,
  nowMonoMs: 1_000_000,
  nowWallMs: 0,
  ...over,
});
const conditions =
  (over: Partial<NodeReadings> = {}) =>
  () =>
    nodeConditions([], readings(over)).map(({ type, status, reason, message }) => `${type}=${status} ${reason}: ${message}`);
const problems = (over: Partial<NodeReadings>) => () => readyProblems(readings(over));

const status = (over: Partial<NodeReadings> = {}, before: NodeStatus = {}) => nodeStatus(before, readings(over));
const FIRST = status();
/** As the server gives it back. */
function withoutImages(): NodeStatus {
  const { images: _, ...rest } = status({ images: [] });
  return rest;
}
const patched =
  (over: Partial<NodeReadings>, before: NodeStatus = FIRST) =>
  () => {
    const next = status({ nowWallMs: 60_000, ...over }, before);
    return { same: sameNodeStatus(before, next), patch: nodeStatusPatch(before, next), events: nodeEvents('n1', before, next) };
  };
const EXTENDED: NodeStatus = {
  ...FIRST,
  capacity: { ...RESOURCES, 'example.org/gpu': '2' },
  allocatable: { ...RESOURCES, 'example.org/gpu': '1' },
};
const HUGE: NodeStatus = {
  ...FIRST,
  capacity: { ...RESOURCES, 'hugepages-1Gi': '0' },
  allocatable: { ...RESOURCES, 'hugepages-1Gi': '0' },
};

const host = { cpus: 4, memoryBytes: 8 * GI, storageBytes: 100 * GI, hugePages: {} };
const RESERVED: ReservationConfig = {
  maxPods: 110,
  podsPerCore: 0,
  kubeReserved: {},
  systemReserved: {},
  reservedSystemCPUs: '',
  evictionHard: {},
  ignoreEviction: false,
};
const room =
  (over: Partial<ReservationConfig>, more: Partial<HostResources> = {}) =>
  () =>
    nodeResources({ ...host, ...more }, { ...RESERVED, ...over });

goldenTable('the node object is as recorded', 'node/node', {
  'registered: as it is': registered({}),
  'registered: labels of its own win': registered({ labels: { zone: 'a', 'kubernetes.io/arch': 'arm64' } }),
  'registered: taints': registered({
    taints: [
      { key: 'k', value: 'v', effect: 'NoSchedule' },
      { key: 'e', value: '', effect: 'NoExecute' },
    ],
  }),
  'registered: not schedulable': registered({ schedulable: false }),
  'registered: not schedulable, tainted so already': registered({
    schedulable: false,
    taints: [{ key: 'node.kubernetes.io/unschedulable', value: '', effect: 'NoExecute' }],
  }),
  'registered: in a cloud that others look after': registered({ externalCloud: true, providerID: 'cloud://n1' }),
  'registered: with addresses for the controller of a cloud': registered({ externalCloud: true, providedIPs: '192.0.2.1,fd00::1' }),
  'registered: volumes are attached by the node': registered({ controllerAttachDetach: false }),

  'put right: nothing': reconciled(node({})),
  'put right: a default label that somebody changed': reconciled(node(labels({ 'kubernetes.io/hostname': 'other' }))),
  'put right: a default label that is gone': reconciled(node({ labels: {} })),
  'put right: a label of a zone': reconciled(node({}), { labels: { 'topology.kubernetes.io/zone': 'z1' } }),
  'put right: a label of a zone that is to be empty': reconciled(node(labels({ 'topology.kubernetes.io/zone': 'z1' })), {
    labels: { 'topology.kubernetes.io/zone': '' },
  }),
  'put right: not a label of --node-labels (trap 48)': reconciled(node({}), { labels: { custom: 'yes' } }),
  'put right: not a label of somebody else': reconciled(node(labels({ theirs: 'yes' }))),
  'put right: the annotation about attaching, missing': reconciled(node({ annotations: {} })),
  'put right: the annotation about attaching, not wanted': reconciled(node({}), { controllerAttachDetach: false }),
  'put right: the addresses for the controller of a cloud': reconciled(node({}), { providedIPs: '192.0.2.1' }),
  'put right: addresses for the controller of a cloud that nobody names any more': reconciled(
    node({ annotations: { 'alpha.kubernetes.io/provided-node-ip': '192.0.2.1', ...node({}).metadata.annotations } }),
  ),
  'put right: neither taints nor spec': reconciled(node({}, { unschedulable: true, taints: [{ key: 'k', effect: 'NoSchedule' }] }), {
    providerID: 'cloud://n1',
    taints: [{ key: 'own', value: '', effect: 'NoSchedule' }],
  }),

  'conditions: all is well': conditions(),
  'conditions: short of memory': conditions({ pressures: ['MemoryPressure'] }),
  'conditions: short of disk': conditions({ pressures: ['DiskPressure'] }),
  'conditions: short of process ids': conditions({ pressures: ['PIDPressure'] }),
  'conditions: one reason stands bare': conditions({ shuttingDown: true }),
  'conditions: several reasons stand in one list': conditions({ shuttingDown: true, capacity: { cpu: '4', memory: '1' } }),

  'not Ready: the runtime was never asked': problems({ cri: cri({ lastGoodMonoMs: null }), listing: undefined }),
  'not Ready: there is no word of the runtime at all': problems({ cri: undefined, listing: undefined }),
  'not Ready: the runtime has been silent for 30 s (trap 54)': problems({ cri: cri({ state: 'lost', lastGoodMonoMs: 970_000 }) }),
  'not Ready: the runtime has been silent for longer (trap 54)': problems({ cri: cri({ state: 'lost', lastGoodMonoMs: 969_999 }) }),
  'not Ready: the runtime says that it is not': problems({ cri: cri({ runtimeReady: false, reason: 'Draining: it is busy' }) }),
  'not Ready: the runtime says so without a reason': problems({ cri: cri({ runtimeReady: false }) }),
  'not Ready: no network': problems({
    cri: cri({ networkReady: false, networkReason: 'NetworkPluginNotReady: cni plugin not initialized' }),
  }),
  'not Ready: neither runtime nor network': problems({ cri: cri({ runtimeReady: false, networkReady: false }) }),
  'not Ready: no listing yet': problems({ listing: undefined }),
  'not Ready: the last listing is 3 min old': problems({ listing: listing(820_000) }),
  'not Ready: the last listing is older': problems({ listing: listing(819_999) }),
  'not Ready: no cpu': problems({ capacity: { memory: '1', pods: '110' } }),
  'not Ready: no memory': problems({ capacity: { cpu: '4', pods: '110' } }),
  'not Ready: no pods': problems({ capacity: { cpu: '4', memory: '1' } }),
  'not Ready: neither cpu nor pods': problems({ capacity: { memory: '1' } }),
  'not Ready: no ephemeral-storage, where pods are held to what they may write': problems({ needed: ['ephemeral-storage'] }),
  'Ready: no ephemeral-storage, where nobody counts it': problems({ needed: [] }),
  'Ready: with ephemeral-storage': problems({ needed: ['ephemeral-storage'], capacity: { ...RESOURCES, 'ephemeral-storage': '1' } }),
  'not Ready: shutting down': problems({ shuttingDown: true }),

  'status: written for the first time (trap 50)': patched({}, {}),
  'status: only time has passed (trap 46)': patched({}),
  'status: only time has passed on a node without images, which the server leaves out': patched({ images: [] }, withoutImages()),
  'status: a pressure': patched({ pressures: ['DiskPressure'] }),
  'status: not Ready': patched({ shuttingDown: true }),
  'status: Ready for another reason than before': patched({ cri: cri({ networkReady: false }) }, status({ shuttingDown: true })),
  'status: another address (trap 47)': patched({ addresses: ['192.0.2.2', 'fd00::2'] }),
  'status: no address is known': patched({ addresses: [] }),
  "status: the addresses of a cloud's controller stay": patched({ externalCloud: true, addresses: ['192.0.2.9'] }),
  "status: before a cloud's controller has come, addresses that were named": () =>
    status({ externalCloud: true, addresses: ['192.0.2.9'] }).addresses,
  "status: before a cloud's controller has come, the host name alone where nobody named any": () =>
    status({ externalCloud: true, addresses: [] }).addresses,
  'status: booted anew': patched({ nodeInfo: { bootID: 'b2' } }),
  'status: extended resources stay': patched({}, EXTENDED),
  'status: a size of huge pages that is no more': patched({}, HUGE),
  'status: nothing listens': patched({ port: 0 }),
  'status: conditions of others stay': patched(
    {},
    {
      ...FIRST,
      conditions: [
        { type: 'NetworkUnavailable', status: 'False', reason: 'r', message: 'm', lastHeartbeatTime: '', lastTransitionTime: '' },
        ...(FIRST.conditions ?? []),
      ],
    },
  ),

  'event: cordoned': () => schedulableEvent('n1', false, true),
  'event: not cordoned any more': () => schedulableEvent('n1', true, false),
  'event: as before': () => schedulableEvent('n1', true, true),

  'room: all of it': room({}),
  'room: reserved for both': room({
    kubeReserved: { cpu: '500m', memory: '1Gi' },
    systemReserved: { cpu: '1', 'ephemeral-storage': '10Gi' },
  }),
  'room: hard eviction of memory and disk': room({ evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '10%' } }),
  'room: hard eviction of anything else': room({
    evictionHard: { 'imagefs.available': '15%', 'nodefs.inodesFree': '5%', 'pid.available': '5%' },
  }),
  'room: eviction is not to count': room({ evictionHard: { 'memory.available': '100Mi' }, ignoreEviction: true }),
  'room: a list of CPUs (trap 13)': room({ reservedSystemCPUs: '0,2', kubeReserved: { cpu: '1' }, systemReserved: { cpu: '1' } }),
  'room: huge pages (trap 52)': room({}, { hugePages: { '2Mi': GI, '1Gi': 2 * GI } }),
  'room: never below zero': room({ kubeReserved: { cpu: '9', memory: '9Gi', 'ephemeral-storage': '999Gi' } }),
  'room: pods by cores, where that is less': room({ podsPerCore: 10 }),
  'room: pods by cores, where that is more': room({ podsPerCore: 100 }),
  'room: storage that is not accounted for': room({ evictionHard: { 'nodefs.available': '10%' } }, { storageBytes: null }),
});
