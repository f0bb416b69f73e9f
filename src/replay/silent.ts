/** The log and the metrics of a replay: nobody reads them. */
import type { Logger, Metrics } from '../ports/ports.ts';

export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silentLogger };
export const silentMetrics: Metrics = {
  counter: () => ({ inc() {}, remove() {} }),
  gauge: () => ({ set() {}, remove() {} }),
  histogram: () => ({ observe() {}, remove() {} }),
  onCollect() {},
  render: () => Promise.resolve(''),
};
