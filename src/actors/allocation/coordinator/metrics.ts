/** The kubelet's metrics of the topology manager. */

import { TOPOLOGY_REQUESTS, type TopologyDecision } from '../../../machines/allocation/coordinator/messages.ts';
import type { TopologyPlan } from '../../../machines/allocation/coordinator/topologyPolicy.ts';
import type { AllocationAnswer } from '../../../machines/allocation/messages.ts';
import { lastingOf } from '../../../machines/allocation/podContainers.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { Ports } from '../../../ports/ports.ts';
import { alignmentMetrics } from '../alignmentMetrics.ts';

interface Answered {
  plan: TopologyPlan | null;
  pod: Pod;
  answer: AllocationAnswer;
  decisions: readonly TopologyDecision[];
  tookMs: number;
}
const NUMA_NODE = { boundary: 'numa_node' };
/** Buckets of the reference: from 0.05 ms on, doubled 14 times. */
const BUCKETS_MS = Array.from({ length: 15 }, (_, i) => 0.05 * 2 ** i);

export function topologyMetrics(metrics: Ports['metrics']): { begin(plan: TopologyPlan | null): void; answered(a: Answered): void } {
  const requests = metrics.counter(TOPOLOGY_REQUESTS.name, TOPOLOGY_REQUESTS.help);
  const errors = metrics.counter(
    'kubelet_topology_manager_admission_errors_total',
    'Admissions of pods that failed since resources could not be aligned or allocated',
  );
  const duration = metrics.histogram('kubelet_topology_manager_admission_duration_ms', 'How long it took to admit a pod', BUCKETS_MS);
  const { aligned, unaligned } = alignmentMetrics(metrics);
  return {
    begin(plan) {
      if (plan === null) return;
      for (const scope of ['container', 'pod']) {
        aligned.inc({ scope, ...NUMA_NODE }, 0);
        unaligned.inc({ scope, ...NUMA_NODE }, 0);
      }
    },
    answered({ plan, pod, answer, decisions, tookMs }) {
      if (answer.kind === 'later') return;
      requests.inc();
      // Under policy none the reference counts no errors.
      errors.inc(undefined, plan !== null && answer.kind === 'refused' ? 1 : 0);
      duration.observe(tookMs);
      if (plan?.policy !== 'single-numa-node') return;
      const { scope } = plan;
      const refused = decisions.filter((d) => d.outcome === 'refused').length;
      const admitted = decisions.length === 0 ? lastingOf(pod).length : decisions.filter((d) => d.outcome === 'admitted').length;
      aligned.inc({ scope, ...NUMA_NODE }, scope === 'pod' ? Number(answer.kind === 'granted') : admitted);
      unaligned.inc({ scope, ...NUMA_NODE }, refused);
    },
  };
}
