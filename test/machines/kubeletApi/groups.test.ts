/** Figures of cgroups from the kernel's files, of either version, as containerd and cri-o place containers. */
import { describe, expect, it } from 'vitest';
import { cadvisorMetrics, containerKey, type GroupReading, NOTHING_READ } from '../../../src/machines/edge/stats/cadvisorMetrics.ts';
import { interfaceCounters } from '../../../src/machines/edge/stats/procStats.ts';
import { groupMounts, groupPlace } from '../../../src/machines/figures/groupPlaces.ts';
import { deviceNames, groupFigures, groupFiles, pidOf } from '../../../src/machines/figures/groupStats.ts';

const V1_MOUNTS = groupMounts(
  [
    '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct',
    '36 31 0:30 /outer /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
    '38 31 0:31 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio',
    '41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw',
    '42 31 0:39 / /proc rw - proc proc rw',
  ].join('\n'),
);
const filesIn = (dir: string, names: readonly string[]) => Object.fromEntries(names.map((name) => [name, `${dir}/${name}`]));
const V2_MOUNTS = groupMounts('30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n');

describe('the group of a container', () => {
  it('of the first version is in each hierarchy that has one of its own', () => {
    const text = '4:memory:/outer/k8s/podA/abc\n3:cpu,cpuacct:/k8s/podA/abc\n2:blkio:/\n1:name=systemd:/k8s/podA/abc\n0::/k8s/podA/abc\n';
    const place = groupPlace(text, 'abc', V1_MOUNTS);
    expect(place?.path).toBe('/outer/k8s/podA/abc');
    expect(Object.fromEntries(groupFiles(place ?? { path: '', dirs: {} }))).toEqual({
      ...filesIn('/sys/fs/cgroup/cpu,cpuacct/k8s/podA/abc', [
        ...['cpu.stat', 'cpu.shares', 'cpu.cfs_period_us', 'cpu.cfs_quota_us', 'cpuacct.stat', 'cpuacct.usage'],
      ]),
      ...filesIn('/sys/fs/cgroup/memory/k8s/podA/abc', [
        ...['memory.stat', 'memory.usage_in_bytes', 'memory.max_usage_in_bytes', 'memory.failcnt', 'memory.oom_control'],
        ...['memory.kmem.usage_in_bytes', 'memory.limit_in_bytes', 'memory.soft_limit_in_bytes', 'memory.memsw.limit_in_bytes'],
      ]),
    });
  });
  it('of the second version is a scope of systemd, whatever the container keeps below it', () => {
    const slice = '/kubepods.slice/kubepods-podA.slice/cri-containerd-abc.scope';
    const place = groupPlace(`0::${slice}/init.scope\n`, 'abc', V2_MOUNTS);
    expect(place?.path).toBe(slice);
    expect(groupFiles(place ?? { path: '', dirs: {} }).get('io.pressure')).toBe(`/sys/fs/cgroup${slice}/io.pressure`);
  });
  it('is none where others are in it too, or it lies outside of what is mounted', () => {
    expect(groupPlace('0::/user.slice\n', 'abc', V2_MOUNTS)).toBeUndefined();
    expect(groupPlace('4:memory:/elsewhere/abc\n', 'abc', V1_MOUNTS)).toBeUndefined();
    expect(groupPlace('0::/k8s/abc\n', 'abc', [])).toBeUndefined();
  });
});

const V1 = new Map([
  ['cpu.stat', 'nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000\nnr_bursts 3\nburst_time 250000000\n'],
  ['cpu.shares', '512\n'],
  ['cpu.cfs_period_us', '100000\n'],
  ['cpu.cfs_quota_us', '50000\n'],
  ['cpuacct.usage', '2000000000\n'],
  ['cpuacct.stat', 'user 150\nsystem 50\n'],
  [
    'memory.stat',
    [
      ...[
        'cache 1',
        'rss 1',
        'mapped_file 2',
        'swap 3',
        'pgfault 40',
        'pgmajfault 4',
        'inactive_file 5',
        'active_file 6',
        'total_cache 4096',
      ],
      ...[
        'total_rss 100',
        'total_mapped_file 1024',
        'total_swap 512',
        'total_pgfault 50',
        'total_pgmajfault 5',
        'total_inactive_file 1000',
      ],
      'total_active_file 2000\n',
    ].join('\n'),
  ],
  ['memory.usage_in_bytes', '9000\n'],
  ['memory.kmem.usage_in_bytes', '300\n'],
  ['memory.limit_in_bytes', '20000\n'],
  ['memory.soft_limit_in_bytes', '9223372036854771712\n'],
  ['memory.memsw.limit_in_bytes', '30000\n'],
  ['pids.current', '6\n'],
  ['pids.max', 'max\n'],
  ['memory.max_usage_in_bytes', '9999\n'],
  ['memory.failcnt', '7\n'],
  ['memory.oom_control', 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n'],
  ['blkio.throttle.io_service_bytes', '8:0 Read 100\n8:0 Write 200\n8:0 Sync 300\n8:0 Total 300\nTotal 300\n'],
  ['blkio.throttle.io_serviced', '8:0 Read 1\n8:0 Write 2\n8:0 Total 3\nTotal 3\n'],
]);
const V2 = new Map([
  [
    'cpu.stat',
    'usage_usec 2000000\nuser_usec 1500000\nsystem_usec 500000\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500000\nnr_bursts 3\nburst_usec 250000\n',
  ],
  ['cpu.weight', '20\n'],
  ['cpu.max', '50000 100000\n'],
  [
    'memory.stat',
    [
      ...[
        'anon 100',
        'file 4096',
        'kernel 300',
        'file_mapped 1024',
        'inactive_file 1000',
        'active_file 2000',
        'pgfault 50',
        'pgmajfault 5\n',
      ],
    ].join('\n'),
  ],
  ['memory.current', '9000\n'],
  ['memory.max', '20000\n'],
  ['memory.min', '0\n'],
  ['memory.swap.max', '30000\n'],
  ['pids.current', '6\n'],
  ['pids.max', 'max\n'],
  ['memory.swap.current', '512\n'],
  ['memory.peak', '9999\n'],
  ['memory.events', 'low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\n'],
  ['io.stat', '8:0 rbytes=100 wbytes=200 rios=1 wios=2 dbytes=0 dios=0\n'],
  ['cpu.pressure', 'some avg10=0.00 avg60=0.00 avg300=0.00 total=4000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n'],
]);
const SAME = {
  cpu: {
    ...{ usedSeconds: 2, userSeconds: 1.5, systemSeconds: 0.5, periods: 10, throttledPeriods: 4, throttledSeconds: 2.5 },
    ...{ burstPeriods: 3, burstSeconds: 0.25 },
  },
  memory: {
    ...{ usageBytes: 9000, workingSetBytes: 8000, rssBytes: 100, cacheBytes: 4096, mappedBytes: 1024, swapBytes: 512, kernelBytes: 300 },
    ...{ activeFileBytes: 2000, inactiveFileBytes: 1000, maxBytes: 9999, limitHits: 7, oomKills: 2 },
    ...{ faults: { own: 40, all: 50 }, majorFaults: { own: 4, all: 5 } },
  },
  limits: {
    ...{ cpuPeriodUs: 100_000, cpuQuotaUs: 50_000, cpuShares: 512, memoryBytes: 20_000, memoryReservedBytes: 0, swapBytes: 30_000 },
    ...{ swapRoomBytes: 10_000, threads: 0 },
  },
  tasks: { threads: 6 },
  io: new Map([['8:0', { readBytes: 100, writeBytes: 200, reads: 1, writes: 2 }]]),
};

describe('figures of a group', () => {
  it('are the same in both versions, and pressure is in the second', () => {
    expect(groupFigures(V1)).toEqual(SAME);
    const { psi, ...others } = groupFigures(V2);
    expect(others).toEqual({
      ...SAME,
      // Of a weight the shares are not known to the unit, faults of the group alone not at all, and swap is limited by itself.
      limits: { ...SAME.limits, cpuShares: 500, swapRoomBytes: 30_000 },
      memory: { ...SAME.memory, faults: { own: 50, all: 50 }, majorFaults: { own: 5, all: 5 } },
      pressure: { cpu: { waitingSeconds: 4, stalledSeconds: 1 } },
    });
    expect([psi?.cpu?.some.total, psi?.cpu?.full.total]).toEqual([4_000_000, 1_000_000]);
  });
  it('are left out where a file is missing or says something else', () => {
    expect(groupFigures(new Map())).toEqual({ cpu: {}, memory: {}, io: new Map() });
    expect(
      groupFigures(
        new Map([
          ['memory.peak', 'max\n'],
          ['io.stat', '8:0\nx y=1\n'],
          ['cpu.stat', 'nr_periods -1\n'],
        ]),
      ),
    ).toEqual({
      cpu: {},
      memory: {},
      io: new Map([['8:0', {}]]),
    });
  });
  it('have a process, where the runtime names one', () => {
    expect(pidOf({ info: '{"sandboxID":"s","pid":1234}' })).toBe(1234);
    for (const info of [{}, { info: '' }, { info: '[' }, { info: '{"pid":1}' }, { info: '{"pid":"7"}' }, { info: 'null' }])
      expect(pidOf(info)).toBeUndefined();
  });
});

it('is told as cAdvisor tells it: throttling, devices, pressure, the network of a pod', () => {
  const netDev = 'Inter-| x\n face |y\n  lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 10 1 2 3 0 0 0 0 20 4 5 6 0 0 0 0\n';
  const groups: GroupReading = {
    containers: new Map([[containerKey('u', 'main'), { id: 'abc', image: 'i', path: '/k/abc', figures: groupFigures(V2) }]]),
    pods: [{ id: 'sandbox', namespace: 'ns', name: 'web', interfaces: interfaceCounters(netDev) }],
    devices: deviceNames('   8       0 sda 1 2 3\n'),
    groups: [{ path: '/k', figures: { memory: { usageBytes: 77 } }, madeMs: 5000, pod: { namespace: 'ns', name: 'web' } }],
    podPsi: new Map(),
    node: { interfaces: [], psi: {}, pressure: { io: { waitingSeconds: 9 } } },
  };
  const pod = { podRef: { name: 'web', namespace: 'ns', uid: 'u' }, startTime: null, containers: [{ name: 'main', startTime: null }] };
  const summary = { node: { nodeName: 'n', startTime: null }, pods: [pod] };
  const text = cadvisorMetrics({ summary, groups, machine: { cpus: 1, memoryBytes: 1 }, nowMs: 9_999 });
  const labels = 'container="main",id="/k/abc",image="i",name="abc",namespace="ns",pod="web"';
  const network = 'container="",id="/sandbox",image="",interface="eth0",name="sandbox",namespace="ns",pod="web"';
  for (const line of [
    `container_cpu_cfs_throttled_seconds_total{${labels}} 2.5`,
    `container_cpu_cfs_throttled_periods_total{${labels}} 4`,
    `container_cpu_user_seconds_total{${labels}} 1.5`,
    `container_memory_cache{${labels}} 4096`,
    `container_memory_swap{${labels}} 512`,
    `container_oom_events_total{${labels}} 2`,
    'container_fs_writes_bytes_total{container="main",device="/dev/sda",id="/k/abc",image="i",name="abc",namespace="ns",pod="web"} 200',
    `container_pressure_cpu_waiting_seconds_total{${labels}} 4`,
    'container_pressure_io_waiting_seconds_total{container="",id="/",image="",name="",namespace="",pod=""} 9',
    'container_memory_usage_bytes{container="",id="/k",image="",name="",namespace="ns",pod="web"} 77',
    'container_start_time_seconds{container="",id="/k",image="",name="",namespace="ns",pod="web"} 5',
    `container_spec_cpu_quota{${labels}} 50000`,
    `container_spec_memory_limit_bytes{${labels}} 20000`,
    `container_last_seen{${labels}} 9`,
    'container_memory_failures_total{container="main",failure_type="pgmajfault",id="/k/abc",image="i",name="abc",namespace="ns",pod="web",scope="hierarchy"} 5',
    `container_network_receive_packets_dropped_total{${network}} 3`,
    `container_network_transmit_packets_total{${network}} 4`,
  ])
    expect(text.split('\n')).toContain(line);
  expect(cadvisorMetrics({ summary, groups: NOTHING_READ, machine: { cpus: 1, memoryBytes: 1 } })).not.toContain('container_oom');
});
