import { describe, expect, it } from 'vitest';
import { failureReport, runSim } from '../src/index.ts';

describe('the report of a broken invariant', () => {
  it('tells the tuning of each node in full, with what has parts of its own', async () => {
    const r = await runSim({ seed: 1, minutes: 0.05, pods: 1, nodes: 1, schedule: [] });
    const [tuning] = r.tuning;
    if (tuning === undefined) throw new Error('a world of no nodes');
    const eviction = { ...tuning.eviction, evictionHard: { 'memory.available': '100Mi' } } as typeof tuning.eviction;
    const broken = {
      ...r,
      tuning: [{ ...tuning, eviction }],
      violation: { invariant: 'x', what: 'y', atSeconds: 1, phase: 'faults' as const },
    };
    const line = failureReport(broken, { drawn: 0, shrinkRuns: 0, tailLines: 0 }).find((l) => l.startsWith('n1: '));
    expect(line).toContain(`callLatencyMs=${tuning.callLatencyMs} `);
    expect(line).toContain('"evictionHard":{"memory.available":"100Mi"}');
    expect(line).not.toContain('[object');
  });
});
