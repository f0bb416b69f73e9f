/** Config maps, secrets and tokens in the simulation: they reach containers, and a world in which they come and go breaks no invariant. */

import { drawTuning, type Fault, runSim } from '@actorlet/sim/src/index.ts';
import { filesFrom, objectVolumes } from '@actorlet/sim/src/invariants/api/objectFiles.ts';
import type { WorkloadAct } from '@actorlet/sim/src/nemesis/faults.ts';
import { dataOf, nameObjects } from '@actorlet/sim/src/nemesis/workload/objects.ts';
import { drawPod } from '@actorlet/sim/src/nemesis/workload/pods.ts';
import type { SimObject } from '@actorlet/sim/src/nemesis/workload/subjects.ts';
import { expect, it } from 'vitest';
import { inTurn } from '../../../test/rotation.ts';
import { simRng } from '../src/rng.ts';

/** The first seed whose only node belongs to a cluster and hears of objects in this way. */
function seedWith(objects: 'Watch' | 'Cache' | 'Get'): number {
  for (let seed = 1; seed < 1_000; seed++) {
    const tuning = drawTuning(simRng(`seed ${seed}`).fork('n0').fork('tuning'));
    if (tuning.api && tuning.objects === objects && !tuning.oneManifest) return seed;
  }
  throw new Error(`no seed has a node with ${objects}`);
}
const runs = inTurn('objects that change', 2);
const pod = (): ReturnType<typeof drawPod> => {
  for (let i = 0; ; i++) {
    const drawn = drawPod(simRng(`pod ${i}`), { name: 'web', rev: 0 });
    if (drawn.fate === 'steady') return nameObjects(simRng('objects'), drawn, { node: 0, always: true });
  }
};
const NAMES = ['cm0-n1', 'cm1-n1', 'cm2-n1', 'sec0-n1', 'sec1-n1'];
const objectOf = (name: string, rev: number): SimObject => ({
  kind: name.startsWith('sec') ? 'secret' : 'configMap',
  name,
  rev,
  immutable: false,
});

it('a pod names a config map, a secret and a token, and knows what files they make', () => {
  const volumes = objectVolumes(pod().manifest);
  expect(volumes.map((v) => v.plugin)).toEqual(['kubernetes.io~configmap', 'kubernetes.io~secret', 'kubernetes.io~projected']);
  expect(volumes.map((v) => v.token)).toEqual([false, false, true]);
  const [map] = volumes[0]?.shown ?? [];
  if (map === undefined) throw new Error('the config map is not shown');
  expect([...filesFrom(map, dataOf(objectOf(map.name, 3)))]).toEqual([
    ['rev', `${map.name}#3`],
    ['only-1', `${map.name}#3`],
  ]);
});

for (const how of ['Watch', 'Cache', 'Get'] as const) {
  runs(
    `objects that change, go and come back are seen in the end (${how})`,
    async () => {
      const acts: [atMs: number, act: WorkloadAct][] = [
        [0, { kind: 'pod.put', pod: pod(), source: 'api' }],
        ...NAMES.flatMap((name, i): [number, WorkloadAct][] => [
          [2_000, { kind: 'object.put', object: objectOf(name, 0) }],
          [9_000 + i, { kind: 'object.put', object: objectOf(name, 1) }],
          [15_000, { kind: 'object.remove', object: objectOf(name, 1) }],
        ]),
      ];
      const schedule = acts.map(([atMs, act], id): Fault => ({ id, node: 0, afterSteps: 0, forMs: 0, atMs, ...act }));
      const r = await runSim({ seed: seedWith(how), nodes: 1, minutes: 0.4, schedule });
      expect(r.violation, JSON.stringify(r.violation)).toBeNull();
      expect([r.faults.get('object.put'), r.faults.get('object.remove')]).toEqual([10, 5]);
      // It was seen whether its pod could start without them.
      expect([...r.edges.keys()]).toContain('worker: syncing.mountingVolumes -> syncing.creatingSandbox');
    },
    120_000,
  );
}

// Found at fb07f34: of two changes of one moment the older one was told last, and its content stayed.
runs(
  'seed 140: the newest version of a watched object is the one that is kept',
  async () => {
    const r = await runSim({ seed: 140, minutes: 1, pods: 6 });
    expect(r.violation, JSON.stringify(r.violation)).toBeNull();
  },
  240_000,
);
