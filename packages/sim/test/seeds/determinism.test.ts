/** One seed is one run: whatever the machine, the hour and the order of tests. */
import { describe, expect, it, vi } from 'vitest';
import { runSim } from '../../src/index.ts';

/** Real time, on a machine that is busy with other tests. */
vi.setConfig({ testTimeout: 120_000 });

const SMALL = { minutes: 0.15, pods: 3, restMinutesMax: 5 };

describe('a simulated run', () => {
  it('has the same trace hash, steps and schedule each time it is run', async () => {
    const first = await runSim({ seed: 17, ...SMALL });
    const again = await runSim({ seed: 17, ...SMALL });
    expect(again.hash).toBe(first.hash);
    expect(again.steps).toBe(first.steps);
    expect(again.schedule).toEqual(first.schedule);
    // And differs from a run of another seed.
    expect((await runSim({ seed: 18, ...SMALL })).hash).not.toBe(first.hash);
  });

  it('is the same for two nodes in one world, and for a schedule run again', async () => {
    const first = await runSim({ seed: 3, nodes: 2, ...SMALL });
    const again = await runSim({
      seed: 3,
      nodes: 2,
      ...SMALL,
      schedule: JSON.parse(JSON.stringify(first.schedule)) as typeof first.schedule,
    });
    expect(again.hash).toBe(first.hash);
  });
});
