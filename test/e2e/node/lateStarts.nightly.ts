/** A machine that boots twenty times with a runtime that comes up after the daemon: static pods wait for the node's cgroups, all alike. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createCgroups } from '../../../src/boot/dependencies/cgroups/cgroups.ts';
import { buildDaemon, createDaemon, type Daemon } from '../daemon.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { until } from '../lab/ports.ts';
import { manifest, steady } from '../manifests.ts';
import { containers, ms, sandboxes, statusOf } from '../runtime.ts';

const ROOT = `/actorlet-test-${randomBytes(4).toString('hex')}`;
const STARTS = 20;
/** Two pods, as many as two processors start at once: the API server and etcd of a node. */
const NAMES = ['etcd', 'apiserver'];
const LONGER_MS_MAX = 500;
const cgroups = createCgroups();
let lab: Containerd;
let daemon: Daemon;

async function withoutGroups(root: string): Promise<void> {
  await until(`the groups below ${root} to be gone`, async () => {
    await cgroups.kill(root);
    return cgroups.remove(root).then(
      () => true,
      () => false,
    );
  });
}

beforeAll(async () => {
  await cgroups.create(ROOT);
  await buildDaemon();
  lab = await startContainerd();
  daemon = await createDaemon(lab, { cgroupsPerQOS: true, enforceNodeAllocatable: ['pods'], cgroupRoot: ROOT });
}, 240_000);
afterAll(async () => {
  await daemon?.dispose();
  const left = await lab?.stop();
  await withoutGroups(ROOT);
  expect(left).toEqual([]);
}, 120_000);

it('static pods start within 0.5 s of their neighbours, 20 of 20 times, and none fails for the groups', async () => {
  const longer: number[] = [];
  for (let start = 0; start < STARTS; start++) {
    await lab.kill();
    await withoutGroups(`${ROOT}/kubepods`);
    for (const name of NAMES) daemon.put(`${name}.yaml`, manifest(name, [steady('main')]));
    await daemon.start({ ready: false });
    await daemon.wait('its tree to be there', async () => (await daemon.ctl('tree').catch(() => '')).includes('cgroups'));
    // Some starts of the runtime meet a try of the daemon, and some come between two.
    await new Promise((resolve) => setTimeout(resolve, start * 137));
    await lab.start();
    await Promise.all(NAMES.map((name) => daemon.phase(name, 'Running', 60_000)));
    const begun = await Promise.all(
      NAMES.map(async (name) => ms((await statusOf(lab, (await containers(lab, name))[0]?.id ?? '')).startedAt)),
    );
    longer.push(Math.max(...begun) - Math.min(...begun));
    expect((await daemon.events()).filter((e) => e.reason === 'FailedCreatePodContainer')).toEqual([]);
    for (const name of NAMES) daemon.remove(`${name}.yaml`);
    await until('the pods are gone', async () => (await sandboxes(lab)).length === 0);
    await daemon.end('SIGTERM');
  }
  console.log(`waited longer than the neighbour, ms: ${longer.map(Math.round).join(' ')}`);
  expect(longer.filter((by) => by > LONGER_MS_MAX)).toEqual([]);
}, 900_000);
