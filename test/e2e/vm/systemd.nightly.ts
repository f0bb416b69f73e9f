/** Cgroups on a node of today: cgroup v2, slices of a real systemd, containerd with the systemd driver. */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../daemon.ts';
import { hasMachine, Machine, staticPod } from './machine.ts';

const vm = new Machine(`test-${randomBytes(4).toString('hex')}`);
const V2 = '/sys/fs/cgroup';
const SLICES = '/kubepods.slice';
const BURSTABLE = `${SLICES}/kubepods-burstable.slice`;
const BEST_EFFORT = `${SLICES}/kubepods-besteffort.slice`;
const MI = 1024 * 1024;

const value = (path: string, file: string) => vm.run(`cat ${V2}${path}/${file}`);
const there = (path: string) => vm.holds(`test -d ${V2}${path}`);
const properties = async (slice: string, ...names: string[]): Promise<Record<string, string>> =>
  Object.fromEntries((await vm.run(`systemctl show ${slice} -p ${names.join(',')}`)).split('\n').map((line) => line.split('=')));
/** Of each container of a pod, sandbox included, by what the kernel says of its processes. */
const scopes = async (slice: string): Promise<string[]> => (await vm.run(`ls -d ${V2}${slice}/*.scope | xargs -n1 basename`)).split('\n');
const gone = (path: string) => vm.wait(`${path} to be gone`, async () => !(await there(path)));

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  await vm.start({
    podPidsLimit: 200,
    kubeReserved: { memory: '64Mi' },
    kubeletCgroups: '/agent',
    featureGates: { MemoryQoS: true },
    memoryReservationPolicy: 'TieredReservation',
  });
}, 300_000);
afterEach(() => vm.clear());
afterAll(() => vm.dispose());

it('runs a pod of each class in a slice of its own, with its limits as properties and in files, and leaves none behind', async () => {
  const both = { cpu: '200m', memory: '64Mi' };
  await vm.put('g', staticPod('g', { uid: 'aa-1', resources: { limits: both } }));
  await vm.put('b', staticPod('b', { uid: 'bb-2', resources: { requests: { cpu: '100m' }, limits: { cpu: '333m', memory: '32Mi' } } }));
  await vm.put('e', staticPod('e', { uid: 'cc-3' }));
  for (const name of ['g', 'b', 'e']) await vm.running(name);
  const g = `${SLICES}/kubepods-podaa_1.slice`;
  const b = `${BURSTABLE}/kubepods-burstable-podbb_2.slice`;
  const e = `${BEST_EFFORT}/kubepods-besteffort-podcc_3.slice`;
  for (const slice of [g, b, e]) expect((await scopes(slice)).filter((s) => s.startsWith('cri-containerd-'))).toHaveLength(2);
  expect(await properties('kubepods-podaa_1.slice', 'CPUWeight', 'MemoryMax', 'TasksMax', 'CPUQuotaPerSecUSec')).toEqual({
    CPUWeight: '8',
    MemoryMax: String(64 * MI),
    TasksMax: '200',
    CPUQuotaPerSecUSec: '200ms',
  });
  const limits = async () => [await value(b, 'cpu.weight'), await value(b, 'memory.max'), await value(b, 'pids.max')];
  expect(await limits()).toEqual(['4', String(32 * MI), '200']);
  // The file has what was asked for, until systemd writes it anew: a whole hundredth of a processor.
  expect(await value(b, 'cpu.max')).toMatch(/^(33300|34000) 100000$/);
  expect(await properties('kubepods-burstable-podbb_2.slice', 'MemoryMin', 'MemoryLow')).toEqual({
    MemoryMin: '0',
    MemoryLow: String(32 * MI),
  });
  expect([await value(SLICES, 'memory.min'), await value(SLICES, 'memory.low')]).toEqual([String(64 * MI), String(32 * MI)]);
  expect(await value('/agent', 'cgroup.procs')).toBe(await vm.run('systemctl show actorlet -p MainPID --value'));
  // What stood in the files alone would be taken away by this.
  await vm.run('systemctl daemon-reload');
  expect(await limits()).toEqual(['4', String(32 * MI), '200']);
  expect(await value(BURSTABLE, 'cpu.weight')).toBe('4');
  expect(await value(BEST_EFFORT, 'cpu.weight')).toBe('1');
  const total = Number(/MemTotal:\s+(\d+) kB/.exec(await vm.run('cat /proc/meminfo'))?.[1]) * 1024;
  expect(Math.abs(Number(await value(SLICES, 'memory.max')) - (total - 64 * MI))).toBeLessThan(4096);

  for (const name of ['g', 'b', 'e']) await vm.remove(name);
  for (const slice of [g, b, e]) await gone(slice);
  expect(await vm.run(`systemctl list-units --all --plain --no-legend 'kubepods*pod*'`)).toBe('');
}, 600_000);

it('leaves pods that run alone when the daemon is killed, and takes the slice of one that nobody knows any more', async () => {
  await vm.put('stays', staticPod('stays'));
  await vm.put('goes', staticPod('goes', { uid: 'dd-4' }));
  const before = await vm.running('stays');
  await vm.running('goes');
  await vm.end('SIGKILL');
  await vm.remove('goes');
  await vm.start();
  const after = await vm.running('stays');
  expect(after.status.containerStatuses).toEqual(before.status.containerStatuses);
  await gone(`${BEST_EFFORT}/kubepods-besteffort-poddd_4.slice`);
  // Nobody asked for the agent's own group this time: it stays where it was started.
  expect(await vm.run('cat /proc/$(systemctl show actorlet -p MainPID --value)/cgroup')).toBe('0::/system.slice/actorlet.service');
}, 600_000);

it('takes over a slice that somebody else made, makes one anew that was removed under its pod, and does without the bus', async () => {
  const slice = 'kubepods-besteffort-podee_5.slice';
  const path = `${BEST_EFFORT}/${slice}`;
  await vm.run(`systemd-run --quiet --slice=${slice} --unit=other --remain-after-exit true`);
  await vm.run(`systemctl stop other; systemctl start ${slice}; test -d ${V2}${path}`);
  await vm.put('o', staticPod('o', { uid: 'ee-5' }));
  const first = await vm.running('o');
  expect(await value(path, 'cpu.weight')).toBe('1');
  // The way to systemd that is left is its own socket.
  await vm.run('systemctl stop dbus.socket dbus.service; systemctl kill -s KILL dbus.service || true; rm -f /run/dbus/system_bus_socket');
  await vm.run(`echo 1 >${V2}${path}/cgroup.kill; systemctl stop ${slice}`);
  await vm.wait('another container to run', async () => {
    const [now] = (await vm.pods()).filter((p) => p.metadata.name === 'o-vm');
    const status = now?.status.containerStatuses?.[0];
    return status?.ready === true && status.containerID !== first.status.containerStatuses?.[0]?.containerID;
  });
  expect(await value(path, 'cpu.weight')).toBe('1');
  expect(await properties(slice, 'TasksMax', 'CPUWeight')).toMatchObject({ CPUWeight: '1' });
  await vm.remove('o');
  await gone(path);
  await vm.run('systemctl start dbus.socket dbus.service');
}, 600_000);

it('without groups of its own names a slice to the runtime, which takes nothing else', async () => {
  await vm.end();
  await vm.start({ cgroupsPerQOS: false, enforceNodeAllocatable: [] });
  await vm.put('p', staticPod('p'));
  await vm.running('p');
  expect((await vm.run(`ls -d ${V2}/system.slice/cri-containerd-*.scope`)).split('\n')).toHaveLength(2);
  await vm.remove('p');
  await vm.wait('it to be gone', async () => (await vm.pods()).length === 0);
  await vm.end();
  await vm.start();
}, 600_000);

it('goes over to plain groups with a runtime that comes back with the driver cgroupfs', async () => {
  await vm.run(`sed -i 's/SystemdCgroup.*/SystemdCgroup = false/' /etc/containerd/config.toml; systemctl restart containerd`);
  await vm.wait('plain groups', () => there('/kubepods/burstable'));
  await vm.put('c', staticPod('c', { uid: 'ff-6' }));
  await vm.running('c');
  expect((await vm.run(`ls -d ${V2}/kubepods/besteffort/podff-6/*/`)).split('\n')).toHaveLength(2);
  await vm.remove('c');
  await gone('/kubepods/besteffort/podff-6');
}, 600_000);
