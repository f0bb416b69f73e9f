/** What is asked about certificates of pods, and what is published of them and of the cluster's trust anchors; absent in standalone mode. */

import type { ApiFound } from '../../api/messages.ts';
import type { CredentialBundle, ObjectResult, PodCertificate } from '../../kube/objects.ts';
import type { KubeObject } from '../../kube/request.ts';
import { type Address, address, type Message, type ReplyTo, viewKey } from '../../supervision/address.ts';
import type { TrustBundle } from './trustBundles.ts';

export type PodCertificatesEvent = Message &
  (
    | { type: 'certificate.get'; certificate: PodCertificate; replyTo: ReplyTo<ObjectResult<CredentialBundle>> }
    /** The pod is gone, and its certificates with it. */
    | { type: 'certificate.forget'; uid: string }
    /** Something became of requests. `gone`: `NAMESPACE/NAME` of those that were removed. */
    | { type: 'requests.changed'; gone: readonly string[] }
  );

export const certificatesAddr = {
  podCertificates: address<PodCertificatesEvent>('node/services/podCertificates'),
  certificateRequests: address<ApiFound>('node/services/certificateRequests'),
  trustBundles: address<ApiFound>('node/services/trustBundles'),
} as const satisfies Record<string, Address<never>>;

/** By `NAMESPACE/NAME`: this node's requests for certificates of pods. Published once a complete list was received. */
export const certificateRequestsView = viewKey<ReadonlyMap<string, KubeObject>>('podCertificateRequests');
export const trustBundlesView = viewKey<readonly TrustBundle[]>('clusterTrustBundles');
