/** /metrics/resource: what metrics-server scrapes, as Prometheus text with the time of each sample (boot-and-node 8.5). Pure. */
import type { CpuStats, MemoryStats, Summary, SwapStats } from './stats.ts';

const NS_PER_S = 1e9;

interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number | undefined;
  time: string | undefined;
}

/** `summary` null: it could not be made; then only the error is told, as the reference does. */
export function resourceMetrics(summary: Summary | null): string {
  const out: string[] = [];
  const family = (o: { name: string; help: string; type: 'counter' | 'gauge'; level?: 'ALPHA' }, samples: readonly Sample[]) => {
    const lines = samples.flatMap((s) => (s.value === undefined ? [] : [line(o.name, { ...s, value: s.value })]));
    if (lines.length > 0) out.push(`# HELP ${o.name} [${o.level ?? 'STABLE'}] ${o.help}\n# TYPE ${o.name} ${o.type}\n${lines.join('')}`);
  };
  if (summary !== null) {
    const containers = summary.pods.flatMap((p) =>
      p.containers.map((c) => ({ c, labels: { container: c.name, namespace: p.podRef.namespace, pod: p.podRef.name } })),
    );
    const pods = summary.pods.map((p) => ({ p, labels: { namespace: p.podRef.namespace, pod: p.podRef.name } }));
    family(
      { name: 'container_cpu_usage_seconds_total', help: 'Cumulative cpu time consumed by the container in core-seconds', type: 'counter' },
      containers.map(({ c, labels }) => cpu(c.cpu, labels)),
    );
    family(
      { name: 'container_memory_working_set_bytes', help: 'Current working set of the container in bytes', type: 'gauge' },
      containers.map(({ c, labels }) => memory(c.memory, labels)),
    );
    family(
      { name: 'container_swap_usage_bytes', help: 'Current amount of the container swap usage in bytes', type: 'gauge', level: 'ALPHA' },
      containers.map(({ c, labels }) => swap(c.swap, labels)),
    );
    const swapLimit = 'Swap that the container may use in bytes, with what it uses now';
    family(
      { name: 'container_swap_limit_bytes', help: swapLimit, type: 'gauge', level: 'ALPHA' },
      containers.map(({ c, labels }) => mayUse(c.swap, labels)),
    );
    family(
      { name: 'container_start_time_seconds', help: 'Start time of the container since unix epoch in seconds', type: 'gauge' },
      containers.map(({ c, labels }) => ({
        labels,
        value: c.startTime === null ? undefined : Date.parse(c.startTime) / 1000,
        time: undefined,
      })),
    );
    family({ name: 'node_cpu_usage_seconds_total', help: 'Cumulative cpu time consumed by the node in core-seconds', type: 'counter' }, [
      cpu(summary.node.cpu, {}),
    ]);
    family({ name: 'node_memory_working_set_bytes', help: 'Current working set of the node in bytes', type: 'gauge' }, [
      memory(summary.node.memory, {}),
    ]);
    family({ name: 'node_swap_usage_bytes', help: 'Current swap usage of the node in bytes', type: 'gauge', level: 'ALPHA' }, [
      swap(summary.node.swap, {}),
    ]);
    family(
      { name: 'pod_cpu_usage_seconds_total', help: 'Cumulative cpu time consumed by the pod in core-seconds', type: 'counter' },
      pods.map(({ p, labels }) => cpu(p.cpu, labels)),
    );
    family(
      { name: 'pod_memory_working_set_bytes', help: 'Current working set of the pod in bytes', type: 'gauge' },
      pods.map(({ p, labels }) => memory(p.memory, labels)),
    );
    family(
      { name: 'pod_swap_usage_bytes', help: 'Current amount of the pod swap usage in bytes', type: 'gauge', level: 'ALPHA' },
      pods.map(({ p, labels }) => swap(p.swap, labels)),
    );
  }
  const error = [{ labels: {}, value: summary === null ? 1 : 0, time: undefined }];
  family(
    { name: 'resource_scrape_error', help: '1 if there was an error while getting container metrics, 0 otherwise', type: 'gauge' },
    error,
  );
  return out.join('');
}

function cpu(stats: CpuStats | undefined, labels: Sample['labels']): Sample {
  const used = stats?.usageCoreNanoSeconds;
  return { labels, value: used === undefined ? undefined : used / NS_PER_S, time: stats?.time };
}
function memory(stats: MemoryStats | undefined, labels: Sample['labels']): Sample {
  return { labels, value: stats?.workingSetBytes, time: stats?.time };
}
function swap(stats: SwapStats | undefined, labels: Sample['labels']): Sample {
  return { labels, value: stats?.swapUsageBytes, time: stats?.time };
}

function mayUse(stats: SwapStats | undefined, labels: Sample['labels']): Sample {
  const { swapAvailableBytes: free, swapUsageBytes: used = 0 } = stats ?? {};
  return { labels, value: free === undefined ? undefined : free + used, time: stats?.time };
}

function line(name: string, s: { labels: Sample['labels']; value: number; time: string | undefined }): string {
  const labels = Object.entries(s.labels).map(([k, v]) => `${k}="${v.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`))}"`);
  const time = s.time === undefined ? '' : ` ${Date.parse(s.time)}`;
  return `${name}${labels.length === 0 ? '' : `{${labels.join(',')}}`} ${s.value}${time}\n`;
}
