/** Scenarios in the simulation: each example runs and hits what it aims at, and what a fault says is what happens. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeScenario, scenarioErrorText } from '@actorlet/faults/src/read/decode.ts';
import type { Scenario } from '@actorlet/faults/src/types.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import { describe, expect, vi } from 'vitest';
import { inTurn } from '../../../test/rotation.ts';
import { runSim, type SimOptions, type SimResult } from '../src/index.ts';
import { drawSize } from '../src/nemesis/draw.ts';

const examples = join(import.meta.dirname, '../../../examples/scenarios');
vi.setConfig({ testTimeout: 120_000 });
const it = inTurn('scenarios in the simulation', 2);

function read(text: string): Scenario {
  const decoded = decodeScenario(text, 'simulation');
  if (!decoded.ok) throw new Error(decoded.errors.map((e) => scenarioErrorText('f', e)).join('\n'));
  return decoded.scenario;
}
const POD =
  '{apiVersion: v1, kind: Pod, metadata: {name: NAME}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: i}]}}';
/** Pod `web` from the beginning, pod `db` after 10 s, `web` gone after 20 s. */
const WORKLOAD = `  simulation:
    workload:
    - {kind: pod.put, manifest: ${POD.replace('NAME', 'web')}}
    - {at: 10s, kind: pod.put, manifest: ${POD.replace('NAME', 'db')}}
    - {at: 20s, kind: pod.remove, name: web}
`;
function run(faults: string, o: Partial<SimOptions> = {}): Promise<SimResult> {
  const scenario = read(
    `apiVersion: actorlet.dev/v1alpha1\nkind: FaultScenario\nmetadata: {name: t}\nspec:\n  duration: 40s\n  faults:\n${faults}${WORKLOAD}`,
  );
  return runSim({ seed: 1, restMinutesMax: 5, ...o, scenario });
}

describe('the examples', () => {
  for (const file of readdirSync(examples).filter((f) => f.endsWith('.yaml'))) {
    it(`${file} breaks no invariant, and each of its faults hits something`, async () => {
      const scenario = read(readFileSync(join(examples, file), 'utf8'));
      const hits = new Map<string, number>();
      for (const seed of [1, 2, 3]) {
        const r = await runSim({ seed, scenario });
        expect(r.violation, JSON.stringify(r.violation)).toBeNull();
        expect([...r.byName.keys()]).toEqual(scenario.faults.map((f) => f.name));
        for (const [name, n] of r.byName) hits.set(name, (hits.get(name) ?? 0) + n);
        if ([...hits.values()].every((n) => n > 0)) break;
      }
      expect([...hits].filter(([, n]) => n === 0)).toEqual([]);
    });
  }
});

describe('a fault of a scenario', () => {
  it('hits only the pods and methods it names, as often as it may', async () => {
    const r = await run(
      [
        '  - {name: web, kind: cri, action: error, code: Internal, times: 2, select: {methods: [StartContainer], pods: [web-*]}}',
        '  - {name: db, kind: cri, action: delay, delay: 3s, select: {methods: [CreateContainer], pods: [db-n1], containers: [c]}}',
        '  - {name: nobody, kind: cri, action: error, select: {pods: [other-*]}}',
        '  - {name: elsewhere, kind: runtime.down, nodes: [n7]}',
        '',
      ].join('\n'),
    );
    expect(r.violation).toBeNull();
    expect([...r.byName]).toEqual([
      ['web', 2],
      ['db', 1],
      ['nobody', 0],
      ['elsewhere', 0],
    ]);
    expect(r.faults.get('cri.error')).toBe(2);
    // Who was refused failed to start, and was started again.
    expect(r.tail.log.filter((l) => l.includes('injected failure')).length).toBeGreaterThan(0);
  });

  it('kills actors by path and by pod, one or all', async () => {
    const r = await run(
      [
        '  - {name: worker, kind: actor.kill, at: 12s, select: {actors: [pods/workers/*], pods: [db-*]}}',
        '  - {name: both, kind: actor.kill, at: 15s, pick: all, select: {actors: [pods/workers/*]}}',
        '  - {name: nobody, kind: actor.kill, at: 15s, select: {actors: [no/such]}}',
        '',
      ].join('\n'),
    );
    expect(r.violation).toBeNull();
    expect([...r.byName]).toEqual([
      ['worker', 1],
      ['both', 2],
      ['nobody', 0],
    ]);
    expect(r.faults.get('actor.kill')).toBe(3);
  });

  it('that loses what is said only once breaks an invariant, which names what is stuck', async () => {
    const r = await run('  - {name: lost-kill, kind: mailbox, action: drop, select: {events: [pod.kill]}}\n');
    expect(r.violation).toMatchObject({ invariant: 'comes-to-rest', what: expect.stringContaining('pod web-n1') });
    expect(r.byName.get('lost-kill')).toBe(1);
  });

  it('that loses only what is found again by looking breaks none', async () => {
    const r = await run('  - {name: marks, kind: mailbox, action: drop, select: {events: [pod.dirty, pods.dirty]}}\n');
    expect(r.violation).toBeNull();
    expect(r.byName.get('marks')).toBeGreaterThan(0);
  });

  it('of short memory is felt by the eviction manager, and does no more than the invariants allow', async () => {
    const r = await run('  - {name: memory, kind: pressure.memory, available: 10Mi}\n');
    expect(r.violation).toBeNull();
    expect(r.byName.get('memory')).toBeGreaterThan(0);
  });

  it('comes out the same each time it is run with one seed, and its chances differ between seeds', async () => {
    const faults = '  - {name: some, kind: cri, action: error, probability: 0.5, for: 30s}\n';
    const [first, again, other] = [await run(faults), await run(faults), await run(faults, { seed: 2 })];
    expect(again.hash).toBe(first.hash);
    expect(other.hash).not.toBe(first.hash);
    // A schedule that came from a scenario is plain data like any other.
    const given = await run(faults, { schedule: JSON.parse(JSON.stringify(first.schedule)) as typeof first.schedule });
    expect(given.hash).toBe(first.hash);
  });
});

it('the world of a run that was not told otherwise has two nodes in some seeds, and the same run when it is told what it would have drawn', async () => {
  const small = { minutes: 0.05, pods: 1, restMinutesMax: 5 };
  const nodes = (seed: number) => drawSize(simRng(`seed ${seed}`).fork('size'), { seed }).nodes;
  const seeds = Array.from({ length: 25 }, (_, i) => i + 1);
  const two = seeds.filter((seed) => nodes(seed) === 2);
  expect(two.length).toBeGreaterThan(0);
  expect(two.length).toBeLessThan(13);
  const one = await runSim({ seed: two[0] ?? 0, ...small });
  expect(one.options.nodes).toBe(2);
  expect((await runSim(one.options)).hash).toBe(one.hash);
});
