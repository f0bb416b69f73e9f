import { expect, it } from 'vitest';
import { hollowNode, manifest, until } from './hollowNode.ts';

it('runs a static pod from a manifest and stops it when the manifest goes', async () => {
  await using h = await hollowNode();
  h.write('web.json', manifest('web'));
  await until('web runs', () => h.status('web')?.status.phase === 'Running');
  expect(h.runtime.dump().containers.filter((c) => c.state === 'CONTAINER_RUNNING')).toHaveLength(1);
  h.remove('web.json');
  await until('nothing is left', () => h.runtime.dump().containers.length === 0 && h.runtime.dump().sandboxes.length === 0, 60_000);
  expect(h.record('web')).toBeUndefined();
});
