/** Many seeds of one file: the first that breaks, and the fewest faults that break it. */
import { simRng } from '@actorlet/world/src/rng.ts';
import { SimTime } from '@actorlet/world/src/time.ts';
import { describe, expect, it } from 'vitest';
import { parsed } from '../../src/boot/args.ts';
import { fairClock } from '../../src/boot/seeds/fairClock.ts';
import { runSeeds } from '../../src/boot/seeds/seeds.ts';
import { decodeFleet, type FleetSpec } from '../../src/file.ts';
import { faultLine } from '../../src/proxy/faultLine.ts';
import type { FleetReport } from '../../src/run.ts';
import { apiFault } from '../../src/spec/apiFaults.ts';

const FILE = `apiVersion: actorlet.dev/v1alpha1
kind: Fleet
metadata: { name: seeds }
spec:
  groups: [{ name: a, count: 1 }]
  trouble: { userAgents: [website], count: 12, from: 1s, to: 9s }
  expect: [{ objects: { kind: Pod }, atLeast: 1, afterFaults: 5s }]
`;
const decoded = decodeFleet(FILE);
if (!decoded.ok) throw new Error('the file of this test is wrong');
const spec = decoded.value;

/** A controller that breaks where all of these faults hit it. */
function broken(by: readonly string[], o: { interruptAfter?: number } = {}) {
  const said: string[] = [];
  const judged: (number | null | undefined)[] = [];
  let runs = 0;
  const run = async (asked: FleetSpec): Promise<FleetReport | null> => {
    runs += 1;
    if (runs > (o.interruptAfter ?? Number.POSITIVE_INFINITY)) return null;
    const injected = asked.steps.flatMap((step) => ('api' in step ? [{ name: step.name, fault: step.api.fault, hits: 1 }] : []));
    const isRed = by.every((fault) => injected.some((it) => it.fault === fault));
    const [expected] = asked.expect;
    if (expected === undefined) throw new Error('nothing is expected');
    judged.push(expected.withinMs);
    const expect = [{ expected, metMs: isRed ? null : 1, decided: true, is: 0 }];
    return { expect, faults: { injected, hits: [], requests: {} } } as unknown as FleetReport;
  };
  const report = runSeeds({ spec, seeds: 50, run, nowMs: () => 0, say: (text) => void said.push(text) });
  return { report, said, judged };
}

describe('--seeds', () => {
  it('ends at the first seed that breaks, with the fewest faults, judged when the whole run was', async () => {
    const { report, said, judged } = broken(['stale-reads', 'lost-answer']);
    const { seeds, broken: found } = await report;
    expect(seeds.slice(0, -1).every(({ green }) => green)).toBe(true);
    expect(seeds.at(-1)).toMatchObject({ seed: found?.seed, green: false });
    expect(found?.faults.map(({ api }) => api.fault).sort()).toEqual(['lost-answer', 'stale-reads']);
    expect(new Set(judged.slice(seeds.length - 1)).size).toBe(1);
    // What it prints is a step of a fleet file.
    const lines = said
      .join('')
      .split('\n')
      .filter((line) => line.startsWith('  - {'));
    const again = decodeFleet(FILE.replace('  expect:', `  steps:\n${lines.map((line) => `  ${line}`).join('\n')}\n  expect:`));
    if (!again.ok) throw new Error(JSON.stringify(again.errors));
    expect(again.value.steps.flatMap((step) => ('api' in step ? [`  - ${faultLine(step)}`] : []))).toEqual(lines);
  });

  it('says that a seed breaks without any fault, that all are green, and stops when it is interrupted', async () => {
    const always = broken([]);
    expect((await always.report).broken).toMatchObject({ seed: 1, faults: [], runs: 1 });
    expect(always.said.join('')).toContain('the faults are not to blame');
    const green = await broken(['none']).report;
    expect({ count: green.seeds.length, broken: green.broken }).toEqual({ count: 50, broken: null });
    expect(await broken(['none'], { interruptAfter: 3 }).report).toMatchObject({ broken: null, interrupted: true });
    expect(await broken(['slow'], { interruptAfter: 2 }).report).toMatchObject({ broken: null, interrupted: true });
  });

  it('takes the command of a controller behind --, and refuses what has no sense with many runs', async () => {
    const args = await parsed(['a.yaml', '--api=embedded', '--seeds=50', '--', 'node', 'controller.ts', '--verbose']);
    expect(args).toMatchObject({ file: 'a.yaml', seeds: 50, controller: ['node', 'controller.ts', '--verbose'] });
    for (const [argv, why] of [
      [['--nodes=1', '--api=embedded', '--seeds=5'], '--seeds: needs a FILE'],
      [['a.yaml', '--kubeconfig=/k', '--seeds=5'], 'each seed begins on a new API server'],
      [['a.yaml', '--api=embedded', '--seeds=5', '--page=8080'], 'with --seeds there are many runs'],
      [['a.yaml', '--api=embedded', '--seeds=-1'], '--seeds must be a whole number from 0'],
      [['a.yaml', '--api=embedded', '--'], 'behind -- stands the command'],
    ] as const)
      await expect(parsed(argv)).rejects.toThrow(why);
  });
});

it('the clock of a run does not count the time for which its processes waited for a processor', async () => {
  const time = new SimTime(simRng('fair'));
  let waited = 0;
  const clock = fairClock(time.clockFor({ on: true }), () => waited);
  const fired: number[] = [];
  clock.setTimeout(() => fired.push(time.monoMs), 2_000);
  clock.clearTimeout(clock.setTimeout(() => fired.push(-1), 500));
  const fromMs = time.monoMs;
  // They wait three quarters of the first two seconds, and then not at all.
  for (let ms = 100; ms <= 2_000; ms += 100) {
    while (await time.step(fromMs + ms));
    waited += 75;
  }
  expect(clock.monoMs()).toBeCloseTo(575, -2);
  while (await time.step(fromMs + 10_000));
  expect(fired).toHaveLength(1);
  expect((fired[0] ?? 0) - fromMs).toBeGreaterThan(3_400);
  expect((fired[0] ?? 0) - fromMs).toBeLessThan(3_700);
});

it('a fault is written as a step with what is not its default', () => {
  const api = apiFault('stale-reads', {
    select: { userAgents: ['website'], resources: ['deployments.apps', 'pods*'] },
    ageMs: 1_500,
    times: 2,
  });
  expect(faultLine({ atMs: 3_000, do: 'inject', name: 'x', api })).toBe(
    '{ at: 4.5s, do: inject, api: { fault: stale-reads, userAgents: [website], resources: [deployments.apps, "pods*"], for: 10s, times: 2, age: 1.5s } }',
  );
});
