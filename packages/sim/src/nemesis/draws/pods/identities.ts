/** Nodes of a cluster whose pods have certificates and trust anchors in a projected volume. */
import { ANCHORS } from '@actorlet/world/src/identity/podSigner.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { PodDraw } from './podDraw.ts';

/** Of the nodes of a cluster. */
const NODES = 0.3;
const VOLUMES = 0.6;
export const IDENTITY_VOLUME = 'identity';
export const IDENTITY_FILES = { key: 'key.pem', chain: 'chain.pem', anchors: 'anchors.pem' } as const;

export function drawPodIdentities(rng: SimRng): boolean {
  return rng.chance(NODES);
}

export const drawIdentityVolume: PodDraw = (rng, { manifest: { spec } }) => {
  const [first] = spec.containers;
  if (!rng.chance(VOLUMES) || first === undefined) return {};
  const { key, chain, anchors } = IDENTITY_FILES;
  const sources = [
    { podCertificate: { signerName: 'sim.example/signer', keyType: 'ED25519', keyPath: key, certificateChainPath: chain } },
    { clusterTrustBundle: { name: ANCHORS, path: anchors } },
  ];
  spec.volumes = [...(spec.volumes ?? []), { name: IDENTITY_VOLUME, projected: { sources } }];
  first.volumeMounts = [...(first.volumeMounts ?? []), { name: IDENTITY_VOLUME, mountPath: `/${IDENTITY_VOLUME}` }];
  return {};
};
