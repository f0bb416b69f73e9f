/** Meetings of things that seldom meet, each brought about on purpose, and trouble around objects of the API. */
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { objectLines, objectTrouble } from '../workload/objects.ts';
import { type Attack, beats, CHANCE } from './attack.ts';

type AttackOf = (f: Attack, at: number) => void;

const VOLUMES = [`${ROOT_DIR}/pods/*/volumes/**`, `${ROOT_DIR}/pods/*/plugins/**`];

/**
 * A pod that comes back while what it left is being taken down: it ended and went while no daemon was there, so that
 * nobody but the volume manager minds its volumes.
 */
const returning: AttackOf = (f, at) => {
  f.begin(at - 8_000, { full: true });
  f.die(at, 3_000);
  f.remove(at + 300);
  for (const t of beats(f.rng, { from: at + 400, count: 3, everyMs: 400 })) f.stopSandbox(t);
  const slow = f.rng.chance(0.7);
  if (slow) f.add(at, { kind: 'disk.slow', ...CHANCE, select: { ops: ['remove'], paths: VOLUMES }, delayMs: 6_000 }, 25_000);
  if (!slow || f.rng.chance(0.6)) f.disk(at, 25_000, { ops: ['remove'], paths: VOLUMES, probability: f.rng.pick([0.5, 1] as const) ?? 1 });
  let t = at + 3_000 + f.rng.between(1_500, 8_000);
  for (let i = 0; i < 3; i++) {
    f.begin(t, { full: true });
    f.remove(t + f.rng.between(20, 300));
    t += f.rng.between(800, 3_000);
  }
};

/** Ends of containers that nobody knows: more than are asked about one by one, while somebody wants a listing. */
const unknownEnds: AttackOf = (f, at) => {
  f.begin(at - 5_000);
  for (const t of beats(f.rng, { from: at, count: 12, everyMs: 1_500 })) f.add(t, { kind: 'ask.unknown' });
};

/** Images that come slowly, of pods that are given others meanwhile. */
const slowImages: AttackOf = (f, at) => {
  const pulls = { methods: ['PullImage', 'ImageStatus'] as const };
  f.add(at - 6_000, { kind: 'cri', ...CHANCE, select: pulls, action: 'delay', delayMs: 3_500, code: 13 }, 25_000);
  f.begin(at - 5_000, f.rng.chance(0.5) ? { fate: 'loops' } : {});
  for (const t of beats(f.rng, { from: at - 4_000, count: 12, everyMs: 2_000 })) f.edit(t);
  for (const t of beats(f.rng, { from: at, count: 4, everyMs: 3_000 })) f.stopSandbox(t);
  f.end(at + f.rng.between(10_000, 18_000));
};

/** The more often one stands here, the more of its aims one shot misses. */
export const RARE_ATTACKS: readonly AttackOf[] = [returning, returning, returning, unknownEnds, slowImages];

/** A pod that names objects in every way there is, while they come and go, cannot be had, and cannot be written. */
export const OBJECT_ATTACK: AttackOf = (f, at) => {
  f.begin(at + f.rng.between(-6_000, 2_000), { inApi: true });
  const lines = objectLines(f.rng, { node: f.node, add: (t, a, forMs) => f.add(t, a, forMs) });
  for (const line of lines) {
    // Revisions of its own: these objects change elsewhere too.
    for (const t of beats(f.rng, { from: at, count: 6, everyMs: 4_000 })) {
      if (f.rng.chance(0.7)) line.put(t);
      else {
        line.remove(t);
        line.put(t + f.rng.between(100, 4_000));
      }
    }
  }
  for (const t of beats(f.rng, { from: at, count: 2, everyMs: 7_000 }))
    f.add(t, objectTrouble(f.rng), Math.round(f.rng.between(500, 5_000)));
  if (f.rng.chance(0.6)) f.disk(at + 1_000, 9_000, { ops: ['write', 'rename'], paths: VOLUMES, probability: f.rng.between(0.2, 1) });
  if (f.rng.chance(0.5)) f.add(at, { kind: 'disk.slow', ...CHANCE, select: { paths: VOLUMES }, delayMs: f.rng.int(4_000) }, 15_000);
  const actor = f.rng.pick(['objects', 'tokens', 'volumes'] as const) ?? 'objects';
  for (const t of beats(f.rng, { from: at + 1_000, count: 3, everyMs: 6_000 })) f.kill(t, `node/services/${actor}`);
  for (const t of beats(f.rng, { from: at + 2_000, count: 2, everyMs: 8_000 })) f.stopSandbox(t);
  if (f.rng.chance(0.5)) f.remove(at + f.rng.between(4_000, 15_000));
};
