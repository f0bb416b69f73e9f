/** Cgroups of the node's own: how they are called, and what is written into them (resources 1.3 to 1.8). */
import { groupWrites, presentValues } from '../../../../../src/machines/allocation/cgroups/files.ts';
import { hierarchiesOf } from '../../../../../src/machines/allocation/cgroups/hierarchies.ts';
import {
  componentOf,
  configuredName,
  groupPath,
  kubepodsName,
  plainParent,
  podGroupName,
  rootName,
  sliceOf,
  TIERS,
  tierName,
  uidOf,
} from '../../../../../src/machines/allocation/cgroups/names.ts';
import { newSlice, parentSlice, unitProperties } from '../../../../../src/machines/allocation/cgroups/units.ts';
import {
  atLeast,
  type GroupValues,
  inFull,
  kubepodsValues,
  type PodGroupRules,
  podValues,
  reservedValues,
  tierValues,
} from '../../../../../src/machines/allocation/cgroups/values.ts';
import type { Container, ResourceRequirements } from '../../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../../src/machines/kube/types.ts';
import { container, pod, sidecar } from '../../../pods/fixtures.ts';
import { goldenTable } from '../../table.ts';

const ALL = ['cpu', 'memory', 'pids', 'hugetlb'];
const RULES: PodGroupRules = { cpuCFSQuota: true, cpuCFSQuotaPeriodMs: 100, podPidsLimit: -1, pageSizes: ['2MB', '1GB'] };
const UID = '1a2b3c4d-0000-4000-8000-00000000beef';

const of = (...resources: ResourceRequirements[]): Pod =>
  pod({ containers: resources.map((r, i) => container(`c${i}`, { resources: r })) }, { metadata: { uid: UID } });
const guaranteed = of({ requests: { cpu: '500m', memory: '64Mi' }, limits: { cpu: '500m', memory: '64Mi' } });
const burstable = of({ requests: { cpu: '250m', memory: '32Mi' } });
const bestEffort = of({});

/** What is written, in both versions, `controller file value` each. */
function written(values: GroupValues, controllers: readonly string[] = ALL): Record<string, string[]> {
  const in_ = (version: 1 | 2) => groupWrites(values, { version, controllers }).map((w) => `${w.controller} ${w.file} ${w.value}`);
  return { v1: in_(1), v2: in_(2) };
}
const ofPod =
  (p: Pod, rules: Partial<PodGroupRules> = {}) =>
  () =>
    written(podValues(p, { ...RULES, ...rules }));
const names = (p: Pod, root = '/') => {
  const name = podGroupName(kubepodsName(root), p);
  return { cgroupfs: groupPath(name, 'cgroupfs'), systemd: groupPath(name, 'systemd') };
};

goldenTable('names of control groups', 'allocation/cgroups/cgroupNames', {
  'a Guaranteed pod stands right below kubepods (trap 14)': () => names(guaranteed),
  'a Burstable pod: dashes of its UID are escaped, and slices nest (trap 15)': () => names(burstable),
  'a BestEffort pod': () => names(bestEffort),
  'below a root of its own': () => names(burstable, '/nodes/a'),
  'the classes': () => TIERS.map((t) => groupPath(tierName(kubepodsName(''), t), 'systemd')),
  'the root': () => [groupPath(rootName('/'), 'cgroupfs'), groupPath(rootName(''), 'systemd')],
  'a directory back to its component': () => [
    componentOf('pod1a2b', 'cgroupfs'),
    componentOf('kubepods-burstable-pod1a_2b.slice', 'systemd'),
    componentOf('burstable', 'systemd'),
  ],
  'whose a component is': () => ['pod1a-2b', 'pod', 'burstable', 'kubepods'].map(uidOf),
});

goldenTable('names with the driver systemd', 'allocation/cgroups/cgroupSlices', {
  'a configured group: a path, a slice, a slice with its parents, the root': () =>
    ['/system', 'system.slice', '/a.slice/a-b_c.slice', '/', '-.slice'].map((path) => ({
      path,
      cgroupfs: groupPath(configuredName(path, 'cgroupfs'), 'cgroupfs'),
      systemd: groupPath(configuredName(path, 'systemd'), 'systemd'),
    })),
  'the slice of a path, and its parent': () =>
    ['/kubepods.slice/kubepods-burstable.slice', '/kubepods.slice', '/kubepods/burstable'].map((path) => {
      const slice = sliceOf(path);
      return [slice, slice === null ? null : parentSlice(slice)];
    }),
  'the parent of sandboxes without groups of their own': () =>
    ['', '/', '/nodes/a'].map((root) => [plainParent(root, 'cgroupfs') ?? null, plainParent(root, 'systemd') ?? null]),
});

/** D-Bus has 64 bits, JSON has not. */
const properties = (list: ReturnType<typeof newSlice>) =>
  Object.fromEntries(list.map(([name, { type, value }]) => [name, `${type} ${value}`]));
const told = (values: GroupValues, version: 1 | 2, systemd = 257) =>
  properties(unitProperties(groupWrites(values, { version, controllers: ALL }), systemd));
const every: GroupValues = {
  cpuShares: 512,
  cpuQuotaUs: 33_333,
  cpuPeriodUs: 100_000,
  memoryBytes: 4096,
  pids: 7,
  hugePages: { '2MB': 0n },
};

goldenTable('properties of slices', 'allocation/cgroups/cgroupUnits', {
  'a new one, in both versions': () => [properties(newSlice('kubepods-burstable.slice', 1)), properties(newSlice('kubepods.slice', 2))],
  'every limit, a quota rounded up to a hundredth of a processor': () => [told(every, 1), told(every, 2)],
  'no limit is infinity': () => told({ cpuQuotaUs: -1, cpuPeriodUs: 100_000, memoryBytes: -1, pids: -1 }, 2),
  'a systemd that does not know the period of a quota': () => told(every, 2, 239),
  'nothing that systemd knows': () => told({ hugePages: { '1GB': 1n << 62n } }, 2),
});

const limited = (cpu: string, memory: string): ResourceRequirements => ({ requests: { cpu: '100m' }, limits: { cpu, memory } });
const side = (resources: ResourceRequirements): Pod =>
  pod({ initContainers: [sidecar('side', { resources })], containers: [container('main', { resources: limited('1', '64Mi') })] });

goldenTable('values of pods', 'allocation/cgroups/cgroupPods', {
  Guaranteed: ofPod(guaranteed),
  'Burstable with a limit on every container': ofPod(of(limited('1', '64Mi'), limited('500m', '32Mi'))),
  'Burstable with a limit of memory on one of two (trap 13)': ofPod(of(limited('1', '64Mi'), { limits: { cpu: '1' } })),
  'Burstable with no limit': ofPod(burstable),
  BestEffort: ofPod(bestEffort),
  'a limit of the pod as a whole holds where no container has one': ofPod({
    ...burstable,
    spec: { ...burstable.spec, resources: { requests: { cpu: '1' }, limits: { cpu: '2', memory: '1Gi' } } },
  }),
  'a sidecar with limits counts': ofPod(side(limited('1', '64Mi'))),
  'a sidecar without limits leaves the pod without': ofPod(side({})),
  'an init container that needs more than all others': ofPod(
    pod({
      initContainers: [container('first', { resources: limited('3', '1Gi') })],
      containers: [container('main', { resources: limited('1', '64Mi') })],
    }),
  ),
  'overhead is on top of requests, and of limits that there are': ofPod({
    ...guaranteed,
    spec: { ...guaranteed.spec, overhead: { cpu: '250m', memory: '120Mi' } },
  }),
  'overhead makes no limit': ofPod({ ...burstable, spec: { ...burstable.spec, overhead: { cpu: '250m', memory: '120Mi' } } }),
  'a tiny limit is a quota of a millisecond': ofPod(of({ limits: { cpu: '1m', memory: '4Mi' } })),
  'another period': ofPod(guaranteed, { cpuCFSQuotaPeriodMs: 10 }),
  'without quotas the pod has none': ofPod(guaranteed, { cpuCFSQuota: false }),
  'TieredReservation keeps for a Burstable pod what it asks for, softly': ofPod(burstable, { memoryFloors: true }),
  'TieredReservation keeps for a Guaranteed pod what it asks for': ofPod(guaranteed, { memoryFloors: true }),
  'MemoryQoS without a reservation takes back what an earlier start kept': ofPod(burstable, { memoryFloors: false }),
  'CPUs of its own lift the quota, a share of one does not': () => {
    const own = of({ limits: { cpu: '2', memory: '64Mi' }, requests: { cpu: '2', memory: '64Mi' } });
    return [own, guaranteed].map((p) => written(podValues(p, { ...RULES, pageSizes: [], quotaLifted: true })));
  },
  'with a limit of processes': ofPod(bestEffort, { podPidsLimit: 1024 }),
  'huge pages: what is asked for, and nothing of the other size (trap 16)': ofPod(
    of(
      { requests: { cpu: '1' }, limits: { 'hugepages-2Mi': '4Mi', memory: '64Mi' } },
      { requests: { cpu: '1' }, limits: { 'hugepages-2Mi': '2Mi' } },
    ),
  ),
  'huge pages of a sidecar beside the containers, and of an init container that needs more': () => {
    const pages = (amount: string): ResourceRequirements => ({ limits: { 'hugepages-2Mi': amount } });
    const main = container('main', { resources: pages('2Mi') });
    const beside = sidecar('side', { resources: pages('4Mi') });
    const first = container('first', { resources: pages('8Mi') });
    const withInits = (...initContainers: Container[]) => ofPod(pod({ initContainers, containers: [main] }))();
    return [withInits(beside), withInits(first), withInits(beside, first)];
  },
  'huge pages of the pod as a whole': ofPod({
    ...burstable,
    spec: { ...burstable.spec, resources: { limits: { 'hugepages-1Gi': '1Gi' } } },
  }),
  'without that controller none is written': () => written(podValues(bestEffort, { ...RULES, pageSizes: [] }), ['cpu', 'memory', 'pids']),
});

const MACHINE = { cpus: 4, memoryBytes: 8 * 1024 ** 3, pids: 32_768, hugePages: { '2Mi': 64 * 1024 ** 2 } };
const RESERVED = { kubeReserved: { cpu: '500m', memory: '1Gi' }, systemReserved: { memory: '512Mi', pid: '1000' } };

goldenTable('values of the classes and of the node', 'allocation/cgroups/cgroupNode', {
  'the classes weigh what their pods ask for; pages are not limited there (trap 16)': () => {
    const values = tierValues([guaranteed, burstable, burstable, bestEffort], { pageSizes: ['2MB'] });
    return { burstable: written(values.burstable), besteffort: written(values.besteffort) };
  },
  'a class without pods': () => written(tierValues([], { pageSizes: [] }).burstable),
  'kubepods: the machine without what is reserved, eviction thresholds not taken off (trap 17)': () =>
    written(kubepodsValues(MACHINE, { ...RESERVED, enforceNodeAllocatable: ['pods'] }, ['2MB', '1GB'])),
  'kubepods: all of the machine where pods are not held to what is left': () =>
    written(kubepodsValues(MACHINE, { ...RESERVED, enforceNodeAllocatable: ['none'] }, ['2MB'])),
  'kubepods: more reserved than there is': () =>
    written(
      kubepodsValues(
        { ...MACHINE, pids: null },
        { kubeReserved: { memory: '9Gi', cpu: '5' }, systemReserved: {}, enforceNodeAllocatable: ['pods'] },
        [],
      ),
    ),
  'MemoryQoS keeps for the classes what their pods ask for, of Guaranteed pods in kubepods': () => {
    const values = tierValues([guaranteed, burstable, bestEffort], { pageSizes: [], memoryFloors: true });
    return Object.fromEntries(Object.entries(values).map(([name, v]) => [name, written(v).v2]));
  },
  'qosReserved keeps half of what better classes ask for from the lesser ones': () => {
    const values = tierValues([guaranteed, burstable], { pageSizes: [], reserve: { percent: 50, allocatableBytes: 1024 ** 3 } });
    return Object.fromEntries(Object.entries(values).map(([name, v]) => [name, written(v)]));
  },
  'qosReserved with more asked for than there is': () =>
    written(tierValues([guaranteed, burstable], { pageSizes: [], reserve: { percent: 100, allocatableBytes: 4096 } }).besteffort),
  'a floor of what is reserved with MemoryQoS': () =>
    written(reservedValues({ memory: '1Gi' }, { enforce: ['kube-reserved'], key: 'kube-reserved', memoryFloors: true }) ?? {}).v2,
  'what is reserved for the system': () =>
    written(
      reservedValues({ cpu: '500m', memory: '1Gi', pid: '100' }, { enforce: ['pods', 'system-reserved'], key: 'system-reserved' }) ?? {},
    ),
  'of that the cpu alone': () =>
    written(reservedValues({ cpu: '500m', memory: '1Gi' }, { enforce: ['kube-reserved-compressible'], key: 'kube-reserved' }) ?? {}),
  'what nobody asked to be held to': () => reservedValues({ cpu: '500m' }, { enforce: ['pods'], key: 'kube-reserved' }),
});

const present = (p: Pod) => inFull(podValues(p, { ...RULES, pageSizes: [] }), RULES);
goldenTable('values of a pod whose resources change', 'allocation/cgroups/cgroupResize', {
  'growing: the larger at once': () => written(atLeast(present(of(limited('2', '128Mi'))), present(of(limited('1', '64Mi'))))),
  'shrinking: the larger until all containers have shrunk': () =>
    written(atLeast(present(of(limited('1', '64Mi'))), present(of(limited('2', '128Mi'))))),
  'one up and one down': () => written(atLeast(present(of(limited('1', '128Mi'))), present(of(limited('2', '64Mi'))))),
  'no limit is more than any': () => written(atLeast(present(of(limited('1', '64Mi'))), present(burstable))),
  'a limit that is no more is taken away': () => written(present(burstable)),
  'read back, first version': () => presentValues(1, ['256', '-1', '9223372036854771712']),
  'read back, first version, limited': () => presentValues(1, ['2', '50000', '67108864']),
  'read back, second version': () => presentValues(2, ['10', 'max 100000', 'max']),
  'read back, second version, limited': () => presentValues(2, ['39\n', '50000 100000\n', '67108864\n']),
  'read back, nothing there': () => presentValues(2, []),
});

goldenTable('where hierarchies are', 'allocation/cgroups/cgroupHierarchies', {
  'one for each, and the second version beside': () =>
    hierarchiesOf(
      [
        '31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
        '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct',
        '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory',
        '40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd',
        '41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate',
        '42 31 0:32 / /mnt/memory rw,relatime - cgroup cgroup rw,memory',
      ].join('\n'),
      '/sys/fs/cgroup',
    ),
  'nothing to be made out': () => hierarchiesOf('rubbish\n\n', '/sys/fs/cgroup'),
});
