/** iSCSI with a target that wants secrets (tgt), by two portals below one multipath device. One of them fails, and pods write on. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../../daemon.ts';
import { hasMachine, Machine } from '../machine.ts';
import { CHAP, PORTALS, startTarget } from './iscsiTarget.ts';
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
  await startCluster(vm, 'iscsiCluster.ts');
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
