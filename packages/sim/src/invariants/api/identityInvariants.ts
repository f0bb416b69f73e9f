/** Invariants about certificates and trust anchors of pods: a container sees a whole pair at any time, and in the end one that is good. */

import { ANCHORS, anchorsIn, publicOfPodKey, readPodCertificate } from '@actorlet/world/src/identity/podSigner.ts';
import type { SimKube } from '@actorlet/world/src/kube/types.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { IDENTITY_FILES, IDENTITY_VOLUME } from '../../nemesis/draws/pods/identities.ts';
import type { Checker } from '../checker.ts';
import { filesOf, objectVolumes } from './objectFiles.ts';

const VOLUME = { plugin: 'kubernetes.io~projected', name: IDENTITY_VOLUME } as const;
const filesIn = (node: SimNode, uid: string) => filesOf(node, VOLUME, { uid, named: true });

/** A key without its certificate, or anchors of two versions; '' where all is well. */
function torn(files: ReadonlyMap<string, string>): string {
  const [key = '', chain = '', anchors = ''] = [IDENTITY_FILES.key, IDENTITY_FILES.chain, IDENTITY_FILES.anchors].map((f) => files.get(f));
  const certificate = readPodCertificate(chain);
  if (certificate === null) return `${IDENTITY_FILES.chain} holds no certificate`;
  if (certificate.publicKey !== publicOfPodKey(key)) return 'the key and the certificate do not belong together';
  return anchorsIn(anchors) < 0 ? `${IDENTITY_FILES.anchors} is not one version of the anchors` : '';
}

/** Files are exchanged all at once: a reader finds a whole pair, from a container's first moment to its last. */
export function identitiesAreWhole(): Checker {
  return {
    name: 'identities-are-whole',
    beat({ node, operator }) {
      if (!node.tuning.podIdentities) return undefined;
      const running = new Set(
        node.runtime.hollow.dump().containers.flatMap((c) => (c.state === 'CONTAINER_RUNNING' && c.name === 'c0' ? [c.podUid] : [])),
      );
      for (const { source, pod } of operator.wanted.values()) {
        const uid = pod.uid ?? '';
        if (source !== 'api' || !running.has(uid) || !objectVolumes(pod.manifest).some((v) => v.name === IDENTITY_VOLUME)) continue;
        const files = filesIn(node, uid);
        // A power failure takes memory away, and leaves containers here.
        if (files === undefined && node.lostPower) continue;
        const why = files === undefined ? 'its volume is not there' : torn(files);
        if (why !== '') return `${node.name}: pod ${pod.name} (${uid}) runs, and ${why}`;
      }
      return undefined;
    },
  };
}

/** How the identity of a pod at rest differs from what it should be. */
export function identityUnsettled(node: SimNode, kube: SimKube, { uid, manifest }: { uid: string; manifest: object }): string[] {
  if (!objectVolumes(manifest).some((v) => v.name === IDENTITY_VOLUME)) return [];
  const files = filesIn(node, uid);
  if (files === undefined) return [];
  const found: string[] = [];
  const certificate = readPodCertificate(files.get(IDENTITY_FILES.chain) ?? '');
  if (certificate === null || certificate.notAfterMs <= kube.wallMs()) found.push('its certificate has ended, or is none');
  const bundle = kube.store.list('clustertrustbundles').find((o) => o.metadata.name === ANCHORS);
  const wanted = (bundle?.spec as { trustBundle?: string } | undefined)?.trustBundle ?? '';
  if (anchorsIn(files.get(IDENTITY_FILES.anchors) ?? '') !== anchorsIn(wanted)) found.push('its trust anchors are not the newest');
  return found;
}
