/** Gauges whose rows come and go. */
import type { Metrics } from './ports.ts';

/** Labels in the same order for all rows of a gauge. */
type Row = readonly [labels: Readonly<Record<string, string>>, value: number];

/** Shows these rows and no other: one that is not among them leaves. Rows of the same labels are added up. */
export function gaugeRows(gauge: ReturnType<Metrics['gauge']>): (rows: Iterable<Row>) => void {
  let shown = new Map<string, Row>();
  return (rows) => {
    const next = new Map<string, Row>();
    for (const [labels, value] of rows) {
      const key = JSON.stringify(labels);
      next.set(key, [labels, (next.get(key)?.[1] ?? 0) + value]);
    }
    for (const [key, [labels]] of shown) if (!next.has(key)) gauge.remove(labels);
    for (const [labels, value] of next.values()) gauge.set(value, labels);
    shown = next;
  };
}
