/** Pods of the API that name claims, and secrets with credentials for their images. */
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { CLAIMS, PULL_SECRETS } from '../../workload/objects.ts';
import type { SimObject, SimPod } from '../../workload/subjects.ts';
import type { DrawnManifest, PodDraw } from './podDraw.ts';

const CLAIMED = 0.12;
const PULLING = 0.2;
export const CLAIM_VOLUME = 'claimed';

/** `node`: name of the node whose objects it names. */
export function drawClaim(node: string): PodDraw {
  return (rng, { pod, manifest: { spec } }) => {
    if (!rng.chance(CLAIMED)) return {};
    const name = `${rng.pick(CLAIMS) ?? CLAIMS[0]}-${node}`;
    const [first] = spec.containers;
    if (first === undefined) return {};
    spec.volumes = [...(spec.volumes ?? []), { name: CLAIM_VOLUME, persistentVolumeClaim: { claimName: name } }];
    first.volumeMounts = [...(first.volumeMounts ?? []), { name: CLAIM_VOLUME, mountPath: `/${CLAIM_VOLUME}` }];
    return naming(pod, { kind: 'claim', name });
  };
}

export function drawPullSecret(node: string): PodDraw {
  return (rng: SimRng, { pod, manifest: { spec } }: { pod: SimPod; manifest: DrawnManifest }) => {
    if (!rng.chance(PULLING)) return {};
    const name = `${rng.pick(PULL_SECRETS) ?? PULL_SECRETS[0]}-${node}`;
    spec.imagePullSecrets = [{ name }];
    for (const container of spec.containers) container.imagePullPolicy = 'Always';
    return naming(pod, { kind: 'pullSecret', name });
  };
}

function naming(pod: SimPod, object: Pick<SimObject, 'kind' | 'name'>): Partial<SimPod> {
  return { objects: [...(pod.objects ?? []), object] };
}
