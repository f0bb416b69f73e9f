/** `local` volumes on a disk in memory: directories with mount options, and devices, which are formatted only where nothing is on them. */
import { expect, test } from 'vitest';
import { checked, contentOf, preparing } from '../../../src/machines/services/volumes/devices/format.ts';
import { FACTS } from '../../machines/pods/fixtures.ts';
import { machine } from './pluginBench.ts';

const DEVICE = '/dev/sdx';
const GLOBAL = `${FACTS.rootDir}/plugins/kubernetes.io/local-volume/mounts/pv`;
const CLAIM = { persistentVolumeClaim: { claimName: 'data' } };
const pvOf = (o: { path: string; fsType?: string; mountOptions?: string[] }) => ({
  spec: {
    claimRef: { uid: 'c' },
    local: { path: o.path, ...(o.fsType === undefined ? {} : { fsType: o.fsType }) },
    ...(o.mountOptions === undefined ? {} : { mountOptions: o.mountOptions }),
  },
});
/** `blind`: blkid sees nothing on any device, until that is over. */
function withDevice() {
  let blind = false;
  const m = machine({
    special: new Map([[DEVICE, 'block' as const]]),
    mounter: (real) => ({
      tool: (name, args, call) =>
        blind && name === 'blkid' ? Promise.resolve({ code: 2, out: '', err: '' }) : real.tool(name, args, call),
    }),
  });
  return {
    ...m,
    blind() {
      blind = true;
      return {
        over() {
          blind = false;
        },
      };
    },
  };
}
const it = test.extend('m', () => withDevice());
const dirOf = (uid: string) => `${FACTS.rootDir}/pods/${uid}/volumes/kubernetes.io~local-volume/pv`;

it('an empty device is given a file system once, mounted for the node, and bound for each pod', async ({ m }) => {
  const pv = pvOf({ path: DEVICE, fsType: 'xfs', mountOptions: ['noatime'] });
  const [a, b] = [m.volumeOf(CLAIM, { uid: 'a', pv }), m.volumeOf(CLAIM, { uid: 'b', pv })];
  // At once: neither may format what the other has just mounted.
  await Promise.all([a.setUp(), b.setUp()]);
  expect(m.tools.filter((t) => t.startsWith('mkfs'))).toEqual(['mkfs.xfs -f /dev/sdx']);
  expect(m.mounts.table.map(({ path, type, source, options }) => [path, type, source, options])).toEqual([
    [GLOBAL, 'xfs', DEVICE, ['noatime', 'defaults']],
    [dirOf('a'), 'none', GLOBAL, ['bind', 'remount', 'noatime']],
    [dirOf('b'), 'none', GLOBAL, ['bind', 'remount', 'noatime']],
  ]);
  expect((await m.found()).sort()).toEqual(['kubernetes.io~local-volume v', 'kubernetes.io~local-volume v']);
  await a.tearDown();
  expect(m.mounts.table.map(({ path }) => path)).toEqual([GLOBAL, dirOf('b')]);
  await b.tearDown();
  expect([m.mounts.table, await m.found(), m.fs.has(GLOBAL)]).toEqual([[], [], false]);
});

it('a device with data on it is checked and mounted, never formatted; a read-only one is not touched before', async ({ m }) => {
  m.mounts.formatted.set(DEVICE, 'ext4');
  const pv = pvOf({ path: DEVICE });
  const rw = m.volumeOf(CLAIM, { uid: 'a', pv });
  await rw.setUp();
  await rw.tearDown();
  expect(m.tools).toEqual([`blkid -p -s TYPE -s PTTYPE -o export ${DEVICE}`, `fsck -a ${DEVICE}`]);
  const ro = m.volumeOf({ persistentVolumeClaim: { claimName: 'data', readOnly: true } }, { uid: 'b', pv });
  await ro.setUp();
  expect([m.tools.length, m.mounts.overwritten]).toEqual([3, []]);
  expect(m.mounts.table.map(({ options }) => options)).toEqual([
    ['ro', 'defaults'],
    ['bind', 'remount', 'ro'],
  ]);
});

it('each step that a crash cut off is taken again, and what was mounted by then goes with the pod', async () => {
  for (const failing of ['blkid', 'dd', 'mkfs.ext4', 'mount', 'unmount']) {
    const m = withDevice();
    const volume = m.volumeOf(CLAIM, { uid: 'a', pv: pvOf({ path: DEVICE, mountOptions: ['noatime'] }) });
    let left = 1;
    m.mounts.trouble.failing = (op, path) => (op === failing && path !== GLOBAL && left-- > 0 ? 'EIO' : undefined);
    await volume.setUp().catch(() => undefined);
    if (failing !== 'unmount') await volume.setUp();
    await volume.tearDown().catch(() => undefined);
    await volume.tearDown();
    expect([failing, m.mounts.table, await m.found(), m.mounts.overwritten]).toEqual([failing, [], [], []]);
  }
});

it('a device that cannot be read is not taken for an empty one', async ({ m }) => {
  m.mounts.formatted.set(DEVICE, 'ext4');
  let unread = true;
  const real = m.mounts.trouble.failing;
  m.mounts.trouble.failing = (op, path) => (op === 'dd' && unread ? 'EIO' : real(op, path));
  const blind = m.blind();
  const volume = m.volumeOf(CLAIM, { uid: 'a', pv: pvOf({ path: DEVICE }) });
  await expect(volume.setUp()).rejects.toThrow('EIO');
  unread = false;
  blind.over();
  await volume.setUp();
  expect([m.mounts.overwritten, m.tools.filter((t) => t.startsWith('mkfs'))]).toEqual([[], []]);
});

it('a global mount stays for a pod whose record is lost but whose mount is there', async ({ m }) => {
  const volume = m.volumeOf(CLAIM, { uid: 'a', pv: pvOf({ path: DEVICE }) });
  await volume.setUp();
  m.mounts.put({ path: `${FACTS.rootDir}/pods/of-another-agent/volumes/kubernetes.io~local-volume/pv`, type: 'ext4', source: DEVICE });
  await volume.tearDown();
  expect(m.mounts.table.map(({ path }) => path)).toContain(GLOBAL);
});

it('a directory is bound with its mount options, and a path that is neither is refused', async () => {
  const m = machine();
  m.fs.makeDir('/srv/data');
  const dir = m.volumeOf(CLAIM, { uid: 'a', pv: pvOf({ path: '/srv/data', mountOptions: ['noexec'] }) });
  await dir.setUp();
  expect(m.mounts.table.map(({ source, options }) => [source, options])).toEqual([['/srv/data', ['bind', 'remount', 'noexec']]]);
  await dir.tearDown();
  expect([m.mounts.table, m.tools]).toEqual([[], []]);
  const absent = m.volumeOf(CLAIM, { uid: 'b', pv: pvOf({ path: '/srv/none' }) });
  await expect(absent.setUp()).rejects.toThrow('path "/srv/none" does not exist');
});

it('nothing is formatted on the word of a blkid that could not look', () => {
  const says = (code: number, out = '', err = '') => contentOf({ code, out, err }, DEVICE);
  expect(says(2)).toEqual({ ok: true, value: '' });
  expect(says(0, 'DEVNAME=/dev/sdx\nTYPE=ext4\n')).toEqual({ ok: true, value: 'ext4' });
  expect(says(0, 'PTTYPE=gpt\n')).toEqual({ ok: true, value: 'unknown data, probably partitions' });
  for (const answer of [
    says(2, '', 'blkid: error: /dev/sdx: Input/output error'),
    says(4),
    says(8, '', 'ambivalent result'),
    says(0),
    says(127),
  ]) {
    expect(answer).toMatchObject({ ok: false, message: expect.stringContaining('nothing is done to it') });
  }
  const of = (content: string, fsType = 'ext4', readOnly = false) => preparing({ content, device: DEVICE, fsType, readOnly });
  expect(of('', 'ext3')).toEqual({ ok: true, value: { tool: 'mkfs.ext3', args: ['-F', '-m0', DEVICE] } });
  expect(of('', '../bin/sh')).toMatchObject({ ok: false });
  expect(of('', 'ext4', true)).toMatchObject({ ok: false, message: expect.stringContaining('cannot mount unformatted disk') });
  expect(of('unknown data, probably partitions')).toMatchObject({ ok: false });
  expect(of('crypto_LUKS')).toEqual({ ok: true, value: { tool: 'fsck', args: ['-a', DEVICE] } });
  expect([0, 1, 2, 4, 5, 8, 12, 127].filter((code) => !checked({ code, out: '', err: '' }, DEVICE).ok)).toEqual([4, 5]);
});
