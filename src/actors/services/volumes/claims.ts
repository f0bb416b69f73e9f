/** Asks the API server for claims and their volumes, each time anew: what a cache holds may be bound otherwise by now. */

import { apiView } from '../../../machines/api/messages.ts';
import { failureText, type KubeRequest, type KubeResult, kubePath } from '../../../machines/kube/request.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import { type Built, built, refused } from '../../../machines/result.ts';
import { boundClaim, type ClaimedVolume, claimedVolume, claimProblem, groupOfVolume } from '../../../machines/services/volumes/claims.ts';
import { type ClaimSizes, claimSizes } from '../../../machines/services/volumes/growth.ts';
import { partOf, textOf } from '../../../machines/shape/lenient.ts';
import { kubeClient } from '../../api/client.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** A volume that waits for an answer holds nobody else up; it is tried again. */
const CLAIM_TIMEOUT_MS = 10_000;

interface ClaimQuestion {
  pod: Pod;
  /** Its name in the pod. */
  volume: string;
  /** Name of the claim. Null: the claim that was made for this volume of this pod. */
  claim: string | null;
  readOnly: boolean;
  block: boolean;
  /** The claim, where it was read just now. */
  read?: unknown;
}
/** `uid`: of the PersistentVolume. `group`: where it names one. */
export type ClaimAnswer = ClaimedVolume & { uid: string; sizes: ClaimSizes; group?: number };
export type ClaimSource = (of: ClaimQuestion, signal: AbortSignal) => Promise<Built<ClaimAnswer>>;

export function claimSource(ctx: Pick<ActorCtx, 'ports' | 'registry' | 'signal'>, nodeName: () => string): ClaimSource {
  const get = async (path: string, signal: AbortSignal): Promise<KubeResult & { request: KubeRequest }> => {
    const request: KubeRequest = { verb: 'GET', path };
    return { ...(await kubeClient(ctx).request(request, { timeoutMs: CLAIM_TIMEOUT_MS, signal })), request };
  };
  return async ({ pod, volume, claim: named, readOnly, block, read }, signal) => {
    const { namespace } = pod.metadata;
    const name = named ?? `${pod.metadata.name}-${volume}`;
    const because = (why: string) => refused(claimProblem({ namespace, name }, why));
    let body = read;
    if (body === undefined) {
      const pvc = await get(kubePath.claim(namespace, name), signal);
      if (!pvc.ok) return because(`failed to fetch PVC from API server: ${failureText(pvc.request, pvc.failure)}`);
      body = pvc.body;
    }
    const claim = boundClaim(body, named === null ? pod : null);
    if (!claim.ok) return because(claim.message);
    const pv = await get(kubePath.persistentVolume(claim.value.volume), signal);
    if (!pv.ok) return because(`failed to fetch PV ${claim.value.volume} from API server: ${failureText(pv.request, pv.failure)}`);
    const node = { name: nodeName(), labels: ctx.registry.read(apiView.placement)?.value.labels ?? {} };
    const found = claimedVolume(pv.body, { claim: claim.value, name: volume, node, readOnly, block });
    if (!found.ok) return because(found.message);
    const group = groupOfVolume(pv.body);
    const uid = textOf(partOf(pv.body, 'metadata').uid);
    return built({ ...found.value, uid, sizes: claimSizes(body, pv.body), ...(group === null ? {} : { group }) });
  };
}
