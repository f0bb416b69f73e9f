/**
 * /metrics/cadvisor: the families that people's dashboards ask for, as far as the runtime's statistics, cgroups and
 * /proc have the figures. Pure.
 */
import type { DeviceIo, GroupFigures, PressureOf, Psi } from './groupStats.ts';
import type { InterfaceCounters } from './procStats.ts';
import type { ContainerStats, Summary } from './stats.ts';

const NS_PER_S = 1e9;

/** What a container is called where the summary has only its name, and what its cgroup tells. */
export interface FoundContainer {
  id: string;
  image: string;
  /** Of its group; absent where it has none of its own. */
  path?: string;
  figures?: GroupFigures;
}
export interface FoundPod {
  /** Of its sandbox. */
  id: string;
  namespace: string;
  name: string;
  /** Of its network namespace; of a pod on the host's network the host's, as in the reference. */
  interfaces: readonly InterfaceCounters[];
}
export interface GroupReading {
  containers: ReadonlyMap<string, FoundContainer>;
  pods: readonly FoundPod[];
  /** Names of block devices by `major:minor`. */
  devices: ReadonlyMap<string, string>;
  /** Of the groups of pods, by UID. */
  podPsi: ReadonlyMap<string, Psi>;
  node: { interfaces: readonly InterfaceCounters[]; pressure: GroupFigures['pressure']; psi: Psi };
}
export const NOTHING_READ: GroupReading = {
  containers: new Map(),
  pods: [],
  devices: new Map(),
  podPsi: new Map(),
  node: { interfaces: [], pressure: {}, psi: {} },
};
export interface CadvisorInput {
  /** Null: it could not be made; then only the machine is told, and that there was an error. */
  summary: Summary | null;
  groups: GroupReading;
  machine: { cpus: number; memoryBytes: number };
}
type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number | undefined, time?: string | undefined];

/** Key of {@link GroupReading.containers}. */
export function containerKey(uid: string, container: string): string {
  return `${uid}/${container}`;
}

export function cadvisorMetrics({ summary, groups, machine }: CadvisorInput): string {
  const out: string[] = [];
  const family = (name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): void => {
    const lines = samples.flatMap(([labels, value, time]) => (value === undefined ? [] : [line(name, labels, value, time)]));
    if (lines.length > 0) out.push(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`);
  };
  const all = (summary?.pods ?? []).flatMap((p) =>
    p.containers.map((c) => {
      const found = groups.containers.get(containerKey(p.podRef.uid, c.name));
      const { id = '', image = '', path = `/${id}`, figures = {} } = found ?? {};
      return { c, figures, labels: { container: c.name, id: path, image, name: id, namespace: p.podRef.namespace, pod: p.podRef.name } };
    }),
  );
  const each = (of: (c: ContainerStats) => readonly [number | undefined, string | undefined], more: Labels = {}): Sample[] =>
    all.map(({ c, labels }) => [{ ...labels, ...more }, ...of(c)] as const);
  const ofGroup = (of: (figures: GroupFigures) => number | undefined): Sample[] =>
    all.map(({ figures, labels }) => [labels, of(figures)] as const);
  const root: Labels = { container: '', id: '/', image: '', name: '', namespace: '', pod: '' };
  const node = summary?.node;
  const seconds = (ns: number | undefined): number | undefined => (ns === undefined ? undefined : ns / NS_PER_S);

  family('container_cpu_usage_seconds_total', 'counter', 'Cumulative cpu time consumed in seconds.', [
    [{ ...root, cpu: 'total' }, seconds(node?.cpu?.usageCoreNanoSeconds), node?.cpu?.time],
    ...each((c) => [seconds(c.cpu?.usageCoreNanoSeconds), c.cpu?.time], { cpu: 'total' }),
  ]);
  family('container_memory_working_set_bytes', 'gauge', 'Current working set in bytes.', [
    [root, node?.memory?.workingSetBytes, node?.memory?.time],
    ...each((c) => [c.memory?.workingSetBytes, c.memory?.time]),
  ]);
  family(
    'container_memory_usage_bytes',
    'gauge',
    'Current memory usage in bytes, including all memory regardless of when it was accessed.',
    [[root, node?.memory?.usageBytes, node?.memory?.time], ...each((c) => [c.memory?.usageBytes, c.memory?.time])],
  );
  family('container_memory_rss', 'gauge', 'Size of RSS in bytes.', [
    [root, node?.memory?.rssBytes, node?.memory?.time],
    ...each((c) => [c.memory?.rssBytes, c.memory?.time]),
  ]);
  family('container_fs_usage_bytes', 'gauge', 'Number of bytes that are consumed by the container on its writable layer.', [
    ...each((c) => [c.rootfs?.usedBytes, c.rootfs?.time]),
  ]);
  family('container_start_time_seconds', 'gauge', 'Start time of the container since unix epoch in seconds.', [
    ...each((c) => [c.startTime === null ? undefined : Date.parse(c.startTime) / 1000, undefined]),
  ]);
  for (const [name, type, help, of] of GROUP) family(name, type, help, ofGroup(of));
  for (const [name, field, help] of DEVICES) {
    const samples = all.flatMap(({ figures, labels }) =>
      [...(figures.io ?? [])].map(([device, io]): Sample => [{ ...labels, device: groups.devices.get(device) ?? device }, io[field]]),
    );
    family(name, 'counter', help, samples);
  }
  for (const [name, what, field, help] of PRESSURE)
    family(name, 'counter', help, [[root, groups.node.pressure?.[what]?.[field]], ...ofGroup((f) => f.pressure?.[what]?.[field])]);
  const networks = [
    { labels: root, interfaces: groups.node.interfaces },
    ...groups.pods.map(({ id, namespace, name, interfaces }) => ({
      labels: { container: '', id: `/${id}`, image: '', name: id, namespace, pod: name },
      interfaces,
    })),
  ];
  for (const [name, field, help] of NETWORK)
    family(
      name,
      'counter',
      help,
      networks.flatMap(({ labels, interfaces }) => interfaces.map((i): Sample => [{ ...labels, interface: i.name }, i[field]])),
    );
  family('machine_cpu_cores', 'gauge', 'Number of logical CPU cores.', [[{}, machine.cpus]]);
  family('machine_memory_bytes', 'gauge', 'Amount of memory installed on the machine.', [[{}, machine.memoryBytes]]);
  family('container_scrape_error', 'gauge', '1 if there was an error while getting container metrics, 0 otherwise', [
    [{}, summary === null ? 1 : 0],
  ]);
  return out.join('');
}

type Figure = readonly [name: string, type: 'counter' | 'gauge', help: string, of: (f: GroupFigures) => number | undefined];
const GROUP: readonly Figure[] = [
  ['container_cpu_user_seconds_total', 'counter', 'Cumulative user cpu time consumed in seconds.', (f) => f.cpu?.userSeconds],
  ['container_cpu_system_seconds_total', 'counter', 'Cumulative system cpu time consumed in seconds.', (f) => f.cpu?.systemSeconds],
  ['container_cpu_cfs_periods_total', 'counter', 'Number of elapsed enforcement period intervals.', (f) => f.cpu?.periods],
  ['container_cpu_cfs_throttled_periods_total', 'counter', 'Number of throttled period intervals.', (f) => f.cpu?.throttledPeriods],
  [
    'container_cpu_cfs_throttled_seconds_total',
    'counter',
    'Total time duration the container has been throttled.',
    (f) => f.cpu?.throttledSeconds,
  ],
  ['container_memory_cache', 'gauge', 'Number of bytes of page cache memory.', (f) => f.memory?.cacheBytes],
  ['container_memory_mapped_file', 'gauge', 'Size of memory mapped files in bytes.', (f) => f.memory?.mappedBytes],
  ['container_memory_swap', 'gauge', 'Container swap usage in bytes.', (f) => f.memory?.swapBytes],
  ['container_memory_max_usage_bytes', 'gauge', 'Maximum memory usage recorded in bytes', (f) => f.memory?.maxBytes],
  ['container_memory_failcnt', 'counter', 'Number of memory usage hits limits', (f) => f.memory?.limitHits],
  ['container_oom_events_total', 'counter', 'Count of out of memory events observed for the container', (f) => f.memory?.oomKills],
];
const DEVICES: readonly (readonly [name: string, field: keyof DeviceIo, help: string])[] = [
  ['container_fs_reads_bytes_total', 'readBytes', 'Cumulative count of bytes read'],
  ['container_fs_reads_total', 'reads', 'Cumulative count of reads completed'],
  ['container_fs_writes_bytes_total', 'writeBytes', 'Cumulative count of bytes written'],
  ['container_fs_writes_total', 'writes', 'Cumulative count of writes completed'],
];
const PRESSURE = (['cpu', 'memory', 'io'] as const satisfies readonly PressureOf[]).flatMap((what) => {
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
const NETWORK = [
  ['container_network_receive_bytes_total', 'rxBytes', 'Cumulative count of bytes received'],
  ['container_network_receive_packets_total', 'rxPackets', 'Cumulative count of packets received'],
  ['container_network_receive_packets_dropped_total', 'rxDropped', 'Cumulative count of packets dropped while receiving'],
  ['container_network_receive_errors_total', 'rxErrors', 'Cumulative count of errors encountered while receiving'],
  ['container_network_transmit_bytes_total', 'txBytes', 'Cumulative count of bytes transmitted'],
  ['container_network_transmit_packets_total', 'txPackets', 'Cumulative count of packets transmitted'],
  ['container_network_transmit_packets_dropped_total', 'txDropped', 'Cumulative count of packets dropped while transmitting'],
  ['container_network_transmit_errors_total', 'txErrors', 'Cumulative count of errors encountered while transmitting'],
] as const;

function line(name: string, labels: Labels, value: number, time: string | undefined): string {
  const pairs = Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([k, v]) => `${k}="${v.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`))}"`);
  const at = time === undefined ? '' : ` ${Date.parse(time)}`;
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}${at}\n`;
}
