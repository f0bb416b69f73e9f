/** A container that crashes for weeks does not leave a file for every crash. */
import { expect, it } from 'vitest';
import { pod, ROOT, virtualNode } from '../../integration/virtualNode.ts';

it('keeps the termination files of instances that are still there only', async () => {
  await using h = await virtualNode();
  h.write('web', pod('web', { life: 'run=1s,exit=1' }));
  await h.until('it crashed often', () => h.runtime.dump().counts.containersStarted >= 12, 3 * 3_600_000);
  await h.advance(120_000);
  const files = h.fs.below(`${ROOT}/pods/${h.uid('web')}/containers/main`);
  expect(files.length).toBeLessThanOrEqual(3);
});
