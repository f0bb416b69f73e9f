/**
 * Static pods that run although their manifest cannot be used: another agent, or an earlier version of this one, started them
 * from it. They run on as they are until the manifest is mended, which takes them over, or removed, which stops them. Pure.
 */

import { ANNOTATION_SOURCE } from '../../pod/names.ts';
import type { ListedPod, SourceName } from '../../pod/runtime/seen.ts';
import { type PodRecord, refusedFor } from '../manager/messages.ts';
import type { SourceError } from './messages.ts';
import { isLive } from './takeover.ts';

/** What {@link SourceError.holds} says of a document that cannot be read at all. */
export const ANY_POD = '*';

/** The document may be the definition of that pod. */
function mayHold({ holds }: SourceError, listed: ListedPod): boolean {
  return holds === ANY_POD || holds === `${listed.name}_${listed.namespace}`;
}

/** Pods that no usable manifest names: those that run and may be from a manifest of that source that cannot be used. */
export function keptPods(listed: Iterable<ListedPod>, source: SourceName, errors: readonly SourceError[]): ListedPod[] {
  const holding = errors.filter((e) => e.holds !== undefined);
  if (holding.length === 0) return [];
  const isOfSource = (pod: ListedPod) => pod.sandboxes.some((s) => s.annotations[ANNOTATION_SOURCE] === source);
  return [...listed].filter((pod) => isOfSource(pod) && isLive(pod) && holding.some((e) => mayHold(e, pod)));
}

/** Names in one message. */
const NAMES_MAX = 5;

export function keptText(kept: readonly { namespace: string; name: string }[]): string {
  const names = kept.slice(0, NAMES_MAX).map(({ namespace, name }) => `${namespace}/${name}`);
  const more = kept.length > names.length ? ` and ${kept.length - names.length} more` : '';
  return `${names.join(', ')}${more} ran already and runs on as it is: correct the manifest, or remove it to stop the pod`;
}

/** It ran when this node refused its definition, for what it does not support: that is no reason to stop it. */
export function keepsRefused(record: Pick<PodRecord, 'state' | 'source'>): boolean {
  const { source } = record;
  return refusedFor(record) === 'UnsupportedField' && (source === 'file' || source === 'http');
}
