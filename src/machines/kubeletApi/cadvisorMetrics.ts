/**
 * /metrics/cadvisor: the families that people's dashboards ask for, as far as the runtime's statistics and /proc have the
 * figures. Pure.
 */
import type { ContainerStats, Summary } from './stats.ts';

const NS_PER_S = 1e9;

/** What a container is called where the summary has only its name. */
export interface ContainerIdentity {
  id: string;
  image: string;
}
export interface CadvisorInput {
  /** Null: it could not be made; then only the machine is told, and that there was an error. */
  summary: Summary | null;
  containers: ReadonlyMap<string, ContainerIdentity>;
  machine: { cpus: number; memoryBytes: number };
}
type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number | undefined, time?: string | undefined];

/** Key of {@link CadvisorInput.containers}. */
export function containerKey(uid: string, container: string): string {
  return `${uid}/${container}`;
}

export function cadvisorMetrics({ summary, containers, machine }: CadvisorInput): string {
  const out: string[] = [];
  const family = (name: string, type: 'counter' | 'gauge', help: string, samples: readonly Sample[]): void => {
    const lines = samples.flatMap(([labels, value, time]) => (value === undefined ? [] : [line(name, labels, value, time)]));
    if (lines.length > 0) out.push(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`);
  };
  const all = (summary?.pods ?? []).flatMap((p) =>
    p.containers.map((c) => {
      const { id = '', image = '' } = containers.get(containerKey(p.podRef.uid, c.name)) ?? {};
      return { c, labels: { container: c.name, id: `/${id}`, image, name: id, namespace: p.podRef.namespace, pod: p.podRef.name } };
    }),
  );
  const each = (of: (c: ContainerStats) => readonly [number | undefined, string | undefined], more: Labels = {}): Sample[] =>
    all.map(({ c, labels }) => [{ ...labels, ...more }, ...of(c)] as const);
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
  for (const [name, field, help] of NETWORK)
    family(
      name,
      'counter',
      help,
      (node?.network?.interfaces ?? []).map((i) => [{ ...root, interface: i.name }, i[field], node?.network?.time] as const),
    );
  family('machine_cpu_cores', 'gauge', 'Number of logical CPU cores.', [[{}, machine.cpus]]);
  family('machine_memory_bytes', 'gauge', 'Amount of memory installed on the machine.', [[{}, machine.memoryBytes]]);
  family('container_scrape_error', 'gauge', '1 if there was an error while getting container metrics, 0 otherwise', [
    [{}, summary === null ? 1 : 0],
  ]);
  return out.join('');
}

const NETWORK = [
  ['container_network_receive_bytes_total', 'rxBytes', 'Cumulative count of bytes received'],
  ['container_network_receive_errors_total', 'rxErrors', 'Cumulative count of errors encountered while receiving'],
  ['container_network_transmit_bytes_total', 'txBytes', 'Cumulative count of bytes transmitted'],
  ['container_network_transmit_errors_total', 'txErrors', 'Cumulative count of errors encountered while transmitting'],
] as const;

function line(name: string, labels: Labels, value: number, time: string | undefined): string {
  const pairs = Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([k, v]) => `${k}="${v.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`))}"`);
  const at = time === undefined ? '' : ` ${Date.parse(time)}`;
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}${at}\n`;
}
