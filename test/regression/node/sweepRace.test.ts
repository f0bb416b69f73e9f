/** Garbage collection decides on what is wanted when it removes, not on what was wanted when it began. */
import { expect, it } from 'vitest';
import { pod, virtualNode } from '../../integration/virtualNode.ts';

it('leaves the containers of a pod that came back during the sweep', async () => {
  await using h = await virtualNode();
  const names = ['a', 'b', 'c'];
  const write = () => {
    for (const n of names) h.write(n, pod(n, { uid: `pinned-${n}`, life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } }));
  };
  write();
  await h.until('all succeeded', () => names.every((n) => h.phase(n) === 'Succeeded'));
  await h.advance(70_000);
  h.faults.latencyMs.RemoveContainer = 5_000;
  let asked = 0;
  h.faults.fault = (method) => {
    if (method === 'RemoveContainer') asked += 1;
    return undefined;
  };
  // It comes back a second later, and finds them all gone.
  h.kill('node/reclaim/containerGc');
  for (const n of names) h.remove(n);
  await h.until('the sweep has begun to remove', () => asked === 1, 120_000);
  write();
  await h.until('all are back', () => names.every((n) => h.phase(n) === 'Succeeded' || h.running(n).length > 0), 30_000);
  await h.advance(60_000);
  expect(asked).toBe(1);
  expect(h.runtime.dump().containers).toHaveLength(3);
});
