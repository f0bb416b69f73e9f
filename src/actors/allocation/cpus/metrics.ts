/** The kubelet's metrics of the CPU manager. Without one they stay 0, as in the reference. */
import { shared, without } from '../../../machines/allocation/cpuSet.ts';
import type { CpuCounts, CpuLedger, CpuPlace } from '../../../machines/allocation/cpus/ledger.ts';
import { allCpus } from '../../../machines/allocation/cpus/topology.ts';
import type { GrantReply } from '../../../machines/allocation/requests.ts';
import type { Ports } from '../../../ports/ports.ts';
import { alignmentMetrics } from '../alignmentMetrics.ts';

export interface CpuMetrics {
  /** There is a CPU manager: all of its figures are there from now on. */
  begin(): void;
  /** Answers to pods that ask for CPUs; one that has to wait is counted when it gets its last answer. */
  answered(replies: readonly GrantReply<CpuCounts>[]): void;
  now(ledger: CpuLedger, place: CpuPlace): void;
}

/** CPUs are aligned when each container has whole cores, as in the reference. */
const WHOLE_CORES = { scope: 'container', boundary: 'physical_cpu' };
const ONE_CACHE = { scope: 'container', boundary: 'uncore_cache' };

export function cpuMetrics(metrics: Ports['metrics']): CpuMetrics {
  const requests = metrics.counter('kubelet_cpu_manager_pinning_requests_total', 'Containers that asked for CPUs of their own');
  const errors = metrics.counter('kubelet_cpu_manager_pinning_errors_total', 'Containers that asked for CPUs of their own and got none');
  const sharedMilli = metrics.gauge(
    'kubelet_cpu_manager_shared_pool_size_millicores',
    'CPUs left to containers without CPUs of their own, without those reserved for the system, in thousandths',
  );
  const exclusive = metrics.gauge('kubelet_cpu_manager_exclusive_cpu_allocation_count', 'CPUs that containers have alone');
  const perNode = metrics.gauge('kubelet_cpu_manager_allocation_per_numa', 'CPUs that containers have alone, by NUMA node', ['numa_node']);
  const { aligned, unaligned } = alignmentMetrics(metrics);
  return {
    begin() {
      aligned.inc(WHOLE_CORES, 0);
      aligned.inc(ONE_CACHE, 0);
      unaligned.inc(WHOLE_CORES, 0);
    },
    answered(replies) {
      for (const { answer, counts } of replies) {
        if (answer.kind === 'later') continue;
        const { asked, wholeCores, inOneCache } = counts;
        const failed = answer.kind === 'granted' ? 0 : 1;
        requests.inc(undefined, asked);
        errors.inc(undefined, failed);
        aligned.inc(ONE_CACHE, inOneCache);
        if (!wholeCores) continue;
        aligned.inc(WHOLE_CORES, asked - failed);
        unaligned.inc(WHOLE_CORES, failed);
      }
    },
    now(ledger, { topology, reserved, policy }) {
      const taken = without(without(allCpus(topology), ledger.shared), policy.strictReservation === true ? reserved : []);
      sharedMilli.set(without(ledger.shared, reserved).length * 1000);
      exclusive.set(taken.length);
      for (const node of new Set(topology.cpus.map((c) => c.node))) {
        const those = topology.cpus.filter((c) => c.node === node).map((c) => c.id);
        perNode.set(shared(taken, those).length, { numa_node: String(node) });
      }
    },
  };
}
