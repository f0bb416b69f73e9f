/**
 * iSCSI and Fibre Channel on a disk in memory with a /sys and links of udev of our own: what iscsiadm is asked, who is logged out,
 * and what becomes of devices. A real target is in test/e2e/vm/disks; of Fibre Channel there is none.
 */
import { expect, it } from 'vitest';
import { iscsi } from '../../../src/machines/pod/volumes/kinds/iscsi.ts';
import {
  chapFields,
  clonedFields,
  decodeTarget,
  encodeTarget,
  enoughPaths,
  iscsiGlobal,
  targetOf,
  withFields,
} from '../../../src/machines/services/volumes/devices/iscsi.ts';
import { FACTS } from '../../machines/pods/fixtures.ts';
import { machine } from './pluginBench.ts';

const IQN = 'iqn.2001-04.com.example:disk';
const ROOT = `${FACTS.rootDir}/plugins/kubernetes.io`;

/** A machine whose iscsiadm knows one target, and whose kernel shows the devices of those that are logged in to. */
function san(cluster?: { attached: string[]; reported: string[]; controllerAttaches?: boolean }) {
  const sessions = new Map<string, number>();
  const asked: string[] = [];
  let hosts = 0;
  const put = (path: string, text: string) => {
    m.fs.makeDir(path.slice(0, path.lastIndexOf('/')));
    m.fs.put(path, text);
  };
  const m = machine({
    ...(cluster === undefined ? {} : { cluster }),
    mounter: (real) => ({
      tool: async (name, args, call) => {
        if (name !== 'iscsiadm') return real.tool(name, args, call);
        asked.push(args.join(' '));
        const portal = args[args.indexOf('-p') + 1] ?? '';
        if (args.includes('show')) return { code: 0, out: 'iface.transport_name = tcp\niface.hwaddress = <empty>\n', err: '' };
        if (args.includes('--login')) {
          const host = hosts++;
          sessions.set(portal, host);
          const at = `/sys/class/iscsi_host/host${host}/device/session${host}`;
          put(`${at}/iscsi_session/session${host}/targetname`, `${IQN}\n`);
          const connection = `${at}/connection${host}:0/iscsi_connection/connection${host}:0`;
          for (const kind of ['', 'persistent_']) {
            put(`${connection}/${kind}address`, `${portal.split(':')[0]}\n`);
            put(`${connection}/${kind}port`, '3260\n');
          }
        }
        if (args.includes('--logout')) {
          const host = sessions.get(portal);
          if (host === undefined) return { code: 21, out: '', err: 'no session' };
          sessions.delete(portal);
          for (const path of m.fs.below(`/sys/class/iscsi_host/host${host}`)) m.fs.drop(path);
        }
        return { code: 0, out: '', err: '' };
      },
      tellKernel: async (path, text) => {
        m.written.push(`${path} ${text}`);
        const host = Number(/host(\d+)\/scan$/.exec(path)?.[1] ?? Number.NaN);
        const [portal] = [...sessions].find(([, h]) => h === host) ?? [];
        const lun = text.split(' ')[2];
        const removed = /\/sys\/block\/(\w+)\/device\/delete$/.exec(path)?.[1];
        if (portal !== undefined) {
          const device = `sd${'abcdef'[host]}${lun}`;
          m.fs.makeDir(`/sys/class/iscsi_host/host${host}/device/session${host}/target${host}:0:0/${host}:0:0:${lun}/block/${device}`);
          m.fs.makeDir('/dev/disk/by-path');
          await m.fs.symlink(`../../${device}`, `/dev/disk/by-path/ip-${portal}-iscsi-${IQN}-lun-${lun}`);
        }
        if (removed !== undefined) for (const p of m.fs.below('/sys/class/iscsi_host')) if (p.includes(`/block/${removed}`)) m.fs.drop(p);
      },
    }),
  });
  return { ...m, asked, sessions };
}
const disk = (lun: number, more: object = {}) => ({ iscsi: { targetPortal: '192.0.2.7', iqn: IQN, lun, ...more } });

it('one session serves all disks of its target; the last one logs out, and nothing is left', async () => {
  const m = san();
  const [a, b] = [m.volumeOf(disk(1), { uid: 'a' }), m.volumeOf(disk(2), { uid: 'b' })];
  await a.setUp();
  await b.setUp();
  expect(m.asked.filter((x) => x.includes('--login'))).toHaveLength(1);
  expect(m.mounts.table.map(({ path, source }) => [path, source])).toContainEqual([
    `${ROOT}/iscsi/iface-default/192.0.2.7:3260-${IQN}-lun-1`,
    `/dev/disk/by-path/ip-192.0.2.7:3260-iscsi-${IQN}-lun-1`,
  ]);
  await a.tearDown();
  expect([m.sessions.size, m.written.at(-1)]).toEqual([1, '/sys/block/sda1/device/delete 1']);
  await b.tearDown();
  expect([
    m.sessions.size,
    m.mounts.table,
    await m.found(),
    m.fs.below(`${ROOT}/iscsi`).filter((p) => !p.endsWith('iface-default')),
  ]).toEqual([0, [], [], []]);
  // Flushed before it goes.
  expect(m.tools).toContain('blockdev --flushbufs /dev/sda1');
});

it('a disk that the reference has attached is taken down by its iscsi.json, or by its directory alone', async () => {
  for (const json of [true, false]) {
    const m = san();
    const a = m.volumeOf(disk(1), { uid: 'a' });
    await a.setUp();
    const global = `${ROOT}/iscsi/iface-default/192.0.2.7:3260-${IQN}-lun-1`;
    if (!json) m.fs.drop(`${global}/iscsi.json`);
    await a.tearDown();
    expect([json, m.sessions.size, m.mounts.table]).toEqual([json, 0, []]);
  }
});

it('iscsi.json has the keys of the reference, and is read where it wrote it', () => {
  const source = iscsi.inline.fields.iscsi?.(disk(3, { portals: ['192.0.2.8:3260'], initiatorName: 'iqn.2001-04.com.example:node' }).iscsi);
  if (source?.ok !== true) throw new Error('not decoded');
  const target = targetOf(source.value, 'v');
  expect(JSON.parse(encodeTarget(target))).toMatchObject({
    ...{ VolName: 'v', Portals: ['192.0.2.7:3260', '192.0.2.8:3260'], Iqn: IQN, Lun: '3', InitIface: 'default' },
    ...{ Iface: '192.0.2.7:3260:v', InitiatorName: 'iqn.2001-04.com.example:node' },
  });
  const global = iscsiGlobal('/r', target, false);
  expect(decodeTarget(encodeTarget(target), global)).toEqual(target);
  expect(decodeTarget('{"Portals":[', global)).toMatchObject({ portals: ['192.0.2.7:3260'], iqn: IQN, lun: 3, iface: '192.0.2.7:3260:v' });
  expect(decodeTarget(null, '/r/plugins/kubernetes.io/iscsi/x')).toBeNull();
});

it('a secret goes into the record of open-iscsi, whole, and into no argument', async () => {
  const fields = chapFields('session', { 'node.session.auth.username': 'me', 'node.session.auth.password': 's3cret', other: 'x' });
  const record = '# BEGIN RECORD 2.1\nnode.name = x\nnode.session.auth.authmethod = None\nnode.session.auth.password = old\n# END RECORD\n';
  expect(withFields(record, fields)).toBe(
    '# BEGIN RECORD 2.1\nnode.name = x\nnode.session.auth.authmethod = CHAP\nnode.session.auth.username = me\nnode.session.auth.password = s3cret\n# END RECORD\n',
  );
  expect(withFields(record, [['node.session.auth.password', 'a\nnode.startup = automatic']])).toBeNull();
});

it('words that could be arguments, paths or lines are refused', () => {
  const decode = (more: object) => iscsi.inline.fields.iscsi?.({ ...disk(0).iscsi, ...more } as never);
  for (const bad of [
    { iqn: 'iqn.2001-04.com.example:../x' },
    { iqn: '--help' },
    { iqn: 'iqn.2001-04.com.example:a b' },
    { targetPortal: '-p' },
    { targetPortal: '192.0.2.7/../x' },
    { portals: ['a b'] },
    { lun: 256 },
    { lun: 1.5 },
    { iscsiInterface: '../default' },
    { iscsiInterface: '-x' },
    { initiatorName: 'me' },
  ]) {
    expect(decode(bad), JSON.stringify(bad)).toMatchObject({ ok: false });
  }
  expect(decode({ targetPortal: '[fd00::7]:3261', iqn: 'eui.02004567A425678D' })).toMatchObject({
    ok: true,
    value: { portals: ['[fd00::7]:3261'] },
  });
  expect(clonedFields('iface.net = eth0\niface.iscsi_ifacename = default\niface.ip = <empty>\n', 'iqn.x')).toEqual([
    ['iface.initiatorname', 'iqn.x'],
    ['iface.net', 'eth0'],
  ]);
  const enough = (found: number, attempt: number) => enoughPaths({ found, wanted: 3, attempt });
  expect([enough(3, 1), enough(2, 1), enough(2, 2), enough(1, 4), enough(1, 5)]).toEqual([true, false, true, false, true]);
});

it('a disk of a pod of the API waits until the cluster has attached it, and stays in use until it is taken down, over a restart too', async () => {
  const cluster = { attached: [] as string[], reported: [] as string[] };
  const m = san(cluster);
  const name = `kubernetes.io/iscsi/192.0.2.7:${IQN}:1`;
  const a = m.volumeOf(disk(1), { uid: 'a' });
  await expect(a.setUp()).rejects.toThrow();
  expect([m.ledger.inUse(), m.sessions.size]).toEqual([[name], 0]);
  cluster.reported.push(name);
  await expect(a.setUp()).rejects.toThrow();
  cluster.attached.push(name);
  await a.setUp();
  // What a daemon that begins finds on the disk.
  m.ledger.release('a/kubernetes.io~iscsi/v');
  expect([m.ledger.inUse(), await m.found(), m.ledger.inUse()]).toEqual([[], ['kubernetes.io~iscsi v'], [name]]);
  await a.tearDown();
  expect(m.ledger.inUse()).toEqual([]);
});

it('a disk is mounted at once where no controller is to attach it (enableControllerAttachDetach: false)', async () => {
  const m = san({ attached: [], reported: [], controllerAttaches: false });
  const a = m.volumeOf(disk(1), { uid: 'a' });
  await a.setUp();
  expect([m.ledger.inUse(), m.sessions.size]).toEqual([[`kubernetes.io/iscsi/192.0.2.7:${IQN}:1`], 1]);
  await a.tearDown();
  expect([m.ledger.inUse(), m.sessions.size]).toEqual([[], 0]);
});

const WWN = '500a0982991b8dc5';
const FC = { fc: { targetWWNs: [WWN], lun: 2 } };
/** `multipath`: what multipathd has made of two paths. */
function fibre({ multipath = false } = {}) {
  const m = machine({
    mounter: () => ({
      tellKernel: async (path, text) => {
        m.written.push(`${path} ${text}`);
        if (!path.endsWith('/scan')) return;
        m.fs.makeDir('/dev/disk/by-path');
        await m.fs.symlink('../../sdc', `/dev/disk/by-path/pci-0000:41:00.0-fc-0x${WWN}-lun-2`).catch(() => undefined);
        if (multipath) for (const name of ['sdc', 'sdd']) m.fs.makeDir(`/sys/block/dm-3/slaves/${name}`);
      },
    }),
  });
  for (const host of ['host0', 'host1']) m.fs.makeDir(`/sys/class/scsi_host/${host}`);
  return m;
}

it('a disk of Fibre Channel is found by its target after a scan, and its device is flushed and removed with the last pod', async () => {
  const m = fibre();
  const [a, b] = [m.volumeOf(FC, { uid: 'a' }), m.volumeOf(FC, { uid: 'b' })];
  await a.setUp();
  await b.setUp();
  expect(m.written).toEqual(['/sys/class/scsi_host/host0/scan - - -', '/sys/class/scsi_host/host1/scan - - -']);
  expect(m.mounts.table[0]).toMatchObject({ path: `${ROOT}/fc/${WWN}-lun-2`, type: 'ext4' });
  await a.tearDown();
  expect(m.written).toHaveLength(2);
  await b.tearDown();
  expect([m.tools.at(-1), m.written.at(-1), m.mounts.table]).toEqual([
    'blockdev --flushbufs /dev/sdc',
    '/sys/block/sdc/device/delete 1',
    [],
  ]);
});

it('of several paths the multipath device is mounted, and flushed before each path goes', async () => {
  const m = fibre({ multipath: true });
  const a = m.volumeOf(FC, { uid: 'a' });
  await a.setUp();
  expect(m.mounts.table[0]?.source).toBe('/dev/dm-3');
  await a.tearDown();
  expect(m.tools.slice(-3)).toEqual(['multipath -f /dev/dm-3', 'blockdev --flushbufs /dev/sdc', 'blockdev --flushbufs /dev/sdd']);
  expect(m.written.slice(-2)).toEqual(['/sys/block/sdc/device/delete 1', '/sys/block/sdd/device/delete 1']);
});
