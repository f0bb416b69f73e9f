/** Metrics that the runtime makes itself, for /metrics/cadvisor (gate PodAndContainerStatsFromCRI), as Prometheus text. Pure. */

import { figure } from '../../figures/figure.ts';
import type { CriMetric, CriMetricDescriptor, CriSandboxMetrics } from '../../wire/criStats.ts';
import { metricLine } from './cadvisorMetrics.ts';

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/;

interface Family {
  descriptor: CriMetricDescriptor;
  type: CriMetric['metricType'];
  /** By labels: of a row that comes twice the first counts. */
  rows: Map<string, string>;
}

/** As the kubelet: without those that no descriptor knows, or whose labels are not as many as it says. */
export function criMetrics(descriptors: readonly CriMetricDescriptor[], pods: readonly CriSandboxMetrics[]): string {
  const known = new Map(
    descriptors.filter((d) => METRIC_NAME.test(d.name) && d.labelKeys.every((key) => LABEL_NAME.test(key))).map((d) => [d.name, d]),
  );
  const families = new Map<string, Family>();
  for (const { metrics, containerMetrics } of pods)
    for (const metric of [...metrics, ...containerMetrics.flatMap((c) => c.metrics)]) {
      const descriptor = known.get(metric.name);
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
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type.toLowerCase()}\n${[...rows.values()].sort().join('')}`;
    })
    .join('');
}

function row({ name, labelKeys }: CriMetricDescriptor, { labelValues, value, timestamp }: CriMetric): string {
  const labels = Object.fromEntries(labelKeys.map((key, i) => [key, labelValues[i] ?? '']));
  const atMs = BigInt(timestamp) / 1_000_000n;
  return metricLine(name, labels, figure(value) ?? 0, atMs === 0n ? undefined : Number(atMs));
}
