/** What a killed daemon left of a pod that is gone: its containers, and so its folder, stayed until the next collection, a minute later. */
import { expect, it } from 'vitest';
import { pod, ROOT, virtualNode } from '../../integration/virtualNode.ts';

it('goes within seconds of the next start', async () => {
  await using h = await virtualNode();
  await h.run('web', pod('web'));
  const [uid = ''] = await h.fs.readdir(`${ROOT}/pods`);
  h.remove('web');
  await h.until('it has ended', () => h.running('web').length === 0);
  await h.restart();
  expect(h.fs.has(`${ROOT}/pods/${uid}`)).toBe(true);
  expect(h.containers('web')).toHaveLength(1);
  await h.until('its folder is gone', () => !h.fs.has(`${ROOT}/pods/${uid}`), 15_000);
  expect(h.containers('web')).toEqual([]);
});
