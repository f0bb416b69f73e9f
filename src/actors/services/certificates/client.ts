/** The way to the API group of certificates, in the newest version that the server has of a resource. Holds which that is. */

import type { KubeFailure } from '../../../machines/kube/request.ts';
import { isRecord } from '../../../machines/shape/conform.ts';
import { type KubeClient, kubeClient } from '../../api/client.ts';
import type { ActorCtx } from '../../supervision/types.ts';

const GROUP = 'certificates.k8s.io';
const PLACE = `/apis/${GROUP}/`;
/** The first since Kubernetes 1.37. */
const VERSIONS = ['v1', 'v1beta1'] as const;

/** Paths are those of v1. */
export const certificatesPath = {
  trustBundles: `${PLACE}v1/clustertrustbundles`,
  /** Requests of all namespaces. */
  requests: `${PLACE}v1/podcertificaterequests`,
  requestsIn: (namespace: string): string => `${PLACE}v1/namespaces/${encodeURIComponent(namespace)}/podcertificaterequests`,
} as const;

/** An answer that there is no such resource sends the question once more, to the other version. */
export function certificatesClient(ctx: Pick<ActorCtx, 'ports' | 'registry' | 'signal'>): KubeClient {
  const client = kubeClient(ctx);
  let served: (typeof VERSIONS)[number] = VERSIONS[0];
  const asServed = <R extends { path: string; body?: unknown }>(request: R): R => ({
    ...request,
    path: request.path.replace(`${PLACE}v1/`, `${PLACE}${served}/`),
    ...(isRecord(request.body) ? { body: { ...request.body, apiVersion: `${GROUP}/${served}` } } : {}),
  });
  const tried = async <A extends { ok: true } | { ok: false; failure: KubeFailure }>(ask: () => Promise<A>): Promise<A> => {
    const first = await ask();
    if (first.ok || !isUnknown(first.failure)) return first;
    const before = served;
    served = VERSIONS.find((v) => v !== before) ?? before;
    const second = await ask();
    if (!second.ok && isUnknown(second.failure)) served = before;
    return second;
  };
  return {
    request: (request, o) => tried(() => client.request(asServed(request), o)),
    watch: (request, o) => tried(() => client.watch(asServed(request), o)),
  };
}

/** The server has no such resource in that version: a namespace or an object that is missing is named. */
function isUnknown({ code, message }: KubeFailure): boolean {
  return code === 404 && /could not find the requested resource|page not found/.test(message);
}
