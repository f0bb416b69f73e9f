/** When a node collects images; half of the disk seems to be used, so that some thresholds are passed by all runs. */

import type { ImageTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import { IMAGES, LAYERS } from '@actorlet/world/src/paths.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';

export function drawImageGc(rng: SimRng): ImageTuning {
  const fits = rng.chance(0.4);
  return {
    imageGCHighThresholdPercent: fits ? 85 : (rng.pick([30, 49, 100] as const) ?? 100),
    imageGCLowThresholdPercent: fits ? 80 : (rng.pick([0, 20] as const) ?? 0),
    imageMinimumGCAge: rng.pick([0, 5_000, 120_000] as const) ?? 120_000,
    imageMaximumGCAge: rng.chance(0.3) ? 150_000 : 0,
  };
}

/** Between two looks of the eviction manager, and what it gives the collectors of containers and images. */
const SHORT_FOR_MS = 25_000;

/** The disk runs short; the runtime does not tell of images, or does not give them away. */
export function imageTrouble(rng: SimRng, o: { spanMs: number; evicts: boolean }, add: Add): void {
  if (o.evicts && rng.chance(0.6)) {
    const availableBytes = rng.int(2 * 1024 ** 3);
    add(rng.next() * o.spanMs, { kind: 'pressure.disk', probability: 1, select: {}, availableBytes }, SHORT_FOR_MS);
  }
  if (!rng.chance(0.3)) return;
  const method = rng.pick(['ImageFsInfo', 'ListImages', 'RemoveImage', 'RemoveImage'] as const) ?? 'RemoveImage';
  const action = rng.pick(['error', 'delay', 'late-effect', 'lost-without-effect'] as const) ?? 'error';
  const forMs = Math.round(rng.between(5_000, 40_000));
  // The first look comes soon after the start.
  const at = rng.chance(0.5) ? 0 : rng.next() * o.spanMs;
  const delayMs = Math.round(rng.between(100, 6_000));
  add(at, { kind: 'cri', probability: rng.chance(0.5) ? 1 : 0.5, select: { methods: [method] }, action, code: 2, delayMs }, forMs);
}

/** One of two disks runs short, and the other has room: that of images, or that of writable layers. */
export function oneDiskShort(rng: SimRng, { spanMs }: { spanMs: number }, add: Add): void {
  for (const path of [IMAGES, LAYERS]) {
    if (!rng.chance(0.8)) continue;
    const availableBytes = rng.int(2 * 1024 ** 3);
    add(rng.next() * spanMs, { kind: 'pressure.disk', probability: 1, select: { paths: [path] }, availableBytes }, SHORT_FOR_MS);
  }
}
