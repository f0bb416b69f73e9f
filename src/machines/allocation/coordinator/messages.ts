/** What the coordinator of allocation publishes. */
import { viewKey } from '../../supervision/address.ts';
import type { TopologyDecision } from './decision.ts';

/** By UID of the pod, of pods that were asked about last. Absent under topology manager policy none. */
export type TopologyDecisions = ReadonlyMap<string, { pod: string; decisions: readonly TopologyDecision[] }>;
export const topologyView = viewKey<TopologyDecisions>('topology');
