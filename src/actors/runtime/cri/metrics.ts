/** The kubelet's metrics of runtime operations. */
import type { CriMethod } from '../../../machines/wire/criCalls.ts';
import { CRI_METHODS } from '../../../machines/wire/criMethods.ts';
import type { Metrics } from '../../../ports/ports.ts';

/** Seconds: 5 ms and up, times 2.5, as the kubelet has them. */
const BUCKETS = Array.from({ length: 14 }, (_, i) => 0.005 * 2.5 ** i);

export interface OperationMetrics {
  ended(method: CriMethod, seconds: number, ok: boolean): void;
}

export function operationMetrics(metrics: Metrics): OperationMetrics {
  const labels = ['operation_type'] as const;
  const total = metrics.counter('kubelet_runtime_operations_total', 'Cumulative number of runtime operations by operation type.', labels);
  const errors = metrics.counter(
    'kubelet_runtime_operations_errors_total',
    'Cumulative number of failed runtime operations by operation type.',
    labels,
  );
  const duration = metrics.histogram(
    'kubelet_runtime_operations_duration_seconds',
    'Duration in seconds of runtime operations by operation type.',
    BUCKETS,
    labels,
  );
  return {
    ended: (method, seconds, ok) => {
      const label = { operation_type: CRI_METHODS[method].verb };
      total.inc(label);
      duration.observe(seconds, label);
      if (!ok) errors.inc(label);
    },
  };
}
