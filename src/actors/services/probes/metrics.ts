/** The reference's metrics of probes (pod lifecycle 8.6). They go when their pod goes. */
import { PROBE_NAMES, type ProbeOutcome, type ProbeTarget } from '../../../machines/pod/probes/probes.ts';
import type { Metrics } from '../../../ports/ports.ts';

/** Prometheus' default buckets, seconds. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const RESULTS = { success: 'successful', warning: 'successful', failure: 'failed', error: 'unknown' } as const;

export interface ProbeMetrics {
  attempted(target: ProbeTarget, outcome: ProbeOutcome, durationMs: number): void;
  /** The pod's probes have ended. */
  ended(uid: string): void;
}

export function probeMetrics(metrics: Metrics): ProbeMetrics {
  const labels = ['probe_type', 'container', 'pod', 'namespace'];
  const total = metrics.counter(
    'prober_probe_total',
    'Cumulative number of a liveness, readiness or startup probe for a container by result.',
    ['probe_type', 'result', 'container', 'pod', 'namespace', 'pod_uid'],
  );
  const duration = metrics.histogram('prober_probe_duration_seconds', 'Duration in seconds for a probe response.', BUCKETS, labels);
  const short = ({ type, container, pod }: ProbeTarget) => ({
    probe_type: PROBE_NAMES[type],
    container: container.name,
    pod: pod.name,
    namespace: pod.namespace,
  });
  const long = (target: ProbeTarget, result: string) => ({ ...short(target), result, pod_uid: target.pod.uid });
  const told = new Map<string, Map<string, ProbeTarget>>();
  return {
    attempted(target, outcome, durationMs) {
      total.inc(long(target, RESULTS[outcome.kind]));
      if (outcome.kind === 'success' || outcome.kind === 'warning') duration.observe(durationMs / 1_000, short(target));
      const { uid } = target.pod;
      told.set(uid, (told.get(uid) ?? new Map()).set(target.key, target));
    },
    ended(uid) {
      for (const target of told.get(uid)?.values() ?? []) {
        for (const result of new Set(Object.values(RESULTS))) total.remove(long(target, result));
        duration.remove(short(target));
      }
      told.delete(uid);
    },
  };
}
