/** What `why` says of what a source holds: what cannot be used of it, and which fields of a pod are left alone. Pure. */
import { podFields } from './pods/sources/supported.ts';
import type { SourceName } from './pods/types.ts';
import type { PodRecord, SourceError } from './protocol.ts';

export interface Located extends SourceError {
  source: SourceName;
}

/** Of a pod that the node knows. */
export function errorLines(errors: readonly Located[], record: Pick<PodRecord, 'removed' | 'source'>): string[] {
  if (errors.length === 0) return [];
  const used = errors.map((e) => `  ${e.where} cannot be used: ${e.message}`);
  if (record.source === 'api') {
    return ['API server', ...used, '  what runs of it goes on as it was; the pod is read again when it changes'];
  }
  const next = record.removed
    ? 'so the pod is being stopped; it comes back once the manifest can be read'
    : 'the pod is kept until the next listing; if it still cannot be read then, the pod is stopped';
  return ['Manifest', ...used, `  ${next}`];
}

/** Of a pod that the node does not know. */
export function absentLines(e: Located): string[] {
  if (e.source === 'api')
    return [`API server: ${e.where} cannot be used: ${e.message}`, '  it is not run; it is read again when it changes'];
  return [
    `Manifest ${e.where} (${e.source} source) cannot be used: ${e.message}`,
    e.fullName === undefined
      ? '  it never held a usable pod; correct it and the pod starts at the next look'
      : `  it held pod ${e.fullName}, which was therefore removed; correct it and the pod starts again`,
  ];
}

/** Fields that the pod runs without. */
export function leftAloneLines({ pod, source }: Pick<PodRecord, 'pod' | 'source'>): string[] {
  const { leftAlone } = podFields(pod, { api: source === 'api' });
  return leftAlone.length === 0 ? [] : ['Left alone (no effect on this node)', ...leftAlone.map((field) => `  ${field}`)];
}
