/** Faults that come again and again: actors that die often, sandboxes that are stopped, containers that are removed. */
import { MANIFESTS, ROOT_DIR } from '@actorlet/world/src/paths.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../entries.ts';

/** Actors that die again and again until their supervisors give up, some of them within one call of somebody. */
const OFTEN_KILLED = [
  'node/edge/admin',
  'node/edge/healthz',
  'node/runtime/cri',
  'node/runtime/cri',
  'node/runtime/pleg',
  'node/pods/podManager',
  'node/pods/config',
  'node/pods/sources/file',
  'node/reclaim/containerGc',
] as const;

/** One thing that goes wrong over and over: what a single blow leaves standing gives up, calms down or waits. */
export function bursts(rng: SimRng, o: { spanMs: number }, add: Add): void {
  if (rng.chance(0.25)) {
    const path = rng.pick(OFTEN_KILLED) ?? 'node/runtime/cri';
    const count = path.startsWith('node/edge/') ? 30 : 4 + rng.int(12);
    let at = rng.next() * o.spanMs * 0.6;
    for (let i = 0; i < count; i++) {
      add(at, { kind: 'actor.kill', probability: 1, select: { actors: [path] }, pick: 'one' });
      at += rng.between(50, 2_500);
    }
  }
  if (rng.chance(0.1)) {
    let at = rng.next() * o.spanMs * 0.4;
    for (let i = 0; i < 40; i++) {
      add(at, { kind: 'sandbox.stop', probability: 1, select: {} });
      at += rng.between(100, 900);
    }
  }
  if (rng.chance(0.15)) {
    const forMs = Math.round(rng.between(1_000, 30_000));
    const at = rng.next() * o.spanMs;
    const path = rng.pick([MANIFESTS, MANIFESTS, `${ROOT_DIR}/pods`] as const) ?? MANIFESTS;
    add(at, { kind: 'disk.error', probability: 1, select: { ops: ['read'], paths: [path] }, code: 'EACCES' }, forMs);
    if (rng.chance(0.5)) add(at + 50, { kind: 'node.kill', probability: 1, select: {}, action: 'process', downMs: 100 });
  }
}

/** A user tidies up in the runtime: a container is gone, and its name is free again for what was asked for before. */
export function removals(rng: SimRng, o: { spanMs: number }, add: Add): void {
  if (!rng.chance(0.2)) return;
  for (let left = 1 + rng.int(3); left > 0; left--) add(rng.next() * o.spanMs, { kind: 'container.remove', probability: 1, select: {} });
}
