/** The kubelet's metrics of lifecycle events. */

import type { RunningCounts } from '../../../machines/runtime/pleg/pleg.ts';
import { DEFAULT_SECONDS } from '../../../machines/text/buckets.ts';
import type { Metrics } from '../../../ports/ports.ts';

export interface PlegMetrics {
  listed(o: { durationSeconds: number; intervalSeconds: number | null; wallSeconds: number; counts: RunningCounts }): void;
  missed(count: number): void;
  streamOpened(): void;
  /** It broke, or could not be opened. */
  streamLost(): void;
  /** A hint was dropped, since too many waited; a listing tells what it was about. */
  discarded(): void;
}

export function plegMetrics(metrics: Metrics): PlegMetrics {
  const duration = metrics.histogram(
    'kubelet_pleg_relist_duration_seconds',
    'Duration in seconds for relisting pods in PLEG.',
    DEFAULT_SECONDS,
  );
  const interval = metrics.histogram(
    'kubelet_pleg_relist_interval_seconds',
    'Interval in seconds between relisting in PLEG.',
    DEFAULT_SECONDS,
  );
  const seen = metrics.gauge('kubelet_pleg_last_seen_seconds', 'Timestamp in seconds when PLEG was last seen active.');
  const pods = metrics.gauge('kubelet_running_pods', 'Number of pods that have a running pod sandbox');
  const containers = metrics.gauge('kubelet_running_containers', 'Number of running containers', ['container_state']);
  const missed = metrics.counter('actorlet_pleg_missed_hints_total', 'Changes that a listing found and the hint stream had not announced.');
  const opened = metrics.counter('kubelet_evented_pleg_connection_success_count', 'Times that a stream of hints of the runtime was opened');
  const lost = metrics.counter(
    'kubelet_evented_pleg_connection_error_count',
    'Times that a stream of hints of the runtime broke or could not be opened',
  );
  const discarded = metrics.counter('kubelet_pleg_discard_events', 'Hints of the runtime that were dropped, since too many waited');
  return {
    listed: (o) => {
      duration.observe(o.durationSeconds);
      if (o.intervalSeconds !== null) interval.observe(o.intervalSeconds);
      seen.set(o.wallSeconds);
      pods.set(o.counts.runningPods);
      for (const [state, count] of Object.entries(o.counts.containers)) containers.set(count, { container_state: state });
    },
    missed: (count) => missed.inc(undefined, count),
    streamOpened: () => opened.inc(),
    streamLost: () => lost.inc(),
    discarded: () => discarded.inc(),
  };
}
