import type { Ports } from '../../ports/ports.ts';

/** The CPU manager counts alignment at cores and caches, the topology manager at NUMA nodes. */
export function alignmentMetrics(metrics: Ports['metrics']) {
  const labels = ['scope', 'boundary'];
  return {
    aligned: metrics.counter(
      'kubelet_container_aligned_compute_resources_count',
      'Containers, or pods, whose resources are aligned at this boundary',
      labels,
    ),
    unaligned: metrics.counter(
      'kubelet_container_aligned_compute_resources_failure_count',
      'Containers, or pods, whose resources could not be aligned at this boundary',
      labels,
    ),
  };
}
