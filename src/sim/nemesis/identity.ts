/** Which nodes get certificates from their cluster, and whose API is served and asked: drawn apart from all else. */
import type { CertificateTuning, EdgeTuning } from '../world/identity.ts';
import type { SimRng } from '../world/rng.ts';

/** How often a node's API is served. */
const SERVES = { cluster: 0.5, alone: 0.15 } as const;
const CERTIFIED = 0.5;

export function drawIdentity(rng: SimRng, cluster: boolean): { certificates: CertificateTuning | null; edge: EdgeTuning | null } {
  const edge = drawEdge(rng.fork('edge'), cluster);
  return { edge, certificates: cluster ? drawCertificates(rng.fork('certificates'), edge !== null) : null };
}

function drawEdge(rng: SimRng, cluster: boolean): EdgeTuning | null {
  if (!rng.chance(cluster ? SERVES.cluster : SERVES.alone)) return null;
  return {
    // Nobody can be asked where there is no cluster.
    authorization: cluster && rng.chance(0.9) ? 'Webhook' : 'AlwaysAllow',
    anonymous: rng.chance(0.2),
    cacheMs: rng.pick([0, 1_000, 30_000] as const) ?? 0,
    everyMs: rng.pick([400, 2_000, 6_000] as const) ?? 2_000,
  };
}

function drawCertificates(rng: SimRng, serves: boolean): CertificateTuning | null {
  if (!rng.chance(CERTIFIED)) return null;
  return {
    client: rng.chance(0.85) ? 'kept' : 'as-given',
    serving: serves && rng.chance(0.8),
    rotate: rng.chance(0.9),
    begins: rng.pick(['none', 'none', 'held', 'held', 'ended', 'older', 'torn', 'halfway'] as const) ?? 'none',
    renewNow: rng.chance(0.2),
    lifeMs: rng.pick([30_000, 45_000, 90_000, 600_000] as const) ?? 90_000,
  };
}
