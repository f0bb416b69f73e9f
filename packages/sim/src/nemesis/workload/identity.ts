/** Which nodes get certificates from their cluster, and whose API is served and asked: drawn apart from all else. */
import type { CertificateTuning, EdgeTuning } from '@actorlet/world/src/identity/identity.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../entries.ts';

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

const PAIRS = ['/var/lib/kubelet/pki/**'];
const CERTIFICATES = ['node/api/clientCertificate', 'node/api/servingCertificate'] as const;
const HTTPS = 'node/edge/https';
const REQUESTS = ['certificatesigningrequests'];
const REVIEWS = ['tokenreviews', 'subjectaccessreviews'];

/** Trouble that is aimed at pairs on disk, at requests for certificates, and at the questions about callers. */
export function identityTrouble(rng: SimRng, o: { spanMs: number; certificates: boolean; edge: boolean }, add: Add): void {
  const when = (): number => rng.next() * o.spanMs;
  const lasting = (): number => Math.round(rng.between(500, 15_000));
  const kills = (paths: readonly string[], max: number): void => {
    for (let left = rng.int(max + 1); left > 0; left--)
      add(when(), { kind: 'actor.kill', probability: 1, select: { actors: [rng.pick(paths) ?? HTTPS] }, pick: 'one' });
  };
  const calls = (resources: string[]): void =>
    add(
      when(),
      {
        kind: 'api.call',
        probability: rng.chance(0.5) ? 1 : rng.next(),
        select: { resources },
        action: rng.pick(['delay', 'error', 'lost-without-effect', 'lost-with-effect', 'late-effect'] as const) ?? 'error',
        delayMs: Math.round(rng.between(10, 8_000)),
        status: rng.pick([403, 409, 429, 500, 503] as const) ?? 500,
      },
      lasting(),
    );
  if (o.certificates) {
    const writes = { ops: ['write', 'rename', 'remove'] as const, paths: PAIRS };
    if (rng.chance(0.5)) add(when(), { kind: 'disk.error', probability: rng.next(), select: writes, code: 'EIO' }, lasting());
    if (rng.chance(0.5))
      add(when(), { kind: 'disk.error', probability: 1, select: { ops: ['read'], paths: PAIRS }, code: 'EIO' }, lasting());
    if (rng.chance(0.3)) add(when(), { kind: 'disk.full', probability: 1, select: { paths: PAIRS } }, lasting());
    if (rng.chance(0.4))
      add(when(), { kind: 'disk.slow', probability: 1, select: { paths: PAIRS }, delayMs: 50 + rng.int(3_000) }, lasting());
    for (let left = rng.int(4); left > 0; left--) {
      const action = rng.pick(['silence', 'truncate', 'close'] as const) ?? 'close';
      add(when(), { kind: 'api.watch', delayMs: 0, probability: 1, select: { resources: REQUESTS }, action }, lasting());
    }
    // Streams that are dead, and looks that fail, for as long as a renewal or two take.
    if (rng.chance(0.4))
      add(when(), { kind: 'api.watch', delayMs: 0, probability: 1, select: { resources: REQUESTS }, action: 'silence' }, 40_000);
    if (rng.chance(0.4)) {
      const select = { verbs: ['list'] as const, resources: REQUESTS };
      add(when(), { kind: 'api.call', probability: 0.7, select, action: 'error', delayMs: 0, status: 500 }, 40_000);
    }
    for (let left = rng.int(3); left > 0; left--) calls(REQUESTS);
    kills(CERTIFICATES, 3);
    if (rng.chance(0.4))
      add(when(), { kind: 'node.kill', probability: 1, select: {}, action: rng.chance(0.5) ? 'power' : 'process', downMs: 100 });
  }
  if (o.edge) {
    const given = { ops: ['read'] as const, paths: ['/etc/kubernetes/*'] };
    if (rng.chance(0.4)) add(when(), { kind: 'disk.error', probability: 1, select: given, code: 'EIO' }, 5_000 + lasting());
    for (let left = rng.int(3); left > 0; left--) calls(REVIEWS);
    kills([HTTPS], 2);
  }
}
