/** Families of /metrics/cadvisor that come straight from what was read: their names, types and help, and where each value is. */

import type { DeviceIo, GroupFigures, PressureOf } from '../../figures/groupStats.ts';
import type { Disk } from './diskStats.ts';

type Kind = 'counter' | 'gauge';
type Figure = readonly [name: string, type: Kind, help: string, of: (f: GroupFigures) => number | undefined];

/** Without a quota there are no periods to count. */
const underQuota =
  (of: (cpu: NonNullable<GroupFigures['cpu']>) => number | undefined): Figure[3] =>
  (f) =>
    f.cpu === undefined || f.limits?.cpuQuotaUs === null ? undefined : of(f.cpu);

/** One row for each cgroup. */
export const GROUP_FAMILIES: readonly Figure[] = [
  ['container_cpu_user_seconds_total', 'counter', 'Cumulative user cpu time consumed in seconds.', (f) => f.cpu?.userSeconds],
  ['container_cpu_system_seconds_total', 'counter', 'Cumulative system cpu time consumed in seconds.', (f) => f.cpu?.systemSeconds],
  ['container_cpu_cfs_periods_total', 'counter', 'Number of elapsed enforcement period intervals.', underQuota((cpu) => cpu.periods)],
  [
    'container_cpu_cfs_throttled_periods_total',
    'counter',
    'Number of throttled period intervals.',
    underQuota((cpu) => cpu.throttledPeriods),
  ],
  [
    'container_cpu_cfs_throttled_seconds_total',
    'counter',
    'Total time duration the container has been throttled.',
    underQuota((cpu) => cpu.throttledSeconds),
  ],
  [
    'container_cpu_cfs_burst_periods_total',
    'counter',
    'Periods in which the quota was exceeded by a burst',
    underQuota((c) => c.burstPeriods),
  ],
  [
    'container_cpu_cfs_burst_seconds_total',
    'counter',
    'Seconds of processor time used beyond the quota in bursts',
    underQuota((c) => c.burstSeconds),
  ],
  ['container_memory_cache', 'gauge', 'Number of bytes of page cache memory.', (f) => f.memory?.cacheBytes],
  ['container_memory_kernel_usage', 'gauge', 'Bytes that the kernel holds for the group', (f) => f.memory?.kernelBytes],
  ['container_memory_mapped_file', 'gauge', 'Size of memory mapped files in bytes.', (f) => f.memory?.mappedBytes],
  ['container_memory_swap', 'gauge', 'Container swap usage in bytes.', (f) => f.memory?.swapBytes],
  ['container_memory_max_usage_bytes', 'gauge', 'Maximum memory usage recorded in bytes', (f) => f.memory?.maxBytes],
  ['container_memory_total_active_file_bytes', 'gauge', 'Bytes of file pages on the active list', (f) => f.memory?.activeFileBytes],
  ['container_memory_total_inactive_file_bytes', 'gauge', 'Bytes of file pages on the inactive list', (f) => f.memory?.inactiveFileBytes],
  ['container_memory_failcnt', 'counter', 'Number of memory usage hits limits', (f) => f.memory?.limitHits],
  ['container_oom_events_total', 'counter', 'Count of out of memory events observed for the container', (f) => f.memory?.oomKills],
  ['container_processes', 'gauge', 'Processes in the group, without those of groups below it', (f) => f.tasks?.processes],
  ['container_threads', 'gauge', 'Threads in the group and below it', (f) => f.tasks?.threads],
  ['container_threads_max', 'gauge', 'Most threads that the group may have, 0 without a limit', (f) => f.limits?.threads],
  ['container_file_descriptors', 'gauge', 'Open file descriptors of the processes in the group', (f) => f.tasks?.descriptors],
  ['container_sockets', 'gauge', 'Open sockets of the processes in the group', (f) => f.tasks?.sockets],
  ['container_spec_cpu_period', 'gauge', 'Length of a period of the CPU quota in microseconds', (f) => f.limits?.cpuPeriodUs],
  ['container_spec_cpu_quota', 'gauge', 'CPU time allowed in a period, in microseconds', (f) => f.limits?.cpuQuotaUs ?? undefined],
  ['container_spec_cpu_shares', 'gauge', 'Share of CPU time among groups side by side', (f) => f.limits?.cpuShares],
  ['container_spec_memory_limit_bytes', 'gauge', 'Memory limit in bytes, 0 without a limit', (f) => f.limits?.memoryBytes],
  [
    'container_spec_memory_reservation_limit_bytes',
    'gauge',
    'Memory in bytes that the kernel leaves to the group, 0 where none is set',
    (f) => f.limits?.memoryReservedBytes,
  ],
  ['container_spec_memory_swap_limit_bytes', 'gauge', 'Swap limit in bytes, 0 without a limit', (f) => f.limits?.swapBytes],
];

/** One row for each device that a cgroup used. */
export const DEVICE_FAMILIES: readonly (readonly [name: string, field: keyof DeviceIo, help: string])[] = [
  ['container_fs_reads_bytes_total', 'readBytes', 'Cumulative count of bytes read'],
  ['container_fs_reads_total', 'reads', 'Cumulative count of reads completed'],
  ['container_fs_writes_bytes_total', 'writeBytes', 'Cumulative count of bytes written'],
  ['container_fs_writes_total', 'writes', 'Cumulative count of writes completed'],
];

/** One row for each disk of the machine; no cgroup counts these. */
export const DISK_FAMILIES: readonly (readonly [name: string, type: Kind, help: string, of: (disk: Disk) => number | undefined])[] = [
  ['container_fs_io_current', 'gauge', 'Operations of the disk in progress', (d) => d.io?.inProgress],
  ['container_fs_io_time_seconds_total', 'counter', 'Seconds in which the disk had operations in progress', (d) => d.io?.ioSeconds],
  [
    'container_fs_io_time_weighted_seconds_total',
    'counter',
    'Seconds that operations of the disk took, added up',
    (d) => d.io?.weightedSeconds,
  ],
  ['container_fs_read_seconds_total', 'counter', 'Seconds that reads took, added up', (d) => d.io?.readSeconds],
  ['container_fs_reads_merged_total', 'counter', 'Reads that were merged with others', (d) => d.io?.readsMerged],
  ['container_fs_sector_reads_total', 'counter', 'Sectors of 512 bytes that were read', (d) => d.io?.sectorsRead],
  ['container_fs_sector_writes_total', 'counter', 'Sectors of 512 bytes that were written', (d) => d.io?.sectorsWritten],
  ['container_fs_write_seconds_total', 'counter', 'Seconds that writes took, added up', (d) => d.io?.writeSeconds],
  ['container_fs_writes_merged_total', 'counter', 'Writes that were merged with others', (d) => d.io?.writesMerged],
];

export const PRESSURE_FAMILIES = (['cpu', 'memory', 'io'] as const satisfies readonly PressureOf[]).flatMap((what) => {
  const shown = what === 'io' ? 'IO' : what === 'cpu' ? 'CPU' : what;
  return [
    [
      `container_pressure_${what}_stalled_seconds_total`,
      what,
      'stalledSeconds',
      `Total time duration no tasks in the container could make progress due to ${shown} congestion.`,
    ],
    [
      `container_pressure_${what}_waiting_seconds_total`,
      what,
      'waitingSeconds',
      `Total time duration tasks in the container have waited due to ${shown} congestion.`,
    ],
  ] as const;
});

export const NETWORK_FAMILIES = [
  ['container_network_receive_bytes_total', 'rxBytes', 'Cumulative count of bytes received'],
  ['container_network_receive_packets_total', 'rxPackets', 'Cumulative count of packets received'],
  ['container_network_receive_packets_dropped_total', 'rxDropped', 'Cumulative count of packets dropped while receiving'],
  ['container_network_receive_errors_total', 'rxErrors', 'Cumulative count of errors encountered while receiving'],
  ['container_network_transmit_bytes_total', 'txBytes', 'Cumulative count of bytes transmitted'],
  ['container_network_transmit_packets_total', 'txPackets', 'Cumulative count of packets transmitted'],
  ['container_network_transmit_packets_dropped_total', 'txDropped', 'Cumulative count of packets dropped while transmitting'],
  ['container_network_transmit_errors_total', 'txErrors', 'Cumulative count of errors encountered while transmitting'],
] as const;
