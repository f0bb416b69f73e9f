/** Gives volumes trust anchors and certificates of pods: asks the actors beside this file. Holds nothing. */

import type { CredentialBundle, ObjectResult, ObjectSource } from '../../../machines/kube/objects.ts';
import { certificatesAddr, trustBundlesView } from '../../../machines/services/certificates/messages.ts';
import { trustAnchors } from '../../../machines/services/certificates/trustBundles.ts';
import type { Message, ReplyTo } from '../../../machines/supervision/address.ts';
import type { ActorCtx } from '../../supervision/types.ts';

/** Each is a feature gate. */
export interface ProjectionGates {
  trustBundles: boolean;
  podCertificates: boolean;
}

/** The answer is there at once; the actor may restart meanwhile. */
const ANSWER_MS = 10_000;

export function certificateSource<E extends Message>(
  { registry }: Pick<ActorCtx<E>, 'registry'>,
  gates: ProjectionGates,
): Pick<ObjectSource, 'trustAnchors' | 'podCertificate' | 'forget'> {
  return {
    async trustAnchors(query) {
      if (!gates.trustBundles) return off('a ClusterTrustBundle', 'ClusterTrustBundleProjection');
      const bundles = registry.read(trustBundlesView)?.value;
      if (bundles !== undefined) return trustAnchors(bundles, query);
      return { kind: 'failed', message: 'the ClusterTrustBundles of the cluster were not listed yet' };
    },
    async podCertificate(certificate, signal) {
      if (!gates.podCertificates) return off('a pod certificate', 'PodCertificateRequest');
      const answer = await registry.ask(
        certificatesAddr.podCertificates,
        (replyTo: ReplyTo<ObjectResult<CredentialBundle>>) => ({ type: 'certificate.get' as const, certificate, replyTo }),
        { timeoutMs: ANSWER_MS, signal },
      );
      if (answer.kind === 'reply') return answer.value;
      return { kind: 'failed', message: `nobody answered for the certificates of pods: ${answer.reason}; it is asked again` };
    },
    forget(uid) {
      if (gates.podCertificates) registry.send(certificatesAddr.podCertificates, { type: 'certificate.forget', uid });
    },
  };
}

function off(what: string, gate: string): ObjectResult<never> {
  return { kind: 'failed', message: `${what} cannot be projected on this node: its feature gate ${gate} is off` };
}
