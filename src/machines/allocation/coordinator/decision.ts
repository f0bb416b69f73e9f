/** What the topology manager decided about a container, or about a pod as a whole, and from which hints. Pure. */
import type { Affinity, ProviderHints, ResourceHints } from '../messages.ts';
import { mergeHints } from './merge.ts';
import type { TopologyDecision } from './messages.ts';
import type { TopologyPlan } from './topologyPolicy.ts';

/** What a provider said. */
export interface Weighed {
  provider: string;
  hints: ProviderHints;
}

export function decide(plan: TopologyPlan, weighed: readonly Weighed[], container: string | null): TopologyDecision {
  const merged = (pick: 'now' | 'soon') =>
    mergeHints(
      plan.policy,
      plan.map,
      weighed.map(({ hints }) => hints[pick]),
    );
  const { affinity, admitted } = merged('now');
  const hints = weighed.flatMap(({ provider, hints: { now } }) => now.map((one) => lineOf(provider, one)));
  // Nobody is refused for what others release soon.
  const outcome = admitted ? 'admitted' : merged('soon').admitted ? 'later' : 'refused';
  return { container, affinity, chosen: affinityText(affinity), outcome, hints };
}

export const REFUSAL_REASON = 'TopologyAffinityError';
/** The reference's words, and what they do not tell. */
export function refusalOf({ container, hints }: TopologyDecision): string {
  const of = container === null ? '' : `container ${container}: `;
  return `Resources cannot be allocated with Topology locality (${of}${hints.join('; ')})`;
}

function affinityText({ nodes, preferred }: Affinity): string {
  return `${nodes === null ? 'any NUMA node' : `NUMA ${nodes.join('+')}`}${preferred ? '' : ', not preferred'}`;
}

/** Sets of eight nodes are 255: the first ones tell enough. */
const SHOWN_MAX = 12;
function lineOf(provider: string, { resource, hints }: ResourceHints): string {
  if (hints === null) return `${resource} (${provider}): any NUMA node`;
  if (hints.length === 0) return `${resource} (${provider}): no NUMA node has enough`;
  // Preferred ones are what decides.
  const preferred = hints.filter((hint) => hint.preferred);
  const shown = preferred.slice(0, SHOWN_MAX).map((hint) => hint.nodes.join('+'));
  const others = hints.length - preferred.length;
  const more = preferred.length > SHOWN_MAX ? `, and ${preferred.length - SHOWN_MAX} sets more` : '';
  const rest = others === 0 ? '' : `; ${others} wider or worse`;
  return `${resource} (${provider}): ${shown.length === 0 ? 'nothing preferred' : `NUMA ${shown.join(', ')}${more}`}${rest}`;
}
