/** Memory that runs short, and a runtime that does not say what containers use. */

import { LIMITS_EVERY_MS } from '@actorlet/kubelet/machines/reclaim/eviction/evictionMachine.ts';
import type { CriMethod } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';

/**
 * Memory runs short, by a little or by much, for as long as a few looks of the eviction manager; at times its question
 * about usage is not answered well, or its victim is slow to stop.
 */
export function shortages(rng: SimRng, o: { spanMs: number }, add: Add): void {
  for (let i = rng.int(4); i > 0; i--) {
    const availableBytes = rng.int(rng.chance(0.5) ? 100 * MIB : 400 * MIB);
    const at = rng.next() * o.spanMs;
    const forMs = Math.round(rng.between(1_000, 40_000));
    add(at, { kind: 'pressure.memory', probability: 1, select: {}, availableBytes }, forMs);
    const hinder = (method: CriMethod, action: 'error' | 'delay', delayMs: number): void =>
      add(at, { kind: 'cri', probability: 1, select: { methods: [method] }, action, code: 2, delayMs }, forMs);
    if (rng.chance(0.2)) hinder('ListContainerStats', 'error', 0);
    else if (rng.chance(0.3)) hinder('ListContainerStats', 'delay', 9_000);
    if (rng.chance(0.15)) hinder('StopContainer', 'delay', 40_000);
  }
}
const MIB = 1024 ** 2;

/** The runtime does not say what containers wrote, for longer than it is between two looks at that. */
export function untold(rng: SimRng, o: { spanMs: number }, add: Add): void {
  if (!rng.chance(0.2)) return;
  const select = { methods: ['ListContainerStats'] as const };
  add(rng.next() * 0.3 * o.spanMs, { kind: 'cri', probability: 1, select, action: 'error', code: 13, delayMs: 0 }, LIMITS_EVERY_MS + 5_000);
}
