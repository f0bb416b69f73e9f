/**
 * How late the event loop comes to what is due, under the names that prom-client gives it (`nodejs_eventloop_lag_*`). Its own collector
 * wakes the process 100 times a second, which was most of what a node at rest did, and counts those 10 ms as lag.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Metrics } from '../../../ports/ports.ts';

const EVERY_MS = 250;
const NS = 1e9;

export function eventLoopLag(metrics: Metrics): void {
  const delays = monitorEventLoopDelay({ resolution: EVERY_MS });
  delays.enable();
  const lag = metrics.gauge('nodejs_eventloop_lag_seconds', 'Lag of event loop in seconds.');
  const of = (name: string, what: string) =>
    metrics.gauge(`nodejs_eventloop_lag_${name}_seconds`, `The ${what} of the recorded event loop delays.`);
  /** A time between two looks, without the time that lies between them anyway. */
  const late = (ns: number): number => (Number.isFinite(ns) ? Math.max(0, ns / NS - EVERY_MS / 1000) : 0);
  const gauges = [
    [of('min', 'minimum'), () => (delays.count === 0 ? 0 : late(delays.min))],
    [of('max', 'maximum'), () => late(delays.max)],
    [of('mean', 'mean'), () => late(delays.mean)],
    [of('stddev', 'standard deviation'), () => (Number.isFinite(delays.stddev) ? delays.stddev / NS : 0)],
    [of('p50', '50th percentile'), () => late(delays.percentile(50))],
    [of('p90', '90th percentile'), () => late(delays.percentile(90))],
    [of('p99', '99th percentile'), () => late(delays.percentile(99))],
  ] as const;
  metrics.onCollect(() => {
    const askedAt = process.hrtime.bigint();
    setImmediate(() => lag.set(Number(process.hrtime.bigint() - askedAt) / NS));
    for (const [gauge, read] of gauges) gauge.set(read());
    delays.reset();
  }, 'event loop');
}
