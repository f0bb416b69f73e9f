/** Whether a node is one that a pod asks for: `nodeSelector` and the required node affinity. Pure. */

import { own } from '../data/own.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm, PodSpec } from './podTable.ts';

/** Labels of the node that is asked about. */
export interface NodeIdentityLabels {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
}

const INTEGER = /^[+-]?\d+$/;

/** Why the node is not one of those that the pod asks for; null when it is. */
export function nodeMismatch(spec: PodSpec, node: NodeIdentityLabels): string | null {
  for (const [key, value] of Object.entries(spec.nodeSelector ?? {})) {
    const held = own(node.labels, key);
    if (held !== value)
      return `nodeSelector asks for ${key}=${value}, the node has ${held === undefined ? 'no such label' : `${key}=${held}`}`;
  }
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (required === undefined || required === null) return null;
  // Any one term is enough, so none at all is never enough.
  const terms = required.nodeSelectorTerms ?? [];
  return terms.some((term) => matchesTerm(term, node)) ? null : 'no term of the required node affinity matches';
}

/** All of its requirements hold; a term without any matches nothing. */
function matchesTerm(term: NodeSelectorTerm, node: NodeIdentityLabels): boolean {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length + fields.length === 0) return false;
  return (
    expressions.every((r) => matchesRequirement(r, own(node.labels, r.key))) &&
    fields.every((r) => matchesField(r, r.key === 'metadata.name' ? node.name : ''))
  );
}

/** A requirement that is not well formed matches nothing. */
function matchesRequirement(r: NodeSelectorRequirement, held: string | undefined): boolean {
  const values = r.values ?? [];
  switch (r.operator) {
    case 'In':
      return held !== undefined && values.includes(held);
    case 'NotIn':
      return values.length > 0 && (held === undefined || !values.includes(held));
    case 'Exists':
      return values.length === 0 && held !== undefined;
    case 'DoesNotExist':
      return values.length === 0 && held === undefined;
    case 'Gt':
    case 'Lt': {
      const [bound] = values;
      if (held === undefined || bound === undefined || values.length !== 1 || !INTEGER.test(held) || !INTEGER.test(bound)) return false;
      return r.operator === 'Gt' ? BigInt(held) > BigInt(bound) : BigInt(held) < BigInt(bound);
    }
    default:
      return false;
  }
}

/** Fields are compared with one value, for being it or not. */
function matchesField(r: NodeSelectorRequirement, held: string): boolean {
  const [value] = r.values ?? [];
  if (value === undefined || r.values?.length !== 1) return false;
  if (r.operator === 'In') return held === value;
  return r.operator === 'NotIn' && held !== value;
}
