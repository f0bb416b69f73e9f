/** Parts of volumes that stayed mounted for ever. */
import { expect, it } from 'vitest';
import { pod, ROOT, type VirtualNode, virtualNode } from '../../integration/virtualNode.ts';

const HOST = { name: 'host', hostPath: { path: '/srv/data', type: 'DirectoryOrCreate' } };
const CACHE = { name: 'cache', emptyDir: {} };
const up = (h: VirtualNode) => h.phase('web') === 'Running' && h.running('web').length === 1;

it('of a volume that lies elsewhere, when a power failure left of its pod nothing but them', async () => {
  const container = { volumeMounts: [{ name: 'host', mountPath: '/data', subPath: 'x' }] };
  await using h = await virtualNode({ manifests: { web: pod('web', { container, spec: { volumes: [HOST] } }) } });
  await h.until('web runs', () => up(h));
  const dir = `${ROOT}/pods/${h.uid('web')}`;
  await h.crash();
  for (const path of [...h.fs.below(dir)].reverse()) {
    if (path.includes('volume-subpaths')) continue;
    if ((await h.fs.lstat(path)).kind === 'dir') await h.fs.rmdir(path);
    else await h.fs.unlink(path);
  }
  h.remove('web');
  await h.boot();
  await h.until('its directory goes', () => !h.fs.has(dir), 300_000);
  expect(h.mounts.table).toEqual([]);
});

it('when the worker and then the pod went while they were bound one after the other', async () => {
  const volumeMounts = [
    { name: 'cache', mountPath: '/cache', subPath: 'x' },
    { name: 'host', mountPath: '/data', subPath: 'x' },
  ];
  await using h = await virtualNode();
  let slow = 0;
  h.mounts.trouble.delayMs = (op, path) => {
    if (op !== 'mount' || !path.includes('volume-subpaths/cache')) return 0;
    slow += 1;
    return 10_000;
  };
  h.write('web', pod('web', { container: { volumeMounts }, spec: { volumes: [CACHE, HOST] } }));
  await h.until('the first of them is being bound', () => slow === 1, 60_000);
  const uid = h.uid('web');
  // Whoever asked for them is gone; its successor gives the volumes back.
  expect(h.tree.kill(`node/pods/workers/${uid}`, 'the test')).toBe(true);
  h.remove('web');
  await h.until('its directory goes', () => !h.fs.has(`${ROOT}/pods/${uid}`), 300_000);
  await h.advance(120_000);
  expect(h.mounts.table).toEqual([]);
  expect(slow).toBe(1);
});
