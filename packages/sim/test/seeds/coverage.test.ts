/** Edges are counted as the charts define them, and counting changes nothing of a run. */
import { describe, expect, it } from 'vitest';
import { coverageOf, runSim } from '../../src/index.ts';

const SMALL = { seed: 3, minutes: 0.3, pods: 3, nodes: 1, restMinutesMax: 10 };

describe('coverage', () => {
  it('names every machine of the tree with all its edges, and those taken', async () => {
    const { coverage, violation } = await runSim({ ...SMALL, coverage: true });
    expect(violation).toBeNull();
    const machines = new Map(coverageOf(coverage ?? {}).map((m) => [m.machine, m]));
    for (const id of ['supervisor', 'podWorker', 'container', 'criLink', 'pleg', 'fileSource', 'sweeper', 'server']) {
      expect(machines.get(id)?.taken, id).toBeGreaterThan(0);
      expect(machines.get(id)?.total, id).toBeGreaterThanOrEqual(machines.get(id)?.taken ?? 0);
    }
    expect(coverage?.supervisor?.['starting -> running on always #2']).toBeGreaterThan(0);
    expect(coverage?.podWorker?.['fencing -> syncing on done(fence) #2']).toBeGreaterThan(0);
    // What no seed this small does is listed all the same.
    expect(coverage?.supervisor?.['parked -> starting on after parkMs']).toBe(0);
  }, 120_000);

  it('leaves the trace of a run as it is', async () => {
    const counted = await runSim({ ...SMALL, coverage: true });
    const plain = await runSim(SMALL);
    expect(counted.hash).toBe(plain.hash);
    expect(plain.coverage).toBeNull();
  }, 120_000);
});
