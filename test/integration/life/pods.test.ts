import { expect, it } from 'vitest';
import { hollowNode, manifest, until } from '../hollowNode.ts';

it('runs a static pod from a manifest and stops it when the manifest goes', async () => {
  await using h = await hollowNode();
  h.write('web.json', manifest('web'));
  await until('web runs', () => h.status('web')?.status.phase === 'Running');
  expect(h.runtime.dump().containers.filter((c) => c.state === 'CONTAINER_RUNNING')).toHaveLength(1);
  h.remove('web.json');
  await until('nothing is left', () => h.runtime.dump().containers.length === 0 && h.runtime.dump().sandboxes.length === 0, 60_000);
  expect(h.record('web')).toBeUndefined();
});

it('says of a pod what its own manifest did, and nothing of the others in its folder', async () => {
  await using h = await hollowNode();
  for (const name of ['one', 'two', 'three']) h.write(`${name}.json`, manifest(name));
  await until('all run', () => ['one', 'two', 'three'].every((name) => h.status(name)?.status.phase === 'Running'));
  for (const name of ['one', 'two', 'three']) {
    const manifests = h.record(name)?.worker?.causes.filter((c) => c.what.startsWith('manifest ')) ?? [];
    expect(manifests.map((c) => c.what)).toEqual([expect.stringContaining(`/${name}.json appeared`)]);
  }
});
