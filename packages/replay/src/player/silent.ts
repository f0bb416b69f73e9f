/** The log and the metrics of a replay: nobody reads them. */
import type { Logger, Metrics } from '@actorlet/kubelet/ports/ports.ts';

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLogger };
export const silentMetrics: Metrics = {
  counter: () => ({ inc() {}, remove() {} }),
  gauge: () => ({ set() {}, remove() {} }),
  histogram: () => ({ observe() {}, remove() {} }),
  onCollect() {},
  render: () => Promise.resolve(''),
};

/** The same metrics. A page of them comes from `page`; making it lets the tree look at its clock, as then. */
export function collecting(metrics: Metrics, page: () => Promise<string>): Metrics {
  const collectors = new Map<string | (() => void), () => void>();
  return {
    ...metrics,
    onCollect: (fn, key) => void collectors.set(key ?? fn, fn),
    render: () => {
      for (const collect of collectors.values()) {
        try {
          collect();
        } catch {
          // One that fails leaves a page without its figures, then as now.
        }
      }
      return page();
    },
  };
}
