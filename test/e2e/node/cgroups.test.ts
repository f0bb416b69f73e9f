/** Cgroups of the node's own, on a real containerd and the kernel's own files. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createCgroups } from '../../../src/boot/dependencies/cgroups/cgroups.ts';
import { BY_PROGRAM, buildDaemon, createDaemon, type Daemon } from '../daemon.ts';
import { type Containerd, startContainerd } from '../lab/containerd.ts';
import { until } from '../lab/ports.ts';
import { manifest, steady } from '../manifests.ts';
import { containers, hostPid } from '../runtime.ts';

const ROOT = `/actorlet-test-${randomBytes(4).toString('hex')}`;
const MI = 1024 * 1024;
const cgroups = createCgroups();
let lab: Containerd;
let daemon: Daemon;
let outsideProcess: ChildProcess | undefined;

beforeAll(async () => {
  await cgroups.create(ROOT);
  // As an administrator makes it by hand: in the hierarchies that hold pods, not in an empty one of the second version beside.
  for (const other of ['unified', 'freezer', 'blkio', 'devices']) {
    const made = join('/sys/fs/cgroup', other, ROOT);
    if (existsSync(made) && (await version()) === 1) rmdirSync(made);
  }
  await buildDaemon();
  lab = await startContainerd();
  daemon = await createDaemon(lab, {
    cgroupsPerQOS: true,
    enforceNodeAllocatable: ['pods'],
    cgroupRoot: ROOT,
    podPidsLimit: 512,
    kubeReserved: { memory: '64Mi' },
  });
  await daemon.start();
});
afterAll(async () => {
  outsideProcess?.kill('SIGKILL');
  await daemon?.dispose();
  const left = await lab?.stop();
  // Whatever a failed test left: processes went with the lab.
  await until('the groups of this test to be gone', async () => {
    await cgroups.kill(ROOT);
    return cgroups.remove(ROOT).then(
      () => true,
      () => false,
    );
  });
  expect(left).toEqual([]);
  expect(await cgroups.exists(ROOT)).toBe(false);
});

const version = async () => (await cgroups.detect('cgroupfs')).version;
/** By what it is called in each version. */
async function value(path: string, v1: [controller: string, file: string], v2: string): Promise<string> {
  const [text = ''] = await cgroups.read(path, [
    (await version()) === 1 ? { controller: v1[0], file: v1[1] } : { controller: '', file: v2 },
  ]);
  return text.trim();
}
const memory = (path: string) => value(path, ['memory', 'memory.limit_in_bytes'], 'memory.max');
const pids = (path: string) => value(path, ['pids', 'pids.max'], 'pids.max');
const weight = (path: string) => value(path, ['cpu', 'cpu.shares'], 'cpu.weight');
const quota = async (path: string) => (await value(path, ['cpu', 'cpu.cfs_quota_us'], 'cpu.max')).split(' ')[0];
/** 1.3, in either version's words. */
const shares = async (v1: string, v2: string) => ((await version()) === 1 ? v1 : v2);
const unlimited = (text: string) => text === 'max' || Number(text) > 2 ** 60;

/** Paths of groups below the test's root, of any hierarchy. */
async function podGroups(): Promise<string[]> {
  const parents = ['', '/burstable', '/besteffort'].map((tier) => `${ROOT}/kubepods${tier}`);
  const all = await Promise.all(
    parents.map(async (p) => (await cgroups.list(p)).filter((n) => n.startsWith('pod')).map((n) => `${p}/${n}`)),
  );
  return all.flat().sort();
}

it('traps 13 and 14: runs a pod of each class in a group of its own with its values, and leaves none behind', async () => {
  const both = { cpu: '200m', memory: '64Mi' };
  daemon.put('g.yaml', manifest('g', [steady('main', { resources: { limits: both } })]));
  const limited = steady('one', { resources: { requests: { cpu: '100m' }, limits: { memory: '32Mi' } } });
  daemon.put('b.yaml', manifest('b', [limited, steady('two')]));
  daemon.put('e.yaml', manifest('e', [steady('main')]));
  const [g, b, e] = await Promise.all(['g', 'b', 'e'].map((name) => daemon.phase(name, 'Running', 60_000)));
  if (g === undefined || b === undefined || e === undefined) throw new Error('a pod is missing');
  const at = {
    g: `${ROOT}/kubepods/pod${g.metadata.uid}`,
    b: `${ROOT}/kubepods/burstable/pod${b.metadata.uid}`,
    e: `${ROOT}/kubepods/besteffort/pod${e.metadata.uid}`,
  };
  expect(await podGroups()).toEqual([at.g, at.b, at.e].sort());

  expect(await weight(at.g)).toBe(await shares('204', '8'));
  expect(await quota(at.g)).toBe('20000');
  expect(await memory(at.g)).toBe(String(64 * MI));
  expect(await weight(at.b)).toBe(await shares('102', '4'));
  // One of its containers has no limit, so it has none as a whole.
  expect(unlimited(await memory(at.b))).toBe(true);
  expect(await weight(at.e)).toBe(await shares('2', '1'));
  for (const path of Object.values(at)) expect(await pids(path)).toBe('512');
  expect(await weight(`${ROOT}/kubepods/burstable`)).toBe(await shares('102', '4'));
  expect(await weight(`${ROOT}/kubepods/besteffort`)).toBe(await shares('2', '1'));

  // What runs is in there, every process of it, and the kernel's limit is the machine's memory without what is reserved.
  for (const [name, path] of Object.entries(at)) {
    const running = (await containers(lab, name)).filter((c) => c.running);
    const inside = await cgroups.pids(path);
    for (const c of running) expect(inside).toContain(await hostPid(lab, c.id));
    expect(inside.length).toBeGreaterThan(running.length);
  }
  const total = Number(/MemTotal:\s+(\d+) kB/.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]) * 1024;
  const page = 4096;
  expect(Math.abs(Number(await memory(`${ROOT}/kubepods`)) - (total - 64 * MI))).toBeLessThan(page);
  const enforced = await daemon.wait('the limit to be told', async () =>
    (await daemon.events()).find((event) => event.reason === 'NodeAllocatableEnforced'),
  );
  expect(enforced).toMatchObject({ type: 'Normal', message: 'Updated Node Allocatable limit across pods' });

  for (const name of ['g', 'b', 'e']) daemon.remove(`${name}.yaml`);
  await daemon.wait('the groups to be gone', async () => (await podGroups()).length === 0, { timeoutMs: 90_000 });
  await daemon.wait('the class to weigh nothing', async () => (await weight(`${ROOT}/kubepods/burstable`)) === (await shares('2', '1')), {
    timeoutMs: 90_000,
  });
  // In no hierarchy, those that this node writes nothing to included.
  for (const name of readdirSync('/sys/fs/cgroup')) {
    const tier = join('/sys/fs/cgroup', name, ROOT, 'kubepods', 'burstable');
    if (existsSync(tier)) expect(readdirSync(tier).filter((n) => n.startsWith('pod'))).toEqual([]);
  }
});

it('takes the group of a pod that ended while no daemon ran away, and kills what nobody knows in it', async () => {
  daemon.put('gone.yaml', manifest('gone', [steady('main')]));
  const pod = await daemon.phase('gone', 'Running', 60_000);
  const path = `${ROOT}/kubepods/besteffort/pod${pod.metadata.uid}`;
  await daemon.end('SIGKILL');
  daemon.remove('gone.yaml');
  const stray = `${ROOT}/kubepods/besteffort/poduid-of-nobody`;
  await cgroups.create(stray);
  const child = spawn('sleep', ['3600'], { stdio: 'ignore' });
  outsideProcess = child;
  const ended = new Promise<NodeJS.Signals | null>((resolve) => child.once('exit', (_, signal) => resolve(signal)));
  const roots = ['/sys/fs/cgroup', ...readdirSync('/sys/fs/cgroup').map((name) => join('/sys/fs/cgroup', name))];
  const procs = roots.map((root) => join(root, stray, 'cgroup.procs')).filter(existsSync);
  for (const file of procs) writeFileSync(file, String(child.pid));
  expect(await cgroups.pids(stray)).toEqual([child.pid]);
  await daemon.start();
  await daemon.wait('both groups to be gone', async () => (await podGroups()).length === 0, { timeoutMs: 120_000 });
  expect(await ended).toBe('SIGKILL');
  expect(await cgroups.pids(path)).toEqual([]);
});

it('refuses to start with a root that does not exist', async () => {
  await daemon.end('SIGTERM');
  daemon.configure({ cgroupRoot: `${ROOT}-missing` });
  await daemon.start({ ready: false });
  await until('the daemon to end', () => !daemon.alive(), { timeoutMs: 30_000, everyMs: 50 });
  expect(daemon.log()).toContain(`cgroupRoot (--cgroup-root): ${ROOT}-missing does not exist in the hierarchies of cpu`);
  daemon.configure({ cgroupRoot: ROOT });
});

it('a runtime that comes up after the daemon: no pod is refused for the cgroups of the node, and all start together', async () => {
  const names = ['late-a', 'late-b', 'late-c'];
  await daemon.end('SIGTERM');
  await lab.kill();
  for (const name of names) daemon.put(`${name}.yaml`, manifest(name, [steady('main')]));
  await daemon.start({ ready: false });
  await daemon.wait('its tree to be there', async () => (await daemon.ctl('tree').catch(() => '')).includes('cgroups'), BY_PROGRAM);
  await lab.start();
  const pods = await Promise.all(names.map((name) => daemon.phase(name, 'Running', 60_000)));
  const started = pods.map((p) => Date.parse(p.status.containerStatuses?.[0]?.state.running?.startedAt ?? ''));
  // A machine that is busy adds to it; a pod that was refused would wait for 10 s.
  expect(Math.max(...started) - Math.min(...started)).toBeLessThan(9_000);
  expect((await daemon.events()).filter((e) => e.reason === 'FailedCreatePodContainer')).toEqual([]);
});
