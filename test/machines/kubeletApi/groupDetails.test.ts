/** What /metrics/cadvisor has of groups beyond use: limits, groups above, processes, and the disks of the machine. */
import { describe, expect, it } from 'vitest';
import { cadvisorMetrics, type GroupReading, NOTHING_READ } from '../../../src/machines/edge/stats/cadvisorMetrics.ts';
import { deviceAt, diskIo, diskMounts } from '../../../src/machines/edge/stats/diskStats.ts';
import { groupLimits } from '../../../src/machines/figures/groupLimits.ts';
import {
  type GroupMount,
  type GroupPlace,
  groupMounts,
  groupPlace,
  isOfPod,
  placesAbove,
  rootPlace,
} from '../../../src/machines/figures/groupPlaces.ts';
import type { GroupFigures } from '../../../src/machines/figures/groupStats.ts';
import { openFilesMax, processIds } from '../../../src/machines/figures/groupTasks.ts';

const V1_MOUNTS = groupMounts(
  [
    '32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct',
    '36 31 0:30 /outer /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
  ].join('\n'),
);
const V2_MOUNTS = groupMounts('30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n');

describe('limits of a group', () => {
  const limitsOf = (texts: Record<string, string>) => groupLimits((name) => texts[name] ?? '');
  it('are 0 where there is none, and a quota is told only where there is one', () => {
    const none = { cpuPeriodUs: 100_000, cpuQuotaUs: null, memoryBytes: 0, memoryReservedBytes: 0, swapBytes: 0 };
    const v1 = { 'cpu.cfs_period_us': '100000\n', 'cpu.cfs_quota_us': '-1\n', 'memory.limit_in_bytes': '9223372036854771712\n' };
    expect(limitsOf(v1)).toEqual(none);
    expect(limitsOf({ 'cpu.max': 'max 100000\n', 'memory.max': 'max\n', 'memory.swap.max': 'max\n' })).toEqual({
      ...{ ...none, swapRoomBytes: null },
    });
    // A container that may not swap is no container without a limit.
    expect(limitsOf({ 'memory.swap.max': '0\n' })).toEqual({ swapBytes: 0, swapRoomBytes: 0 });
    expect(limitsOf({})).toEqual({});
  });
  it('count shares as the first version does', () => {
    for (const [weight, shares] of [
      ['1', 2],
      ['10000', 262_144],
    ] as const)
      expect(limitsOf({ 'cpu.weight': `${weight}\n` })).toEqual({ cpuShares: shares });
  });
  it('hide periods of a quota where there is none', () => {
    const figures: GroupFigures = { cpu: { periods: 0, throttledPeriods: 0 }, limits: { cpuQuotaUs: null } };
    const groups: GroupReading = { ...NOTHING_READ, groups: [{ path: '/k', figures }] };
    expect(cadvisorMetrics({ summary: null, groups, machine: { cpus: 1, memoryBytes: 1 } })).not.toContain('container_cpu_cfs');
  });
});

describe('groups above', () => {
  const of = (place: GroupPlace | undefined, mounts: readonly GroupMount[]) => (place === undefined ? [] : placesAbove(place, mounts));
  it('are those of the pod, the class, and all pods, up to the root', () => {
    const place = groupPlace('4:memory:/outer/k8s/podA/abc\n3:cpu,cpuacct:/k8s/podA/abc\n', 'abc', V1_MOUNTS);
    const memory = '/sys/fs/cgroup/memory/k8s';
    const cpu = '/sys/fs/cgroup/cpu,cpuacct/k8s';
    expect(of(place, V1_MOUNTS)).toEqual([
      { path: '/outer/k8s/podA', dirs: { memory: `${memory}/podA`, cpu: `${cpu}/podA`, cpuacct: `${cpu}/podA` } },
      { path: '/outer/k8s', dirs: { memory, cpu, cpuacct: cpu } },
    ]);
    const scope = groupPlace('0::/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-abc.scope\n', 'abc', V2_MOUNTS);
    const above = of(scope, V2_MOUNTS);
    expect(above.map((p) => [p.path, isOfPod(p, '1-2'), isOfPod(p, '')])).toEqual([
      ['/kubepods.slice/kubepods-pod1_2.slice', true, false],
      ['/kubepods.slice', false, false],
    ]);
  });
  it('end in the root group, which is mounted', () => {
    expect(rootPlace(V2_MOUNTS)).toEqual({ path: '/', dirs: { unified: '/sys/fs/cgroup' } });
    expect(rootPlace(V1_MOUNTS).dirs.memory).toBeUndefined();
  });
});

describe('processes of a group', () => {
  it('are listed by number, without those of other namespaces', () => {
    expect(processIds('1\n22\n0\nx\n\n')).toEqual([1, 22]);
  });
  it('have a soft limit of open files', () => {
    const limits = (soft: string) =>
      `Limit                     Soft Limit           Hard Limit           Units     \nMax open files            ${soft}                1048576              files     \n`;
    expect([openFilesMax(limits('1024')), openFilesMax(limits('unlimited')), openFilesMax('')]).toEqual([1024, -1, undefined]);
  });
});

describe('disks', () => {
  const MOUNTS = [
    '22 1 254:0 /var/lib /mnt/lib rw - ext4 /dev/vda rw',
    '23 1 254:0 / / rw - ext4 /dev/vda rw',
    '24 1 0:40 / /var/lib/containerd rw - xfs /dev/vdb rw',
    '25 1 0:41 / /run rw - tmpfs tmpfs rw',
    '26 1 7:0 / /snap/x ro - squashfs /dev/loop0 ro\n',
  ].join('\n');
  it('are block devices with a file system, each once, at the root of it', () => {
    expect(diskMounts(MOUNTS)).toEqual([
      { device: '/dev/vda', path: '/' },
      { device: '/dev/vdb', path: '/var/lib/containerd' },
    ]);
    expect([deviceAt(MOUNTS, '/var/lib/containerd/x'), deviceAt(MOUNTS, '/var/lib/containerd2'), deviceAt('', '/x')]).toEqual([
      ...['/dev/vdb', '/dev/vda', undefined],
    ]);
  });
  it('tell what they did, in seconds', () => {
    const io = diskIo(' 254       0 vda 10 1 200 3000 20 2 400 6000 5 7000 9000 0 0 0 0 0 0\n   7       0 loop0\n');
    expect([...io]).toEqual([
      [
        '/dev/vda',
        {
          ...{ reads: 10, readsMerged: 1, sectorsRead: 200, readSeconds: 3, writes: 20, writesMerged: 2, sectorsWritten: 400 },
          ...{ writeSeconds: 6, inProgress: 5, ioSeconds: 7, weightedSeconds: 9 },
        },
      ],
    ]);
  });
});
