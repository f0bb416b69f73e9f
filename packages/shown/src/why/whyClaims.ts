/** What is known of the ResourceClaims of pods: who is asked about each, and since when. Pure. */
import type { ClaimStep } from '@actorlet/kubelet/machines/allocation/claims/messages.ts';
import { type ClaimRecord, claimKey } from '@actorlet/kubelet/machines/allocation/claims/types.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { claimsOfPod } from '@actorlet/kubelet/machines/pod/resources/claims.ts';
import { shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';

export interface ClaimsKnown {
  records: ReadonlyMap<string, ClaimRecord> | undefined;
  steps: ReadonlyMap<string, readonly ClaimStep[]> | undefined;
}

/** Of one claim, by its key. */
export function claimWords(key: string, { records, steps }: ClaimsKnown, nowMs: number): string {
  const waits = (steps?.get(key) ?? []).map(({ what, sinceWallMs }) => `${what}, no answer for ${shortDuration(nowMs - sinceWallMs)}`);
  if (waits.length > 0) return waits.join('; ');
  const record = records?.get(key);
  if (record === undefined) return 'not prepared';
  const drivers = [...record.drivers.keys()].join(', ');
  const devices = [...record.drivers.values()].flat().length;
  if (devices === 0 && !record.prepared) return `recorded, not prepared by ${drivers}`;
  return `prepared by ${drivers}: ${devices} ${devices === 1 ? 'device' : 'devices'}`;
}

export function claimLines(pod: Pod, known: ClaimsKnown | undefined, nowMs: number): string[] {
  const claims = claimsOfPod(pod);
  if (known === undefined || !claims.ok || claims.value.length === 0) return claims.ok ? [] : ['Resource claims', `  ${claims.message}`];
  const { namespace } = pod.metadata;
  return ['Resource claims', ...claims.value.map(({ name }) => `  ${name}: ${claimWords(claimKey({ namespace, name }), known, nowMs)}`)];
}
