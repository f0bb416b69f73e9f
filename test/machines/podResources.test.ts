/** What the pod resources API answers, and how many calls it answers. */
import { expect, it } from 'vitest';
import { heldCpus } from '../../src/machines/allocation/cpus/share.ts';
import { heldDevices } from '../../src/machines/allocation/devices/held.ts';
import type { DeviceLedger } from '../../src/machines/allocation/devices/types.ts';
import {
  allocatableResources,
  callBucket,
  listPodResources,
  type PodResourcesFacts,
  podResourcesByName,
} from '../../src/machines/edge/podResources.ts';
import type { Container } from '../../src/machines/kube/podTable.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import type { PodRecord } from '../../src/machines/pods/manager/messages.ts';
import { REFUSED, RUNNING } from '../lifeStates.ts';

const NO_RESPONSE = { envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
const container = (name: string, o: Partial<Container> = {}) => ({ name, image: 'i', ...o }) as Container;
const record = (uid: string, o: Partial<PodRecord> = {}, spec: Partial<Pod['spec']> = {}): [string, PodRecord] => [
  uid,
  {
    pod: {
      metadata: { uid, name: `pod-${uid}`, namespace: 'n' },
      spec: { containers: [container('c')], ...spec },
      status: {},
    } as unknown as Pod,
    source: 'api',
    state: RUNNING,
    seenAtMs: 0,
    worker: null,
    ...o,
  } as PodRecord,
];
const devices: DeviceLedger = {
  resources: new Map([
    [
      'x/gpu',
      {
        healthy: new Set(['a', 'b', 'c']),
        unhealthy: new Set(['d']),
        numa: new Map([
          ['a', [0]],
          ['b', [0, 1]],
        ]),
        returning: false,
      },
    ],
  ]),
  gone: new Set(),
  allocations: [{ uid: '1', container: 'c', resource: 'x/gpu', devices: { '0': ['b'], '1': ['b'], '-1': ['c'] }, response: NO_RESPONSE }],
};
const facts = (records: [string, PodRecord][], o: Partial<PodResourcesFacts> = {}): PodResourcesFacts => ({
  ...{ records: new Map(records), statuses: undefined, held: [heldDevices(devices)] },
  ...o,
});
const gpu = (id: string, node?: number) => ({
  ...{ resourceName: 'x/gpu', deviceIds: [id] },
  ...(node === undefined ? {} : { topology: { nodes: [{ ID: node }] } }),
});

it('names each device of a container once for each NUMA node, and the CPUs that nobody else may use', () => {
  const ledger = { shared: [0, 1], entries: new Map([['1', new Map([['c', [2, 3]]])]]) };
  const held = [heldDevices(devices), heldCpus({ ledger, quotaLifted: false, allocatable: [1, 2, 3] })];
  const known = facts([record('1'), record('2')], { held });
  expect(listPodResources(known, { active: true })).toEqual([
    {
      name: 'pod-1',
      namespace: 'n',
      containers: [{ name: 'c', devices: [gpu('b', 0), gpu('b', 1), gpu('c')], cpuIds: [2, 3], memory: [] }],
    },
    { name: 'pod-2', namespace: 'n', containers: [{ name: 'c', devices: [], cpuIds: [], memory: [] }] },
  ]);
  expect(allocatableResources(known)).toEqual({
    devices: [gpu('a', 0), gpu('b', 0), gpu('b', 1), gpu('c')],
    cpuIds: [1, 2, 3],
    memory: [],
  });
});

it('lists sidecars before containers, and no other init container', () => {
  const initContainers = [container('init'), container('side', { restartPolicy: 'Always' })];
  const [pod] = listPodResources(facts([record('1', {}, { initContainers })]), { active: true });
  expect(pod?.containers.map((c) => c.name)).toEqual(['side', 'c']);
});

it('leaves out pods that have ended, where only active ones are wanted, and what only the runtime knows', () => {
  const ended = { phase: 'finished' } as PodRecord['worker'];
  const failed = record('4');
  const all = facts(
    [record('1'), record('2', { state: REFUSED }), record('3', { worker: ended }), failed, record('5', { source: 'runtime' })],
    {
      statuses: new Map([['4', { status: { phase: 'Failed' } }]]) as unknown as PodResourcesFacts['statuses'],
    },
  );
  const names = (active: boolean) => listPodResources(all, { active }).map((p) => p.name);
  expect(names(true)).toEqual(['pod-1']);
  expect(names(false)).toEqual(['pod-1', 'pod-2', 'pod-3', 'pod-4']);
  expect(podResourcesByName(all, { namespace: 'n', name: 'pod-4' })?.name).toBe('pod-4');
  expect(podResourcesByName(all, { namespace: 'other', name: 'pod-4' })).toBeNull();
  expect(podResourcesByName(all, { namespace: 'n', name: 'pod-5' })).toBeNull();
});

it('knows a pod that was recreated under its name as what it is now, whatever its predecessor held', () => {
  const again = (uid: string, o: Partial<PodRecord> = {}) => {
    const [, made] = record(uid, o);
    const one: [string, PodRecord] = [uid, { ...made, pod: { ...made.pod, metadata: { ...made.pod.metadata, name: 'web' } } }];
    return one;
  };
  const finished = { phase: 'finished' } as PodRecord['worker'];
  const devicesOf = (records: [string, PodRecord][]) =>
    podResourcesByName(facts(records), { namespace: 'n', name: 'web' })?.containers.map((c) => c.devices.length);
  // Pod 1 holds devices, and pod 2 none.
  expect(devicesOf([again('1'), again('2')])).toEqual([0]);
  expect(devicesOf([again('1', { worker: finished }), again('2')])).toEqual([0]);
  expect(devicesOf([again('1'), again('2', { state: REFUSED })])).toEqual([3]);
  expect(devicesOf([again('2', { worker: finished }), again('1', { worker: finished })])).toEqual([3]);
});

it('answers ten calls at once, then a hundred each second', () => {
  const bucket = callBucket();
  const call = (ms: number) => bucket.take(ms);
  expect(Array.from({ length: 12 }, () => call(1000)).filter(Boolean)).toHaveLength(10);
  expect([call(1005), call(1010), call(1011), call(1021)]).toEqual([false, true, false, true]);
  // A long rest does not make more than ten.
  expect(Array.from({ length: 12 }, () => call(100_000)).filter(Boolean)).toHaveLength(10);
});
