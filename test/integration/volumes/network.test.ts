/** Volumes of a server that does not answer, on a whole node in virtual time. */
import { expect } from 'vitest';
import { volumesView } from '../../../src/machines/services/volumes/messages.ts';
import { RUNS_ALL } from '../../rotation.ts';
import { itOnNode as it } from '../onNode.ts';
import { pod, ROOT, type VirtualNode, virtualNode } from '../virtualNode.ts';

const withFiles = (name: string, server = 'files'): object =>
  pod(name, {
    container: {
      volumeMounts: [
        { name: 'v', mountPath: '/v' },
        { name: 'v', mountPath: '/part', subPath: 'part' },
      ],
    },
    spec: { volumes: [{ name: 'v', nfs: { server, path: '/exports' } }] },
  });
const plain = (name: string): object =>
  pod(name, {
    container: { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
    spec: { volumes: [{ name: 'v', emptyDir: { medium: 'Memory' } }] },
  });
const up = (h: VirtualNode, name: string) => h.phase(name) === 'Running' && h.running(name).length === 1;
const nowMs = (h: VirtualNode) => h.time.clock.monoMs();
async function timed(h: VirtualNode, what: string, look: () => unknown, withinMs?: number): Promise<number> {
  const began = nowMs(h);
  await h.until(what, look, withinMs);
  return nowMs(h) - began;
}
const volumesOf = (h: VirtualNode, name: string) => h.tree.registry.read(volumesView)?.value.get(h.uid(name)) ?? [];

it('under 20 pods hold up no other pod, and the 20 are gone within their grace and 30 s; nothing stays mounted', async ({ h }) => {
  const names = Array.from({ length: 20 }, (_, n) => `n${n}`);
  h.write('before', plain('before'));
  const before = await timed(h, 'a pod to run', () => up(h, 'before'));
  for (const name of names) h.write(name, withFiles(name));
  await h.until('all to run', () => names.every((name) => up(h, name)));
  expect(h.mounts.table.filter((m) => m.type === 'nfs')).toHaveLength(40);

  h.mounts.dead.add('files');
  h.write('late', withFiles('late'));
  h.write('alive', withFiles('alive', 'others'));
  h.write('after', plain('after'));
  const after = await timed(h, 'another pod to run', () => up(h, 'after'));
  expect(after).toBeLessThanOrEqual(before * 1.05);
  await h.until('a pod of a living server to run', () => up(h, 'alive'), 5_000);
  await h.until('the dead one to be named', () => volumesOf(h, 'late').some((v) => v.message.includes('the NFS server of files:/exports')));

  for (const name of [...names, 'late']) h.remove(name);
  const gone = await timed(h, 'them to be gone', () => names.concat('late').every((name) => h.record(name) === undefined), 120_000);
  expect(gone).toBeLessThanOrEqual(32_000);
  expect(h.mounts.table.filter((m) => m.source.startsWith('files:'))).toEqual([]);
  expect([up(h, 'alive'), up(h, 'after')]).toEqual([true, true]);
});

it('that containers wait for is given up once all pods that use it are to go, and they are gone within their grace and 30 s', async () => {
  const world: { h?: VirtualNode } = {};
  await using h = await virtualNode({
    hollow: { held: ({ pod: { uid, name } }) => name.startsWith('n') && world.h?.mounts.holds(uid) === true },
  });
  world.h = h;
  const names = Array.from({ length: 5 }, (_, n) => `n${n}`);
  for (const name of [...names, 'stays']) h.write(name, withFiles(name));
  h.write('other', withFiles('other', 'others'));
  await h.until('all to run', () => [...names, 'stays', 'other'].every((name) => up(h, name)));
  h.mounts.dead.add('files');
  for (const name of names) h.remove(name);
  // Another pod has the same file system, and may go on when the server is back.
  await h.advance(100_000);
  expect(names.filter((name) => h.record(name) === undefined)).toEqual([]);
  expect([up(h, 'stays'), up(h, 'other')]).toEqual([true, true]);

  h.remove('stays');
  const gone = await timed(h, 'all to be gone', () => [...names, 'stays'].every((name) => h.record(name) === undefined), 120_000);
  expect(gone).toBeLessThanOrEqual(62_000);
  expect(h.mounts.table.filter((m) => m.source.startsWith('files:'))).toEqual([]);
  expect(up(h, 'other')).toBe(true);
  expect(h.lines.filter((l) => JSON.stringify(l).includes('was given up'))).toHaveLength(1);
  // The export is mounted anew, with nothing of what was given up.
  h.mounts.dead.clear();
  h.write('again', withFiles('again'));
  await h.until('a pod of the same server to run', () => up(h, 'again'));
});

it('killed while a mount of it hangs, the next daemon finds what half happened, and takes it down or goes on', async () => {
  for (const wanted of [true, false]) {
    await using h = await virtualNode();
    // The mount comes about when its caller has given it up.
    h.mounts.trouble.hanging = (op) => op === 'mount';
    h.write('web', withFiles('web'));
    await h.advance(3_000);
    const path = `${ROOT}/pods/${h.uid('web')}/volumes/kubernetes.io~nfs/v`;
    await h.crash();
    h.mounts.put({ path, type: 'nfs', source: 'files:/exports' });
    h.mounts.trouble.hanging = () => false;
    if (!wanted) h.remove('web');
    await h.boot();
    if (wanted) await h.until('it runs', () => up(h, 'web'), 200_000);
    else await h.until('nothing is left', () => h.mounts.table.length === 0 && h.fs.below(`${ROOT}/pods`).length === 0, 200_000);
    if (wanted) expect(h.mounts.table.filter((m) => m.path === path)).toHaveLength(1);
  }
});

/** Half of the time is xstate's, which copies its children whenever one ends. */
const STALE = RUNS_ALL ? 1_000 : 250;
it('many stale mounts at the start are taken down, and what is on the server stays', async ({ h }) => {
  await h.crash();
  for (let n = 0; n < STALE; n++) {
    const path = `${ROOT}/pods/stale-${n % 100}/volumes/kubernetes.io~nfs/v${n}`;
    h.fs.makeDir(path);
    h.mounts.put({ path, type: 'nfs4', source: `server-${n % 10}:/exports` });
  }
  for (let n = 0; n < 5; n++) h.mounts.dead.add(`server-${n}`);
  h.write('web', plain('web'));
  await h.boot();
  expect(await timed(h, 'a new pod to run', () => up(h, 'web'), 30_000)).toBeLessThan(5_000);
  await h.until('all of them to be gone', () => h.mounts.table.length === 1, 60_000);
  // Calls that clean up after a dead server hang on until their deadline.
  await h.advance(10_000);
  expect(h.fs.below(`${ROOT}/pods`).filter((p) => p.includes('~nfs/v'))).toEqual([]);
});
