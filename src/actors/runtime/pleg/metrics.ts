/** The kubelet's metrics of lifecycle events. */
import type { RunningCounts } from '../../../machines/runtime/pleg/pleg.ts';
import type { Metrics } from '../../../ports/ports.ts';

/** Seconds: 5 ms and up, times 2.5. */
const BUCKETS = Array.from({ length: 14 }, (_, i) => 0.005 * 2.5 ** i);

export interface PlegMetrics {
  listed(o: { durationSeconds: number; intervalSeconds: number | null; wallSeconds: number; counts: RunningCounts }): void;
  missed(count: number): void;
}

export function plegMetrics(metrics: Metrics): PlegMetrics {
  const duration = metrics.histogram('kubelet_pleg_relist_duration_seconds', 'Duration in seconds for relisting pods in PLEG.', BUCKETS);
  const interval = metrics.histogram('kubelet_pleg_relist_interval_seconds', 'Interval in seconds between relisting in PLEG.', BUCKETS);
  const seen = metrics.gauge('kubelet_pleg_last_seen_seconds', 'Timestamp in seconds when PLEG was last seen active.');
  const pods = metrics.gauge('kubelet_running_pods', 'Number of pods that have a running pod sandbox');
  const containers = metrics.gauge('kubelet_running_containers', 'Number of running containers', ['container_state']);
  const missed = metrics.counter('actorlet_pleg_missed_hints_total', 'Changes that a listing found and the hint stream had not announced.');
  return {
    listed: (o) => {
      duration.observe(o.durationSeconds);
      if (o.intervalSeconds !== null) interval.observe(o.intervalSeconds);
      seen.set(o.wallSeconds);
      pods.set(o.counts.runningPods);
      for (const [state, count] of Object.entries(o.counts.containers)) containers.set(count, { container_state: state });
    },
    missed: (count) => missed.inc(undefined, count),
  };
}
