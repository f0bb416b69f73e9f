/** Nodes whose pods have NFS volumes, of two servers. Pods share what a server exports, and on some nodes they write to it. */
import type { NetworkTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { PodDraw } from '../pods/podDraw.ts';

const NODES = 0.14;
/** Share of such nodes where every container waits for its server, and ends by no signal while that is dead. */
const WRITERS = 0.5;
/** Share of the pods of such a node. */
const VOLUMES = 0.7;
const PARTS = 0.3;
export const SERVERS = ['files-0', 'files-1'] as const;
export const NETWORK_VOLUME = 'files';

export function drawNetwork(rng: SimRng): NetworkTuning | null {
  return rng.chance(NODES) ? { writes: rng.chance(WRITERS) } : null;
}

export const drawNetworkVolume: PodDraw = (rng, { manifest: { spec } }) => {
  const [first] = spec.containers;
  if (!rng.chance(VOLUMES) || first === undefined) return {};
  const nfs = { server: rng.pick(SERVERS), path: '/e', ...(rng.chance(0.2) ? { readOnly: true } : {}) };
  const part = rng.chance(PARTS) ? { subPath: 'part' } : {};
  spec.volumes = [...(spec.volumes ?? []), { name: NETWORK_VOLUME, nfs }];
  first.volumeMounts = [...(first.volumeMounts ?? []), { name: NETWORK_VOLUME, mountPath: `/${NETWORK_VOLUME}`, ...part }];
  return {};
};
