/** What the coordinator of allocation publishes. */
import { viewKey } from '../../supervision/address.ts';
import type { Affinity } from '../messages.ts';

/** What the topology manager decided about a container, or about a pod as a whole, and from which hints. */
export interface TopologyDecision {
  /** Null: the pod as a whole. */
  container: string | null;
  affinity: Affinity;
  /** In words, such as `NUMA 0+1`. */
  chosen: string;
  outcome: 'admitted' | 'refused' | 'later';
  /** A line for each resource that has hints. */
  hints: readonly string[];
}

/** By UID of the pod, of pods that were asked about last. Absent under topology manager policy none. */
export type TopologyDecisions = ReadonlyMap<string, { pod: string; decisions: readonly TopologyDecision[] }>;
export const topologyView = viewKey<TopologyDecisions>('topology');

/** A metric of the kubelet. The pod manager counts pods that nothing is allocated to, the coordinator all others. */
export const TOPOLOGY_REQUESTS = {
  name: 'kubelet_topology_manager_admission_requests_total',
  help: 'Admissions of pods in which resources have to be aligned',
} as const;
