/** SELinux in a real kernel, with a small policy: volumes are mounted with the label of their pod, and pods with another label wait. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../../daemon.ts';
import { hasMachine, Machine } from '../machine.ts';
import { policy } from './selinuxPolicy.ts';
import { CLUSTER, startCluster } from './startCluster.ts';

const vm = new Machine(`selinux-${randomBytes(4).toString('hex')}`, { lsm: 'yama,selinux' });
const WAIT_MS = 60_000;
const CONTEXT = 'system_u:object_r:container_file_t:s0';

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  await vm.run(
    [
      'set -e; cat >/root/policy.conf; checkpolicy -M -U allow -o /root/policy /root/policy.conf',
      'grep -q selinuxfs /proc/mounts || mount -t selinuxfs selinuxfs /sys/fs/selinux',
      'dd if=/root/policy of=/sys/fs/selinux/load bs=4M status=none',
      'mkdir -p /etc/selinux/small/contexts; echo SELINUXTYPE=small >/etc/selinux/config',
      `printf 'process = "system_u:system_r:container_t:s0"\\nfile = "${CONTEXT}"\\n' >/etc/selinux/small/contexts/lxc_contexts`,
    ].join('\n'),
    { input: policy() },
  );
  await startCluster(vm, 'selinuxCluster.ts');
  await vm.start({ featureGates: { SELinuxMount: true } }, [`--kubeconfig=${CLUSTER}/kubeconfig`]);
}, 200_000);
afterAll(() => vm.dispose());

/** Without the quotes around an option with a comma. */
const mounted = async (name: string) =>
  (await vm.run(`grep '^${name} ' /proc/mounts | grep kubernetes.io~csi || true`)).replaceAll('"', '');

it('are mounted with it by their driver; one whose pod does not want that is not', async () => {
  await vm.wait('all to be mounted', async () => (await mounted('once')) !== '' && (await mounted('old')) !== '', WAIT_MS);
  expect(await mounted('once')).toContain(`context=${CONTEXT}:c1,c2`);
  expect(await mounted('old')).not.toContain('context=');
}, 100_000);

it('a pod with another label waits, an event and a metric say so, and the volume keeps its label', async () => {
  const metric = () => vm.run(`curl -sf http://127.0.0.1:10255/metrics | grep '^volume_manager_selinux_volume_context_mismatch' || true`);
  await vm.wait('the conflict to be counted', async () => (await metric()).includes('_errors_total{'), WAIT_MS);
  expect(await metric()).toContain('volume_plugin="kubernetes.io/csi/csi.example.com"');
  expect((await mounted('shared')).split('\n')).toHaveLength(1);
  expect(await mounted('shared')).toContain(':c1,c2');
  expect(await vm.log()).toContain('conflicting SELinux labels of volume disk');
}, 100_000);
