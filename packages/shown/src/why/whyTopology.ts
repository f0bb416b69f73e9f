/** What `why` says of the NUMA nodes that the topology manager chose. Pure. */
import type { TopologyDecision } from '@actorlet/kubelet/machines/allocation/coordinator/messages.ts';

const OUTCOMES: Readonly<Record<TopologyDecision['outcome'], string>> = {
  admitted: 'chosen',
  refused: 'would be best, and is refused by the policy',
  later: 'would be best now; terminating pods leave more',
};

export function topologyLines(decisions: readonly TopologyDecision[]): string[] {
  const lines = decisions.flatMap(({ container, chosen, outcome, hints }) => [
    `  ${container === null ? 'the pod' : `container ${container}`}: ${chosen} ${OUTCOMES[outcome]}`,
    ...hints.map((hint) => `    ${hint}`),
  ]);
  return lines.length === 0 ? [] : ['NUMA nodes', ...lines];
}
