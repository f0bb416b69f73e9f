/** A pod that has gone does not come back as an orphaned pod because a listing is older than its end. */

import { expect } from 'vitest';
import { podsView } from '../../../src/machines/pods/manager/messages.ts';
import { statusesView } from '../../../src/machines/pods/status/messages.ts';
import { itOnNode as it } from '../../integration/onNode.ts';
import { pod } from '../../integration/virtualNode.ts';

it('is not seen again after its end', async ({ h }) => {
  const names = Array.from({ length: 12 }, (_, i) => `p${i}`);
  for (const name of names) h.write(name, pod(name));
  await h.until('all run', () => h.running().length === names.length);
  // Long enough for slow listings.
  await h.advance(300_000);
  const orphans: string[] = [];
  h.tree.observe(() => {
    for (const r of h.tree.registry.read(podsView)?.value.records.values() ?? [])
      if (r.source === 'runtime' && !orphans.includes(r.pod.metadata.name)) orphans.push(r.pod.metadata.name);
  });
  for (const name of names) {
    h.remove(name);
    await h.advance(270);
  }
  await h.until('nothing is left', () => h.runtime.dump().sandboxes.length === 0, 180_000);
  expect(orphans).toEqual([]);
});

it('has no status left over when the pod manager died in that very moment', async ({ h }) => {
  h.write('web', pod('web', { life: 'run=1s,exit=0', spec: { restartPolicy: 'Never' } }));
  await h.until('it has ended', () => h.phase('web') === 'Succeeded');
  await h.advance(10_000);
  h.kill('node/pods/podManager');
  h.remove('web');
  await h.until(
    'it is not known any more',
    () => h.tree.registry.read(podsView)?.value.sourcesReady === true && h.record('web') === undefined,
  );
  await h.advance(120_000);
  expect([...(h.tree.registry.read(statusesView)?.value.keys() ?? [])]).toEqual([]);
});
