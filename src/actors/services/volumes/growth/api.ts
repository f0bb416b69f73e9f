/** What growth asks of the API, and writes there. */

import { failureText, type KubeRequest, kubePath } from '../../../../machines/kube/request.ts';
import { kubeClient } from '../../../api/client.ts';
import type { ActorCtx } from '../../../supervision/types.ts';

const TIMEOUT_MS = 10_000;

/** Each rejects with what failed. */
export interface GrowthApi {
  claim(namespace: string, name: string, signal: AbortSignal): Promise<unknown>;
  volume(name: string, signal: AbortSignal): Promise<unknown>;
  /** Patches the status of a claim; the claim as it is then. */
  patchStatus(claim: { namespace: string; name: string }, body: object, signal: AbortSignal): Promise<unknown>;
}

export function growthApi(ctx: Pick<ActorCtx, 'ports' | 'registry' | 'signal'>): GrowthApi {
  const ask = async (request: KubeRequest, signal: AbortSignal): Promise<unknown> => {
    const answer = await kubeClient(ctx).request(request, { timeoutMs: TIMEOUT_MS, signal });
    if (!answer.ok) throw new Error(failureText(request, answer.failure));
    return answer.body;
  };
  return {
    claim: (namespace, name, signal) => ask({ verb: 'GET', path: kubePath.claim(namespace, name) }, signal),
    volume: (name, signal) => ask({ verb: 'GET', path: kubePath.persistentVolume(name) }, signal),
    patchStatus: ({ namespace, name }, body, signal) =>
      ask({ verb: 'PATCH', path: `${kubePath.claim(namespace, name)}/status`, body, patchType: 'strategic' }, signal),
  };
}
