/** iSCSI with a real target (tgt): an empty disk is formatted, shared by two pods, kept over a restart, and logged out of with the last. */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../../daemon.ts';
import { hasMachine, Machine, staticPod } from '../machine.ts';
import { IQN, startTarget } from './iscsiTarget.ts';

const vm = new Machine(`iscsi-${randomBytes(4).toString('hex')}`);
const WAIT_MS = 60_000;
const ROOT = '/root/actorlet/root';

const withDisk = (name: string, lun: number, o: { fsType?: string; readOnly?: boolean; command?: string } = {}): object =>
  staticPod(name, {
    spec: {
      containers: [
        {
          ...{ name: 'main', image: 'localhost/busybox:1', command: ['sh', '-c', o.command ?? 'sleep 3600'] },
          volumeMounts: [{ name: 'disk', mountPath: '/disk' }],
        },
      ],
      volumes: [
        {
          name: 'disk',
          iscsi: {
            ...{ targetPortal: '127.0.0.1', iqn: IQN, lun },
            ...(o.fsType === undefined ? {} : { fsType: o.fsType }),
            ...(o.readOnly === true ? { readOnly: true } : {}),
          },
        },
      ],
    },
  });
const sessions = () => vm.run('iscsiadm -m session 2>/dev/null | wc -l');
const disks = () => vm.run('ls -d /sys/block/sd* 2>/dev/null | wc -l');
const mounts = () => vm.run(`grep ${ROOT} /proc/mounts | grep /dev/sd || true`);
/** Pods leave the list before their volumes are down. */
const left = (o: { sessions: string; disks: string }) =>
  vm.wait(`${JSON.stringify(o)} to be left`, async () => (await sessions()) === o.sessions && (await disks()) === o.disks, WAIT_MS);

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  await startTarget(vm, { luns: 2, chap: false });
  await vm.start();
}, 300_000);
afterEach(() => vm.clear());
afterAll(() => vm.dispose());

it('is formatted when it is empty, shared by pods of the node, found after kill -9, and logged out of with the last disk', async () => {
  await vm.put('a', withDisk('a', 1, { command: 'echo kept >/disk/file; sleep 3600' }));
  await vm.running('a', WAIT_MS);
  await vm.put('b', withDisk('b', 1, { readOnly: true }));
  await vm.put('x', withDisk('x', 2, { fsType: 'xfs' }));
  for (const name of ['b', 'x']) await vm.running(name, WAIT_MS);
  // Each disk for the node, and for each pod.
  expect(
    (await mounts())
      .split('\n')
      .map((line) => line.split(' ')[2])
      .sort(),
  ).toEqual(['ext4', 'ext4', 'ext4', 'xfs', 'xfs']);
  expect([await sessions(), await disks()]).toEqual(['1', '2']);
  const record = await vm.run(
    `for f in ${ROOT}/pods/*/plugins/kubernetes.io~empty-dir/wrapped_disk/device.json; do cat $f; echo; done | head -n 1`,
  );
  const json = JSON.parse(record) as { global: string };
  expect(json.global).toMatch(new RegExp(`^${ROOT}/plugins/kubernetes.io/iscsi/iface-default/127.0.0.1:3260-${IQN}-lun-\\d$`));

  await vm.end('SIGKILL');
  for (const name of ['a', 'x']) await vm.remove(name);
  await vm.start();
  await left({ sessions: '1', disks: '1' });
  expect((await vm.running('b', WAIT_MS)).status.containerStatuses?.[0]?.restartCount).toBe(0);
  await vm.remove('b');
  await left({ sessions: '0', disks: '0' });
  expect([await mounts(), await vm.run(`find ${ROOT}/plugins/kubernetes.io -name '*-lun-*'`)]).toEqual(['', '']);

  // What was written is still there: nothing is formatted twice.
  await vm.put('c', withDisk('c', 1, { command: 'test "$(cat /disk/file)" = kept && sleep 3600' }));
  await vm.running('c', WAIT_MS);
}, 200_000);

it('that a kubelet has attached and left is unmounted and logged out of by its iscsi.json, with the pod that nobody wants', async () => {
  const at = '127.0.0.1:3260';
  const node = `iscsiadm -m node -p ${at} -T ${IQN} -I default`;
  const global = `${ROOT}/plugins/kubernetes.io/iscsi/iface-default/${at}-${IQN}-lun-1`;
  const pod = `${ROOT}/pods/0b1c5a6e-0000-4000-8000-000000000001`;
  const device = `/dev/disk/by-path/ip-${at}-iscsi-${IQN}-lun-1`;
  const own = { VolName: 'disk', Portals: [at], Iqn: IQN, Lun: '1', InitIface: 'default', Iface: 'default', InitiatorName: '' };
  await left({ sessions: '0', disks: '0' });
  await vm.end();
  await vm.run(
    [
      `set -e; for o in '-o new' --discover; do iscsiadm -m discoverydb -t sendtargets -p ${at} -I default $o; done`,
      `${node} --login; until test -e ${device}; do sleep 0.1; done; blkid ${device} || mkfs.ext4 -q ${device}`,
      `mkdir -p ${global} ${pod}/volumes/kubernetes.io~iscsi/disk; mount ${device} ${global}; cat >${global}/iscsi.json`,
      `mount --bind ${global} ${pod}/volumes/kubernetes.io~iscsi/disk`,
    ].join('\n'),
    { input: JSON.stringify({ ...own, MetricsProvider: null }) },
  );
  await vm.start();
  await left({ sessions: '0', disks: '0' });
  await vm.wait('its directories to be gone', () => vm.holds(`! ls -d ${global} ${pod}`), WAIT_MS);
  expect(await mounts()).toBe('');
}, 150_000);
