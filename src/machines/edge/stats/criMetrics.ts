/** Metrics that the runtime makes itself, for /metrics/cadvisor (gate PodAndContainerStatsFromCRI), as Prometheus text. Pure. */

import { figure } from '../../figures/figure.ts';
import type { CriMetric, CriMetricDescriptor, CriSandboxMetrics } from '../../wire/criStats.ts';
import { metricLine } from './cadvisorMetrics.ts';

/** Names may have any sign, as in OpenTelemetry: `container.cpu`. Pages have them as every reader of Prometheus knows them. */
const shownName = (name: string): string => name.replace(/^\d|[^a-zA-Z0-9_:]/gu, '_');
const areLabels = (keys: readonly string[]): boolean =>
  new Set(keys).size === keys.length && keys.every((key) => key !== '' && !key.startsWith('__'));
const TYPES: readonly string[] = ['COUNTER', 'GAUGE'] satisfies CriMetric['metricType'][];

interface Family {
  descriptor: CriMetricDescriptor;
  type: CriMetric['metricType'];
  /** By labels: of a row that comes twice the first counts. */
  rows: Map<string, string>;
}

/** As the kubelet: without those that no descriptor knows, whose labels are not as many as it says, or whose type is new. */
export function criMetrics(descriptors: readonly CriMetricDescriptor[], pods: readonly CriSandboxMetrics[]): string {
  const known = new Map(descriptors.filter((d) => d.name !== '' && areLabels(d.labelKeys)).map((d) => [d.name, d]));
  const families = new Map<string, Family>();
  for (const { metrics, containerMetrics } of pods)
    for (const metric of [...metrics, ...containerMetrics.flatMap((c) => c.metrics)]) {
      const descriptor = TYPES.includes(metric.metricType) ? known.get(metric.name) : undefined;
      if (descriptor === undefined || descriptor.labelKeys.length !== metric.labelValues.length) continue;
      const family = families.get(metric.name) ?? { descriptor, type: metric.metricType, rows: new Map() };
      families.set(metric.name, family);
      const key = JSON.stringify(metric.labelValues);
      if (family.type === metric.metricType && !family.rows.has(key)) family.rows.set(key, row(descriptor, metric));
    }
  return [...families]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { descriptor, type, rows }]) => {
      const help = `[INTERNAL] ${descriptor.help}`.replace(/[\\\n]/g, (c) => (c === '\n' ? '\\n' : '\\\\'));
      const shown = shownName(name);
      return `# HELP ${shown} ${help}\n# TYPE ${shown} ${type.toLowerCase()}\n${[...rows.values()].sort().join('')}`;
    })
    .join('');
}

function row({ name, labelKeys }: CriMetricDescriptor, { labelValues, value, timestamp }: CriMetric): string {
  const labels = Object.fromEntries(labelKeys.map((key, i) => [shownName(key), labelValues[i] ?? '']));
  const atMs = BigInt(timestamp) / 1_000_000n;
  return metricLine(shownName(name), labels, figure(value) ?? 0, atMs === 0n ? undefined : Number(atMs));
}
