/** The real port of cgroups, over folders that stand for the kernel's: both versions of its interface. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { createCgroups } from '../../../src/boot/dependencies/cgroups/cgroups.ts';

function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'actorlet-cgroups-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
/** Files that the kernel would put there. */
function group(dir: string, files: Record<string, string>): void {
  mkdirSync(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
}
const removeDir = (path: string) => rm(path, { recursive: true });
const text = (...path: string[]) => readFileSync(join(...path), 'utf8');

function first({ cpuset = false } = {}) {
  const root = folder();
  const line = (name: string, options: string, type = 'cgroup') =>
    `40 31 0:37 / ${root}/${name} rw,relatime - ${type} ${type} rw,${options}`;
  for (const name of ['cpu,cpuacct', 'memory', 'pids', 'cpuset', 'freezer', 'unified']) group(join(root, name), { 'cgroup.procs': '' });
  group(join(root, 'cpuset'), { 'cpuset.cpus': '0-3\n', 'cpuset.mems': '0\n' });
  const lines = [line('cpu,cpuacct', 'cpu,cpuacct'), line('memory', 'memory'), line('pids', 'pids')];
  const rest = [...(cpuset ? [line('cpuset', 'cpuset')] : []), line('freezer', 'freezer'), line('unified', 'nsdelegate', 'cgroup2')];
  const killed: number[] = [];
  const o = {
    root,
    version: async () => 1 as const,
    pageFolders: async () => ['hugepages-2048kB'],
    removeDir,
    kill: (pid: number) => void killed.push(pid),
  };
  return { root, killed, o, cgroups: createCgroups({ ...o, mountinfo: async () => [...lines, ...rest].join('\n') }), lines };
}

it('first version: makes a group in every hierarchy, writes where the controller is, and takes all of it away', async () => {
  const { root, cgroups, killed } = first({ cpuset: true });
  expect(await cgroups.detect('cgroupfs')).toEqual({
    version: 1,
    controllers: ['cpu', 'cpuacct', 'memory', 'pids', 'cpuset', 'freezer'],
    // No controller of huge pages.
    pageSizes: [],
  });
  const path = '/kubepods/burstable/poda-b';
  group(join(root, 'cpuset/kubepods'), { 'cpuset.cpus': '1\n', 'cpuset.mems': '' });
  expect(await cgroups.exists(path)).toBe(false);
  expect(await cgroups.list('/kubepods/burstable')).toEqual([]);
  for (const dir of ['burstable', 'burstable/poda-b']) group(join(root, 'cpuset/kubepods', dir), { 'cpuset.cpus': '', 'cpuset.mems': '' });
  await cgroups.create(path);
  expect(await cgroups.exists(path)).toBe(true);
  // Processors are handed down; what has some keeps them.
  expect(text(root, 'cpuset', path, 'cpuset.cpus')).toBe('1');
  expect(text(root, 'cpuset', path, 'cpuset.mems')).toBe('0');

  group(join(root, 'cpu,cpuacct', path), { 'cpu.shares': '' });
  group(join(root, 'memory', path), { 'memory.limit_in_bytes': '' });
  await cgroups.apply(path, [
    { controller: 'cpu', file: 'cpu.shares', value: '256' },
    { controller: 'memory', file: 'memory.limit_in_bytes', value: '4096' },
  ]);
  expect(text(root, 'cpu,cpuacct', path, 'cpu.shares')).toBe('256');
  const files = [
    { controller: 'memory', file: 'memory.limit_in_bytes' },
    { controller: 'pids', file: 'pids.max' },
  ];
  expect(await cgroups.read(path, files)).toEqual(['4096', '']);
  await expect(cgroups.apply(path, [{ controller: 'pids', file: 'pids.max', value: '7' }])).rejects.toThrow(
    /^7 could not be written to .*pids\/kubepods\/burstable\/poda-b\/pids\.max: ENOENT/,
  );

  // What a runtime made below it, in one hierarchy only.
  group(join(root, 'freezer', path, 'container'), { 'cgroup.procs': '12\n7\n0\n' });
  group(join(root, 'memory', path), { 'cgroup.procs': '7\n' });
  expect(await cgroups.pids(path)).toEqual([0, 7, 12]);
  await cgroups.kill(path);
  expect(killed).toEqual([7, 12]);
  expect(await cgroups.list('/kubepods/burstable')).toEqual(['poda-b']);
  await cgroups.remove(path);
  expect(await cgroups.list('/kubepods/burstable')).toEqual([]);
  expect(await cgroups.exists('/kubepods/burstable')).toBe(true);
  // A second time there is nothing to do.
  await cgroups.remove(path);
  await expect(cgroups.remove('/')).rejects.toThrow('the root of the cgroups is not removed');
});

it('first version: a group that an empty hierarchy of the second version beside lacks is there, and so is one without a freezer', async () => {
  const { root, cgroups } = first({ cpuset: true });
  for (const name of ['cpu,cpuacct', 'memory', 'pids', 'cpuset']) group(join(root, name, 'own'), {});
  for (const name of ['own', 'own/kubepods']) group(join(root, 'cpuset', name), { 'cpuset.cpus': '', 'cpuset.mems': '' });
  expect(await cgroups.exists('/own')).toBe(true);
  await cgroups.create('/own/kubepods');
  expect(readdirSync(join(root, 'unified/own'))).toEqual(['kubepods']);
  rmSync(join(root, 'cpuset/own'), { recursive: true });
  expect(await cgroups.exists('/own')).toBe(false);
});

it('first version: a part of a group counts as none, and a machine without a controller is told', async () => {
  const { root, o, cgroups, lines } = first();
  await cgroups.create('/kubepods');
  rmSync(join(root, 'pids/kubepods'), { recursive: true });
  expect(await cgroups.exists('/kubepods')).toBe(false);
  // Not even root may write to what is not there, or is mounted to be read.
  expect(await cgroups.unwritable()).toEqual([]);
  rmSync(join(root, 'pids'), { recursive: true });
  expect(await cgroups.unwritable()).toEqual([expect.stringMatching(/^ENOENT: .*pids/)]);
  const poor = createCgroups({ ...o, mountinfo: async () => lines.slice(0, 1).join('\n') });
  await expect(poor.detect('cgroupfs')).rejects.toThrow('this machine has no cgroup controller memory, pids');
});

it('second version: gives controllers on from the root down, and tolerates the lack of optional ones alone', async () => {
  const root = folder();
  const files = { 'cgroup.procs': '', 'cgroup.subtree_control': '', 'cgroup.controllers': 'cpuset cpu io memory pids hugetlb\n' };
  group(root, files);
  const cgroups = createCgroups({
    root,
    version: async () => 2,
    pageFolders: async () => ['hugepages-1048576kB', 'hugepages-2048kB', 'rubbish'],
    removeDir,
  });
  expect(await cgroups.detect('cgroupfs')).toEqual({
    version: 2,
    controllers: ['cpu', 'cpuset', 'memory', 'hugetlb', 'pids'],
    pageSizes: ['1GB', '2MB'],
  });
  group(join(root, 'kubepods'), files);
  await cgroups.create('/kubepods/podx');
  // The last one written: this file keeps no list.
  expect(text(root, 'cgroup.subtree_control')).toBe('+pidstlb');
  expect(text(root, 'kubepods/cgroup.subtree_control')).toBe('+pidstlb');
  expect(await cgroups.exists('/kubepods')).toBe(true);
  // Its directory is there, its controllers are not.
  expect(await cgroups.exists('/kubepods/podx')).toBe(false);
  group(join(root, 'kubepods/podx'), { 'cgroup.controllers': 'cpu memory pids', 'memory.max': '' });
  expect(await cgroups.exists('/kubepods/podx')).toBe(true);
  await cgroups.apply('/kubepods/podx', [{ controller: 'memory', file: 'memory.max', value: 'max' }]);
  expect(await cgroups.read('/kubepods/podx', [{ controller: 'memory', file: 'memory.max' }])).toEqual(['max']);
  // Nobody can give on what is below this one.
  rmSync(join(root, 'kubepods/cgroup.subtree_control'));
  await expect(cgroups.create('/kubepods/pody')).rejects.toThrow(
    /the controller cpu could not be enabled in .*kubepods\/cgroup\.subtree_control/,
  );
});

it('what changes groups happens in the order of the calls', async () => {
  const { cgroups } = first();
  await cgroups.create('/kubepods/poda');
  const done: string[] = [];
  await Promise.all([
    cgroups.remove('/kubepods/poda').then(() => done.push('removed')),
    cgroups.create('/kubepods/poda').then(() => done.push('made')),
  ]);
  expect(done).toEqual(['removed', 'made']);
  expect(await cgroups.exists('/kubepods/poda')).toBe(true);
});
