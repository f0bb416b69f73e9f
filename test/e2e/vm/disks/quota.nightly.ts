/** Project quotas of emptyDirs on a real xfs and a real ext4: pods with a user namespace are counted by the file system, others walked. */
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { buildDaemon } from '../../daemon.ts';
import { hasMachine, Machine, staticPod } from '../machine.ts';

const vm = new Machine(`quota-${randomBytes(4).toString('hex')}`);
const WAIT_MS = 60_000;
const ROOT = '/root/actorlet/root';
const MAKE: Readonly<Record<string, string>> = { xfs: 'mkfs.xfs -q', ext4: 'mkfs.ext4 -q -O quota,project -E quotatype=prjquota' };

const writer = (name: string, spec: object): object =>
  staticPod(name, {
    spec: {
      containers: [
        {
          ...{ name: 'main', image: 'localhost/busybox:1' },
          command: ['sh', '-c', 'dd if=/dev/zero of=/data/file bs=1M count=5 && sync && sleep 3600'],
          volumeMounts: [{ name: 'data', mountPath: '/data' }],
        },
      ],
      volumes: [{ name: 'data', emptyDir: {} }],
      ...spec,
    },
  });
interface Summary {
  pods: { podRef: { name: string }; volume?: { name: string; usedBytes?: number; inodesUsed?: number }[] }[];
}

beforeAll(async () => {
  if (!hasMachine) throw new Error('the machine of these tests is not there: npm run e2e:setup');
  await buildDaemon();
  await vm.run(`modprobe loop; modprobe xfs 2>/dev/null; mkdir -p ${ROOT}; truncate -s 600M /root/disk`);
}, 120_000);
afterEach(async () => {
  await vm.clear();
  await vm.end();
  await vm.run(`umount ${ROOT}`);
}, 120_000);
afterAll(() => vm.dispose());

it.each(['xfs', 'ext4'])(
  'on %s: the volume of a pod with a user namespace has a project, and is counted by it',
  async (type) => {
    await vm.run(`wipefs -qa /root/disk; ${MAKE[type]} /root/disk && mount -o loop,prjquota /root/disk ${ROOT}`);
    await vm.start({ featureGates: { LocalStorageCapacityIsolationFSQuotaMonitoring: true }, volumeStatsAggPeriod: '1s' });
    await vm.put('own', writer('own', { hostUsers: false }));
    await vm.put('host', writer('host', {}));
    for (const name of ['own', 'host']) await vm.running(name, WAIT_MS);
    const projects = await vm.run('cat /etc/projects');
    expect(projects).toMatch(new RegExp(`^1048577:${ROOT}/pods/[^/]+/volumes/kubernetes.io~empty-dir/data$`));
    expect(await vm.run(`lsattr -pd ${projects.replace('1048577:', '')}`)).toMatch(/^\s*1048577 /);
    const used = async (name: string) => {
      const page = JSON.parse(await vm.run('curl -sf http://127.0.0.1:10255/stats/summary')) as Summary;
      const volume = page.pods.find((p) => p.podRef.name === `${name}-vm`)?.volume?.find((v) => v.name === 'data');
      return (volume?.usedBytes ?? 0) >= 5 << 20 ? volume : undefined;
    };
    for (const name of ['own', 'host']) {
      const volume = await vm.wait(`${name} to be measured`, () => used(name), WAIT_MS);
      expect(volume.usedBytes).toBeLessThan(6 << 20);
      expect(volume.inodesUsed).toBe(2);
    }
    expect(await vm.run(`curl -sf http://127.0.0.1:10255/metrics | grep 'volume_metric_collection_duration_seconds_count'`)).toMatch(
      /metric_source="fsquota"/,
    );
    await vm.remove('own');
    await vm.wait('its project to go', () => vm.holds('test ! -s /etc/projects && ! grep -q volume /etc/projid'), WAIT_MS);
  },
  150_000,
);
