/** Devices of plugins (resources and volumes 2.1, 2.5), a row for each case of the specification. */
import {
  type AllocationQuestion,
  asksForDevices,
  byNode,
  chooseDevices,
  deviceRequests,
  planAllocation,
  reusable,
} from '../../../../src/machines/allocation/devices/allocate.ts';
import { checkpointSum, decodeCheckpoint, encodeCheckpoint } from '../../../../src/machines/allocation/devices/checkpoint.ts';
import { connected, expired, listed, nodeDevices, remembered, stopped } from '../../../../src/machines/allocation/devices/inventory.ts';
import { mergeResponses } from '../../../../src/machines/allocation/devices/responses.ts';
import { admitPlugin, admitWatchedPlugin } from '../../../../src/machines/allocation/devices/rules.ts';
import type { Allocation, ContainerResponse, DeviceLedger, RegisterRequest } from '../../../../src/machines/allocation/devices/types.ts';
import { decodeResponse, encodeResponse } from '../../../../src/machines/allocation/devices/wire.ts';
import { reconcileNode } from '../../../../src/machines/api/node/nodeObject.ts';
import { isExtendedResource } from '../../../../src/machines/kube/names.ts';
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import { container, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const GPU = 'example.com/gpu';
const EMPTY: ContainerResponse = { envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
const FULL: ContainerResponse = {
  envs: { B: 'b', A: 'ä' },
  mounts: [{ containerPath: '/c', hostPath: '/h', readOnly: true }],
  devices: [{ containerPath: '/dev/c', hostPath: '/dev/h', permissions: 'mrw' }],
  annotations: { note: 'x'.repeat(200) },
  cdiDevices: ['example.com/gpu=0'],
};
const register = (over: Partial<RegisterRequest> = {}) =>
  admitPlugin({ version: 'v1beta1', endpoint: 'gpu.sock', resourceName: GPU, options: null, ...over }, '/plugins');
const watched = (over: object = {}) =>
  admitWatchedPlugin({ type: 'DevicePlugin', name: GPU, endpoint: '', supportedVersions: ['v1beta1'], ...over }, '/reg.sock');

const device = (id: string, o: { healthy?: boolean; numaNodes?: number[] } = {}) => ({ id, healthy: true, numaNodes: [], ...o });
const NOTHING: DeviceLedger = { resources: new Map(), gone: new Set(), allocations: [] };
const FOUR = listed(
  connected(NOTHING, GPU),
  GPU,
  ['a', 'b', 'c', 'd'].map((id) => device(id)),
);
const RETURNING: DeviceLedger = { ...NOTHING, resources: remembered([GPU]) };
const held = (uid: string, name: string, ids: string[], more: Partial<Allocation> = {}): Allocation => ({
  uid,
  container: name,
  resource: GPU,
  devices: { '-1': ids },
  response: EMPTY,
  ...more,
});
const holding = (ledger: DeviceLedger, ...allocations: Allocation[]): DeviceLedger => ({ ...ledger, allocations });
const asks = (name: string, count: string, more: Partial<Container> = {}): Container =>
  container(name, { resources: { limits: { [GPU]: count } }, ...more });
const POD = pod({ containers: [asks('main', '2')] });
const STEPS = pod({
  initContainers: [asks('first', '3'), asks('sidecar', '1', { restartPolicy: 'Always' }), asks('second', '1')],
  containers: [asks('main', '2'), asks('other', '1')],
});
const UID = POD.metadata.uid;
const plan = (ledger: DeviceLedger, over: Partial<AllocationQuestion> = {}) =>
  planAllocation(ledger, { pod: POD, container: 'main', resource: GPU, count: 2, running: false, reserved: new Set(), ...over });
const choose = (preferred: string[], over: { must?: string[]; count?: number } = {}) =>
  chooseDevices({ kind: 'choose', must: [], available: ['a', 'b', 'c'], count: 2, ...over }, preferred);
const seen = (ledger: DeviceLedger) => nodeDevices(ledger);
const sum = (json: string) => checkpointSum(JSON.parse(json) as Parameters<typeof checkpointSum>[0]);
const NVIDIA = '{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":["GPU-0650a168-e770-3ea8-8ac3-8a1d419763e0"]}}';
const reading = (text: string): unknown => {
  try {
    return decodeCheckpoint(text);
  } catch (error) {
    return error instanceof Error ? error.message : error;
  }
};
const WRITTEN = encodeCheckpoint(holding(FOUR, held('u', 'c', ['a', 'b'], { response: FULL })));
const OLD = { PodUID: 'u', ContainerName: 'c', ResourceName: GPU, DeviceIDs: ['a'], AllocResp: '' };
const NODE = {
  apiVersion: 'v1' as const,
  kind: 'Node' as const,
  metadata: { name: 'n' },
  spec: {},
  status: { capacity: { cpu: '4', [GPU]: '2' }, allocatable: { cpu: '4', [GPU]: '1' } },
};

const ROWS: Record<string, () => unknown> = {
  'registration: a good one': () => register(),
  'registration: another version': () => register({ version: 'v1alpha' }),
  'registration: a resource without a domain': () => register({ resourceName: 'gpu' }),
  'registration: a resource of Kubernetes': () => register({ resourceName: 'kubernetes.io/gpu' }),
  'registration: below a domain of Kubernetes': () => register({ resourceName: 'x.kubernetes.io/gpu' }),
  'registration: a quota': () => register({ resourceName: 'requests.example.com/gpu' }),
  'registration: a name that is none': () => register({ resourceName: 'example.com/-gpu' }),
  'registration: a path in place of a name': () => register({ endpoint: '../gpu.sock' }),
  'registration: no socket': () => register({ endpoint: '' }),
  'watched: a good one': () => watched(),
  'watched: with a socket of its own': () => watched({ endpoint: '/run/gpu.sock' }),
  'watched: other versions': () => watched({ supportedVersions: ['v1', 'v2'] }),
  'watched: a name that is no resource': () => watched({ name: 'gpu' }),
  'names: the longest domain that stands behind requests.': () => [244, 245].map((n) => isExtendedResource(`${'a'.repeat(n)}/gpu`)),

  'inventory: connected, nothing told yet': () => seen(connected(NOTHING, GPU)),
  'inventory: told': () => seen(FOUR),
  'inventory: told anew, less': () => seen(listed(FOUR, GPU, [device('a')])),
  'inventory: some are not well': () => seen(listed(FOUR, GPU, [device('a'), device('b', { healthy: false })])),
  'inventory: one that is told both ways': () => seen(listed(FOUR, GPU, [device('a'), device('a', { healthy: false })])),
  'inventory: its plugin is gone (trap 27)': () => seen(stopped(FOUR, GPU)),
  'inventory: its plugin is back, nothing told yet': () => seen(connected(stopped(FOUR, GPU), GPU)),
  'inventory: gone for too long (trap 27, boot trap 51)': () => seen(expired(stopped(FOUR, GPU), GPU)),
  'inventory: back after that': () => seen(listed(connected(expired(stopped(FOUR, GPU), GPU), GPU), GPU, [device('a')])),
  'inventory: after a restart': () => seen(RETURNING),
  'inventory: after a restart, for too long': () => seen(expired(RETURNING, GPU)),
  'inventory: the end of one that is not known': () => seen(stopped(expired(NOTHING, GPU), GPU)),

  'asked for: limits count, by name': () =>
    deviceRequests({ resources: { limits: { 'z.com/z': '1', cpu: '2', [GPU]: '2' }, requests: {} } }),
  'asked for: none of it': () => deviceRequests({ resources: { limits: { [GPU]: '0', 'hugepages-2Mi': '2Mi' } } }),
  'asked for: by an init container': () => asksForDevices(pod({ initContainers: [asks('i', '1')] })),
  'asked for: by nobody': () => asksForDevices(pod()),

  'plan: free ones': () => plan(FOUR),
  'plan: too few': () => plan(listed(FOUR, GPU, [device('a')])),
  'plan: too few, since others hold them': () => plan(holding(FOUR, held('v', 'x', ['a', 'b', 'c']))),
  'plan: too few, since others are being given them': () => plan(FOUR, { reserved: new Set(['a', 'b', 'c']) }),
  'plan: none that is not well': () => plan(listed(FOUR, GPU, [device('a', { healthy: false }), device('b', { healthy: false })])),
  'plan: no such plugin': () => plan(NOTHING),
  'plan: no such plugin any more': () => plan(expired(FOUR, GPU)),
  'plan: no such plugin, though somebody holds some': () => plan(holding(NOTHING, held('v', 'x', ['a']))),
  'plan: it has them': () => plan(holding(FOUR, held(UID, 'main', ['a', 'b']))),
  'plan: it has another number of them': () => plan(holding(FOUR, held(UID, 'main', ['a']))),
  'plan: it has them, and runs, whatever became of the plugin (trap 30)': () =>
    plan(holding(NOTHING, held(UID, 'main', ['a', 'b'])), { running: true }),
  'plan: it has them, its plugin is not back': () => plan(holding(RETURNING, held(UID, 'main', ['a', 'b']))),
  'plan: it has them, its plugin will not be back': () => plan(holding(expired(RETURNING, GPU), held(UID, 'main', ['a', 'b']))),
  'plan: it has them, none is well': () => plan(holding(stopped(FOUR, GPU), held(UID, 'main', ['a', 'b']))),
  'plan: it has them, one is not well': () => plan(holding(listed(FOUR, GPU, [device('a')]), held(UID, 'main', ['a', 'b']))),

  'used again: nothing before it': () => reusable(holding(FOUR, held(UID, 'first', ['a'])), STEPS, { container: 'first', resource: GPU }),
  'used again: of the init container before': () =>
    reusable(holding(FOUR, held(UID, 'first', ['a', 'b', 'c'])), STEPS, { container: 'sidecar', resource: GPU }),
  'used again: not what a sidecar has': () =>
    reusable(holding(FOUR, held(UID, 'first', ['a', 'b', 'c']), held(UID, 'sidecar', ['b'])), STEPS, {
      container: 'second',
      resource: GPU,
    }),
  'used again: not what a container before it has': () =>
    reusable(holding(FOUR, held(UID, 'first', ['a', 'b', 'c']), held(UID, 'main', ['a', 'c'])), STEPS, {
      container: 'other',
      resource: GPU,
    }),
  'used again: goes before free ones': () =>
    planAllocation(holding(FOUR, held(UID, 'first', ['d'])), {
      ...{ pod: STEPS, container: 'main', resource: GPU, count: 2, running: false, reserved: new Set<string>() },
    }),
  'used again: enough of them': () =>
    planAllocation(holding(FOUR, held(UID, 'first', ['b', 'c', 'd'])), {
      ...{ pod: STEPS, container: 'main', resource: GPU, count: 2, running: false, reserved: new Set(['a']) },
    }),

  'choice: nothing preferred': () => choose([]),
  'choice: what is preferred': () => choose(['c', 'b']),
  'choice: some of it': () => choose(['c']),
  'choice: what cannot be given is not': () => choose(['x', 'c']),
  'choice: more than wanted': () => choose(['c', 'b', 'a']),
  'choice: what must be given is': () => choose(['c'], { must: ['z'] }),

  'places: none named': () => byNode(FOUR.resources.get(GPU), ['a', 'b']),
  'places: one, several, none': () =>
    byNode(listed(FOUR, GPU, [device('a', { numaNodes: [1] }), device('b', { numaNodes: [0, 1] }), device('c')]).resources.get(GPU), [
      'a',
      'b',
      'c',
    ]),

  'answers: of one plugin': () => mergeResponses([{ resource: GPU, response: FULL }]),
  'answers: the first word counts': () =>
    mergeResponses([
      { resource: GPU, response: FULL },
      {
        resource: 'example.com/other',
        response: {
          envs: { A: 'other', C: 'c' },
          mounts: [{ containerPath: '/c', hostPath: '/other', readOnly: false }],
          devices: [{ containerPath: '/dev/c', hostPath: '/dev/other', permissions: 'r' }],
          annotations: { note: 'other' },
          cdiDevices: ['example.com/gpu=0', 'example.com/other=1'],
        },
      },
    ]),
  'answers: the same word twice is no conflict': () =>
    mergeResponses([
      { resource: GPU, response: FULL },
      { resource: 'example.com/other', response: FULL },
    ]).conflicts,

  'bytes: empty': () => [...encodeResponse(EMPTY)],
  'bytes: of a variable': () => [...encodeResponse({ ...EMPTY, envs: { K: 'v' } })],
  'bytes: there and back': () =>
    JSON.stringify(decodeResponse(encodeResponse(FULL))) === JSON.stringify({ ...FULL, envs: { A: 'ä', B: 'b' } }),
  'bytes: of a later version': () =>
    decodeResponse(Uint8Array.from([0x78, 1, 0x7d, 1, 2, 3, 4, 0x79, 1, 2, 3, 4, 5, 6, 7, 8, 0x0a, 3, 0x0a, 1, 75])),

  'checksum: of the specification': () => sum(NVIDIA),
  'checksum: nothing at all': () => sum('{"PodDeviceEntries":null,"RegisteredDevices":{}}'),
  'checksum: with devices': () =>
    sum(
      '{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":{"0":["a","b"]},"AllocResp":"CgM="}],"RegisteredDevices":{"r":["a"]}}',
    ),
  'record: written': () => JSON.parse(WRITTEN) as unknown,
  'record: written, of nothing': () => encodeCheckpoint(NOTHING),
  'record: read': () => reading(WRITTEN),
  'record: read, names in another case': () => reading(WRITTEN.replace('"Data"', '"data"').replace('"PodUID"', '"poduid"')),
  'record: changed by somebody': () => reading(WRITTEN.replace('"u"', '"v"')),
  'record: torn': () => typeof reading(WRITTEN.slice(0, 40)),
  'record: of nothing': () => reading('{}'),
  'record: the older layout': () =>
    reading(JSON.stringify({ Data: { PodDeviceEntries: [OLD], RegisteredDevices: { [GPU]: ['a'] } }, Checksum: 1 })),
  'record: of the reference, of the specification': () => reading(`{"Data":${NVIDIA},"Checksum":3952659280}`),

  'node: what it counted stays': () => reconcileNode(NODE, NODE),
  'node: nothing is believed where there is no record': () => reconcileNode(NODE, NODE, { resetExtended: true }),
  'node: nothing to forget': () => reconcileNode({ ...NODE, status: { capacity: { cpu: '4' } } }, NODE, { resetExtended: true }),
};

goldenTable('devices of plugins', 'allocation/devices', ROWS);
