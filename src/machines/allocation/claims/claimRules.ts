/** Whether a pod may use a ResourceClaim (KEP-4381). In the words of the reference. Pure. */

import { type Built, built, refused } from '../../result.ts';
import { isRecord } from '../../shape/conform.ts';
import { textOf } from '../../shape/lenient.ts';

/** A pod that wants to use a claim. */
export interface ClaimUser {
  uid: string;
  namespace: string;
  name: string;
  owned: boolean;
}

/** A claim of the API: its UID and the drivers that allocated something of it, once it is checked that the pod may use it. */
export function checkClaim(claim: unknown, user: ClaimUser): Built<{ uid: string; drivers: readonly string[] }> {
  if (!isRecord(claim) || !isRecord(claim.metadata)) return refused('the API server answered without a ResourceClaim');
  const { metadata } = claim;
  const [name, uid] = [textOf(metadata.name), textOf(metadata.uid)];
  if (user.owned && !records(metadata.ownerReferences).some((o) => o.uid === user.uid && o.controller === true))
    return refused(`ResourceClaim ${user.namespace}/${name} was not created for pod ${user.namespace}/${user.name} (pod is not owner)`);
  const status = isRecord(claim.status) ? claim.status : {};
  if (!records(status.reservedFor).some((r) => r.uid === user.uid))
    return refused(`pod ${user.name} (${user.uid}) is not allowed to use ResourceClaim ${name} (${uid})`);
  if (!isRecord(status.allocation)) return refused(`ResourceClaim ${name}: not allocated`);
  const devices = isRecord(status.allocation.devices) ? status.allocation.devices : {};
  const drivers = new Set(records(devices.results).map((r) => textOf(r.driver)));
  return drivers.has('') ? refused('DRA driver name is empty') : built({ uid, drivers: [...drivers].sort() });
}

function records(list: unknown): Record<string, unknown>[] {
  return Array.isArray(list) ? list.filter(isRecord) : [];
}
