/** Nodes whose pods are waited for when their machine goes down, one in eight. */
import type { ShutdownTuning } from '@actorlet/world/src/host/logind.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';

const WAITS = 1 / 8;

export function drawShutdown(rng: SimRng): ShutdownTuning | null {
  if (!rng.chance(WAITS)) return null;
  const none = { shutdownGracePeriod: 0, shutdownGracePeriodCriticalPods: 0, shutdownGracePeriodByPodPriority: [] };
  if (rng.chance(0.5))
    return { ...none, shutdownGracePeriod: rng.pick([6_000, 30_000] as const) ?? 30_000, shutdownGracePeriodCriticalPods: 2_000 };
  return {
    ...none,
    shutdownGracePeriodByPodPriority: [
      { priority: 1_000_000, shutdownGracePeriodSeconds: 3 },
      { priority: 0, shutdownGracePeriodSeconds: rng.pick([2, 20] as const) ?? 20 },
    ],
  };
}
