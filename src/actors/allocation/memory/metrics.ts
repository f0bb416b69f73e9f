/** The kubelet's metrics of the memory manager. Without one they stay 0, as in the reference. */

import type { MemoryCounts } from '../../../machines/allocation/memory/ledger.ts';
import type { GrantReply } from '../../../machines/allocation/requests.ts';
import type { Ports } from '../../../ports/ports.ts';

export function memoryMetrics(metrics: Ports['metrics']): { answered(replies: readonly GrantReply<MemoryCounts>[]): void } {
  const requests = metrics.counter('kubelet_memory_manager_pinning_requests_total', 'Containers that asked for memory of their own');
  const errors = metrics.counter(
    'kubelet_memory_manager_pinning_errors_total',
    'Containers that asked for memory of their own and got none',
  );
  return {
    answered(replies) {
      for (const { answer, counts } of replies) {
        if (answer.kind === 'later') continue;
        requests.inc(undefined, counts.asked);
        errors.inc(undefined, answer.kind === 'refused' ? 1 : 0);
      }
    },
  };
}
