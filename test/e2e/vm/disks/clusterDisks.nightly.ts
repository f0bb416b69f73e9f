/**
 * Disks of a cluster's pods. iSCSI with a target that wants secrets (tgt), by two portals below one multipath device: one of them
 * fails, and pods write on. Disks of the node itself, which get more room.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../../daemon.ts';
import { hasMachine, Machine } from '../machine.ts';
import { CHAP, LOCAL_DISKS, PORTALS, startTarget } from './iscsiTarget.ts';
import { CLUSTER, startCluster } from './startCluster.ts';

const vm = new Machine(`paths-${randomBytes(4).toString('hex')}`);
const WAIT_MS = 60_000;
const CONFIG = 'defaults {\n  find_multipaths no\n  path_selector "round-robin 0"\n  polling_interval 1\n}\n';

const order = (name: string) => vm.run(`touch ${CLUSTER}/${name}`);
const count = (what: string) => vm.run(`${what} 2>/dev/null | wc -l`);
const sessions = () => count('iscsiadm -m session');
const devices = () => Promise.all([count('ls -d /sys/block/sd*'), count('ls -d /sys/block/dm-*')]);
const written = () => vm.run('cat /root/actorlet/root/pods/*/volumes/kubernetes.io~iscsi/disk/count');

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  await startTarget(vm, { luns: 1, chap: true });
  await vm.run('set -e; for m in dm_multipath dm_round_robin; do modprobe $m; done; cat >/etc/multipath.conf; systemctl start multipathd', {
    input: CONFIG,
  });
  await startCluster(vm, 'disksCluster.ts');
  await vm.start({}, [`--kubeconfig=${CLUSTER}/kubeconfig`]);
}, 200_000);
afterAll(() => vm.dispose());

it('a secret that the target does not know mounts nothing, and the target is named', async () => {
  await vm.wait('the refusal to be told', async () => /--login ended with \d+: .*authoriz/is.test(await vm.log()), WAIT_MS);
  expect([await sessions(), await devices()]).toEqual(['0', ['0', '0']]);
  await order('delete-refused');
  await vm.wait('the pod to be gone', async () => (await vm.pods()).length === 0, WAIT_MS);
}, 100_000);

it('with the right one the disk comes by both portals, lives on with one, and goes with all of its devices', async () => {
  await order('create');
  await vm.wait('the pod to write', async () => Number(await written().catch(() => '0')) > 3, WAIT_MS);
  expect([await sessions(), await devices()]).toEqual([String(PORTALS.length), ['2', '1']]);
  expect(await vm.run('grep kubernetes.io~iscsi/disk /proc/mounts')).toMatch(/^\/dev\/(mapper\/|dm-)/);
  await vm.run('echo offline >/sys/block/sda/device/state');
  const before = Number(await written());
  await vm.wait('it to write on', async () => Number(await written()) > before + 5, WAIT_MS);
  await vm.run('echo running >/sys/block/sda/device/state');
  // Neither is anywhere but in the records of open-iscsi, which root alone may read.
  const log = await vm.log();
  for (const { password } of Object.values(CHAP)) expect(log).not.toContain(password);
  await order('delete-paths');
  await vm.wait('its devices to be gone', async () => (await sessions()) === '0' && (await devices()).join() === '0,0', WAIT_MS);
  expect(await vm.run('grep kubernetes.io~iscsi /proc/mounts || true')).toBe('');
}, 150_000);

it('a disk of the node is formatted once, and its file system grows under the pod that uses it', async () => {
  const disks = Object.entries(LOCAL_DISKS);
  const each = (act: (path: string, type: string) => string) =>
    vm.run(`set -e; ${disks.map(([type, path]) => act(path, type)).join('; ')}`);
  const file = (path: string) => `/root/${path.slice('/dev/'.length)}`;
  const seen = async () =>
    (await each((_, type) => `awk '{ print $2 }' /root/actorlet/root/pods/*/volumes/kubernetes.io~local-volume/pv-${type}/size`))
      .split('\n')
      .map(Number);
  await vm.run('modprobe loop');
  await each((path) => `truncate -s 320M ${file(path)}; losetup ${path} ${file(path)}`);
  await order('create-local');
  await vm.wait('the containers to see them', async () => (await seen().catch(() => [])).length === 2, WAIT_MS);
  const before = await seen();
  await each((path) => `truncate -s 640M ${file(path)}; losetup -c ${path}`);
  await order('grow');
  await vm.wait('the containers to see more', async () => (await seen()).every((size, at) => size > 1.8 * (before[at] ?? size)), WAIT_MS);
  await vm.wait('the claims to say so', () => vm.holds(`[ "$(cat ${CLUSTER}/sizes)" = '640Mi 640Mi' ]`), WAIT_MS);
  await order('delete-local');
  await vm.wait('them to be unmounted', () => vm.holds('! grep -q ^/dev/loop /proc/mounts'), WAIT_MS);
  expect((await each((path) => `blkid -p -s TYPE -o value ${path}; losetup -d ${path}`)).split('\n')).toEqual(Object.keys(LOCAL_DISKS));
}, 150_000);
