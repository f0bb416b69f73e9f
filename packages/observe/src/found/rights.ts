/** Which reads an observer is forbidden: asked for objects that are not there, so that nothing is read by it. */
import { certificatesPath } from '@actorlet/kubelet/actors/services/certificates/client.ts';
import { kubePath } from '@actorlet/kubelet/machines/kube/request.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';

/** The name of no object. */
const NAME = 'actorlet-observe-asks-whether-it-may';
const NAMESPACE = 'default';
const CALL_MS = 5_000;
const FORBIDDEN = 403;

const PLACES: readonly { what: string; path: string; query?: Record<string, string> }[] = [
  { what: 'pods', path: kubePath.pod(NAMESPACE, NAME) },
  // They are listed, and never read one by one.
  { what: 'services, which are variables of pods', path: kubePath.services, query: { fieldSelector: `metadata.name=${NAME}` } },
  { what: 'ConfigMaps that pods name', path: kubePath.configMap(NAMESPACE, NAME) },
  { what: 'Secrets that pods name', path: kubePath.secret(NAMESPACE, NAME) },
  { what: 'service accounts of pods', path: kubePath.serviceAccount(NAMESPACE, NAME) },
  { what: 'claims of volumes', path: kubePath.claim(NAMESPACE, NAME) },
  { what: 'persistent volumes', path: kubePath.persistentVolume(NAME) },
  { what: 'attachments of volumes', path: kubePath.volumeAttachment(NAME) },
  { what: 'CSI drivers', path: kubePath.csiDriver(NAME) },
  { what: 'the CSI drivers of the node', path: kubePath.csiNode(NAME) },
  { what: 'runtime classes', path: kubePath.runtimeClass(NAME) },
  { what: 'ResourceClaims', path: kubePath.resourceClaim(NAMESPACE, NAME) },
  { what: 'bundles of trust anchors', path: `${certificatesPath.trustBundles}/${NAME}` },
  { what: 'requests of certificates for pods', path: `${certificatesPath.requestsIn(NAMESPACE)}/${NAME}` },
  { what: 'the lease of the node', path: kubePath.lease('kube-node-lease', NAME) },
];

/** One line for each kind that may not be read. A server that does not answer is no refusal. */
export async function forbiddenReads(api: KubeApi, signal: AbortSignal): Promise<string[]> {
  const answers = await Promise.all(
    PLACES.map(({ path, query = {} }) => api.request({ verb: 'GET', path, query }, { timeoutMs: CALL_MS, signal })),
  );
  return PLACES.flatMap(({ what }, i) => {
    const answer = answers[i];
    if (answer === undefined || answer.ok || answer.failure.code !== FORBIDDEN) return [];
    return [`cannot see ${what}, because ${answer.failure.message}`];
  });
}
