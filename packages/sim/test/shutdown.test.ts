/** Machines that go down in the simulation: what is drawn for them, and that the invariants about them bite. */

import { SimLogind } from '@actorlet/world/src/host/logind.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { describe, expect, it, vi } from 'vitest';
import { virtualTime } from '../../../test/integration/virtualTime.ts';
import { rotating } from '../../../test/rotation.ts';
import { runSim } from '../src/index.ts';
import { drawShutdown } from '../src/nemesis/draws/node/shutdown.ts';
import { shutdownTrouble } from '../src/nemesis/trouble/shutdownTrouble.ts';

vi.setConfig({ testTimeout: 120_000 });

describe('a machine that goes down', () => {
  it('is waited for on one node in eight, drawn apart from everything else', () => {
    const drawn = Array.from({ length: 400 }, (_, seed) => drawShutdown(simRng(`n ${seed}`)));
    const some = drawn.filter((d) => d !== null);
    expect(some.length).toBeGreaterThan(30);
    expect(some.length).toBeLessThan(80);
    expect(some.some((d) => d.shutdownGracePeriod > 0)).toBe(true);
    expect(some.some((d) => d.shutdownGracePeriodByPodPriority.length > 0)).toBe(true);
  });

  it('goes down, is cancelled, loses its daemon, its bus and its lock in the middle, and is as before when all heals', async () => {
    const time = virtualTime();
    const logind = new SimLogind(time.clock);
    const seen: string[] = [];
    const node = { logind, kill: (how: string) => void seen.push(`kill ${how}`), boot: () => void seen.push('boot') } as unknown as SimNode;
    const { clock } = time;
    const halt = (): void => void seen.push('halt');
    const trouble = shutdownTrouble({ node, rng: simRng('trouble'), clock, halt, on: (what) => void seen.push(what) });
    trouble.begin();
    await time.advance(3_600_000);
    for (const what of [
      'down',
      'cancelled',
      'crash',
      'away',
      'slow',
      'restart',
      'broken',
      'the machine is down',
      'kill power',
      'kill process',
    ])
      expect(seen).toContain(what);
    expect(seen.filter((what) => what === 'halt')).toHaveLength(seen.filter((what) => what === 'kill power').length);
    trouble.heal();
    await time.advance(60_000);
    expect(logind).toMatchObject({ reachable: true, otherLock: false, shuttingDown: false, callMs: 5 });
  });

  // Each with a cluster or without, cancelled shutdowns, power cycles and a daemon that dies in the middle.
  it.each(rotating('seeds of shutdowns', [4, 32, 310], 3))('holds every invariant in seed %i', async (seed) => {
    const r = await runSim({ seed, minutes: 1 });
    expect(r.tuning.some((t) => t.shutdown !== null)).toBe(true);
    expect(r.violation, JSON.stringify(r.violation)).toBeNull();
  });
});
