/** /metrics/resource: what metrics-server scrapes, as Prometheus text with the time of each sample (boot-and-node 8.5). Pure. */
import type { CpuStats, MemoryStats, Summary, SwapStats } from './stats.ts';

const NS_PER_S = 1e9;

type Labels = Readonly<Record<string, string>>;
/** One without a value is left out. */
interface Figure {
  value: number | undefined;
  time?: string | undefined;
}

interface Of {
  cpu?: CpuStats;
  memory?: MemoryStats;
  swap?: SwapStats;
}
type Family<T> = readonly [name: string, type: 'counter' | 'gauge', level: 'STABLE' | 'ALPHA', help: string, of: (of: T) => Figure];

const CONTAINER: readonly Family<Of & { startTime: string | null }>[] = [
  ['cpu_usage_seconds_total', 'counter', 'STABLE', 'Cumulative cpu time consumed by the container in core-seconds', cpu],
  ['memory_working_set_bytes', 'gauge', 'STABLE', 'Current working set of the container in bytes', memory],
  ['swap_usage_bytes', 'gauge', 'ALPHA', 'Current amount of the container swap usage in bytes', swap],
  ['swap_limit_bytes', 'gauge', 'ALPHA', 'Swap that the container may use in bytes, with what it uses now', mayUse],
  ['start_time_seconds', 'gauge', 'STABLE', 'Start time of the container since unix epoch in seconds', started],
];
const NODE: readonly Family<Of>[] = [
  ['cpu_usage_seconds_total', 'counter', 'STABLE', 'Cumulative cpu time consumed by the node in core-seconds', cpu],
  ['memory_working_set_bytes', 'gauge', 'STABLE', 'Current working set of the node in bytes', memory],
  ['swap_usage_bytes', 'gauge', 'ALPHA', 'Current swap usage of the node in bytes', swap],
];
const POD: readonly Family<Of>[] = [
  ['cpu_usage_seconds_total', 'counter', 'STABLE', 'Cumulative cpu time consumed by the pod in core-seconds', cpu],
  ['memory_working_set_bytes', 'gauge', 'STABLE', 'Current working set of the pod in bytes', memory],
  ['swap_usage_bytes', 'gauge', 'ALPHA', 'Current amount of the pod swap usage in bytes', swap],
];
const ERROR = '1 if there was an error while getting container metrics, 0 otherwise';
const FAILED: Family<number> = ['scrape_error', 'gauge', 'STABLE', ERROR, (value) => ({ value })];

/** `summary` null: it could not be made; then only the error is told, as the reference does. */
export function resourceMetrics(summary: Summary | null): string {
  const failed = families('resource', [FAILED], [{ labels: {}, of: summary === null ? 1 : 0 }]);
  if (summary === null) return failed;
  const pods = summary.pods.map((p) => ({ of: p, labels: { namespace: p.podRef.namespace, pod: p.podRef.name } }));
  const containers = pods.flatMap(({ of: { containers: all }, labels }) =>
    all.map((c) => ({ of: c, labels: { container: c.name, ...labels } })),
  );
  const node = [{ of: summary.node, labels: {} }];
  return [families('container', CONTAINER, containers), families('node', NODE, node), families('pod', POD, pods), failed].join('');
}

/** A family without a sample is left out. */
function families<T>(prefix: string, all: readonly Family<T>[], rows: readonly { labels: Labels; of: T }[]): string {
  const text = all.map(([rest, type, level, help, figure]) => {
    const name = `${prefix}_${rest}`;
    const lines = rows.map(({ labels, of }) => line(name, labels, figure(of))).join('');
    return lines === '' ? '' : `# HELP ${name} [${level}] ${help}\n# TYPE ${name} ${type}\n${lines}`;
  });
  return text.join('');
}

function cpu({ cpu: stats }: Of): Figure {
  const used = stats?.usageCoreNanoSeconds;
  return { value: used === undefined ? undefined : used / NS_PER_S, time: stats?.time };
}
function memory({ memory: stats }: Of): Figure {
  return { value: stats?.workingSetBytes, time: stats?.time };
}
function swap({ swap: stats }: Of): Figure {
  return { value: stats?.swapUsageBytes, time: stats?.time };
}
function mayUse({ swap: stats }: Of): Figure {
  const { swapAvailableBytes: free, swapUsageBytes: used = 0 } = stats ?? {};
  return { value: free === undefined ? undefined : free + used, time: stats?.time };
}
function started({ startTime }: { startTime: string | null }): Figure {
  return { value: startTime === null ? undefined : Date.parse(startTime) / 1000 };
}

function line(name: string, labels: Labels, { value, time }: Figure): string {
  if (value === undefined) return '';
  const pairs = Object.entries(labels).map(([k, v]) => `${k}="${v.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`))}"`);
  const at = time === undefined ? '' : ` ${Date.parse(time)}`;
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}${at}\n`;
}
