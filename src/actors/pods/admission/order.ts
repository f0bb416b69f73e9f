/** Small questions of admission: who comes first, who goes anyway, what is no answer yet. */
import type { Pod } from '../../../machines/k8s.ts';
import type { Refusal } from '../../../machines/pods/admission/admission.ts';
import type { Deferred } from '../../../machines/pods/admission/admissionMachine.ts';
import type { PodRecord } from '../../../machines/protocol.ts';

export function isWait(verdict: Refusal | Deferred['verdict']): verdict is Deferred['verdict'] {
  return typeof verdict === 'string';
}
export function keepsRoom({ verdict }: Deferred): boolean {
  return verdict !== 'later';
}

/** What it holds is given back before long, whatever this actor does. Absent: it was only just let in. */
export function isLeaving(record: PodRecord | undefined): boolean {
  if (record === undefined) return false;
  return record.removed || Boolean(record.refusal) || Boolean(record.eviction) || record.worker?.phase === 'terminating';
}

export function byCreation(a: Pod, b: Pod): number {
  const at = a.metadata.creationTimestamp ?? '';
  const bt = b.metadata.creationTimestamp ?? '';
  return at < bt ? -1 : at > bt ? 1 : 0;
}
