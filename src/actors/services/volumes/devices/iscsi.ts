/** Logs in to a disk of a SAN, and out of it. What another volume of the same target does meanwhile waits. */

import {
  admin,
  chapFields,
  decodeTarget,
  deviceNamed,
  encodeTarget,
  enoughPaths,
  ISCSI_JSON,
  iscsiRoot,
  NODE_SETTINGS,
  recordName,
  sessionName,
  type Target,
  transportOf,
} from '../../../../machines/services/volumes/devices/iscsi.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import { listIfThere, textIfThere, unlinkIfThere } from '../../../../ports/ifThere.ts';
import { DIR_MODE, serverCall } from '../disk/limits.ts';
import { mounterOf, type VolumeTools } from '../kind.ts';
import { cloneIface, iscsiadm, tellRecords, withoutFail } from './iscsiadm.ts';
import { removeDevices } from './removal.ts';
import { devicesOfLun, multipathOf, portalHosts } from './sysfs.ts';
import { untilThere } from './waiting.ts';

export interface IscsiJob {
  target: Target;
  global: string;
  /** `secret` is one. */
  chap: { discovery: boolean; session: boolean; secret: Readonly<Record<string, string>> };
}

const BY_PATH = '/dev/disk/by-path';
const DEVICE_WAIT_MS = 30_000;
const MULTIPATH_WAIT_MS = 10_000;
const JSON_BYTES_MAX = 64 * 1024;

const alone = <T>(o: VolumeTools, iqn: string, work: () => Promise<T>, signal: AbortSignal): Promise<T> =>
  o.csi.ledger.run(`iscsi ${iqn}`, signal, work);

/** The path of its device, or of the multipath device above. */
export function attachIscsi(o: VolumeTools, job: IscsiJob, signal: AbortSignal): Promise<string> {
  const { target, global } = job;
  const { fs } = o.ports;
  const work = async (): Promise<string> => {
    await fs.mkdirp(global, DIR_MODE);
    // Before the first session: a take-down after a crash has to know which one it was.
    await fs.writeFile(`${global}/${ISCSI_JSON}`, encodeTarget(target));
    const shown = await iscsiadm(o, admin.showIface(target.initIface), signal);
    if (target.iface !== target.initIface) await cloneIface(o, { target, shown }, signal);
    const devices = await paths(o, { ...job, transport: transportOf(shown) }, signal);
    const multipath = () => multipathOf(fs, devices);
    const above = target.portals.length > 1 ? await untilThere(o, MULTIPATH_WAIT_MS, multipath) : await multipath();
    return above ?? devices[0] ?? '';
  };
  return alone(o, target.iqn, work, signal);
}

async function paths(o: VolumeTools, job: IscsiJob & { transport: string }, signal: AbortSignal): Promise<string[]> {
  const { portals, iqn } = job.target;
  const found = new Map<string, string>();
  let last: unknown;
  for (let attempt = 1; ; attempt++) {
    for (const portal of portals) {
      if (found.has(portal)) continue;
      try {
        found.set(portal, await pathBy(o, { ...job, portal }, signal));
      } catch (error) {
        last = error;
      }
    }
    if (found.size === 0) throw new Error(`iscsi: failed to get any path for iscsi disk, last err seen: ${messageOf(last)}`);
    if (enoughPaths({ found: found.size, wanted: portals.length, attempt })) break;
  }
  if (found.size < portals.length) {
    o.log.warn({ iqn, found: found.size, of: portals.length, err: messageOf(last) }, 'an iSCSI disk has not all of its paths');
  }
  return [...found.values()];
}

async function pathBy(o: VolumeTools, job: IscsiJob & { transport: string; portal: string }, signal: AbortSignal): Promise<string> {
  const { target, portal, transport } = job;
  const { fs } = o.ports;
  const hostOf = async () => (await portalHosts(fs, target.iqn)).get(portal);
  let host = await hostOf();
  if (host === undefined) {
    await login(o, job, signal);
    host = await hostOf();
  }
  if (host === undefined) throw new Error(`no SCSI host for portal ${portal} after the login`);
  // This LUN alone: the others of the target are none of this node's.
  await mounterOf(o).tellKernel(`/sys/class/scsi_host/host${host}/scan`, `0 0 ${target.lun}`, serverCall(signal));
  const look = async () => deviceNamed(await listIfThere(fs, BY_PATH), portal, { ...target, transport });
  const name = await untilThere(o, DEVICE_WAIT_MS, look);
  if (name === undefined) throw new Error(`no device of portal ${portal} came up at ${BY_PATH} within ${DEVICE_WAIT_MS / 1000} s`);
  return `${BY_PATH}/${name}`;
}

async function login(o: VolumeTools, { target, portal, chap }: IscsiJob & { portal: string }, signal: AbortSignal): Promise<void> {
  const { iface, iqn } = target;
  const run = (args: readonly string[]) => iscsiadm(o, args, signal);
  // Each of these may be there already, or be unknown to an old open-iscsi.
  const attempt = (args: readonly string[]) => run(args).catch(() => undefined);
  await attempt(admin.newDiscovery(portal, iface));
  try {
    const told = { below: 'send_targets', names: [recordName(portal)], fields: chapFields('discovery', chap.secret) };
    if (chap.discovery) await tellRecords(o, told);
    await run(admin.discover(portal, iface));
  } catch (error) {
    await attempt(admin.deleteDiscovery(portal, iface));
    throw error;
  }
  for (const setting of NODE_SETTINGS) await attempt(admin.setNode(portal, target, setting));
  try {
    const told = { below: 'nodes', names: [iqn, recordName(portal), iface], fields: chapFields('session', chap.secret) };
    if (chap.session) await tellRecords(o, told);
    await run(admin.login(portal, target));
  } catch (error) {
    await attempt(admin.deleteNode(portal, target));
    throw error;
  }
}

/** No pod has the disk of `global` any more. The session ends with the last disk of its target. */
export async function detachIscsi(o: VolumeTools, global: string, signal: AbortSignal): Promise<void> {
  const { fs } = o.ports;
  const target = decodeTarget(await textIfThere(o.ports.fs, `${global}/${ISCSI_JSON}`, JSON_BYTES_MAX), global);
  if (target === null) throw new Error(`${global} does not say which iSCSI disk it is of; it is left alone`);
  const work = async (): Promise<void> => {
    await removeDevices(o, await devicesOfLun(fs, target.iqn, target.lun), signal);
    if (!(await isSessionUsed(o, target, global))) await logout(o, target, signal);
    await unlinkIfThere(fs, `${global}/${ISCSI_JSON}`);
  };
  return alone(o, target.iqn, work, signal);
}

/** The reference counts these directories, too. */
async function isSessionUsed(o: VolumeTools, target: Target, global: string): Promise<boolean> {
  const root = iscsiRoot(o.facts().rootDir);
  for (const base of [root, `${root}/volumeDevices`]) {
    for (const iface of (await listIfThere(o.ports.fs, base)).filter((name) => name.startsWith('iface-'))) {
      const disks = await listIfThere(o.ports.fs, `${base}/${iface}`);
      if (disks.some((disk) => disk.startsWith(`${sessionName(target)}-lun-`) && `${base}/${iface}/${disk}` !== global)) return true;
    }
  }
  return false;
}

async function logout(o: VolumeTools, target: Target, signal: AbortSignal): Promise<void> {
  const { portals, iface, initiatorName, volume } = target;
  for (const portal of portals) {
    await withoutFail(o, admin.logout(portal, target), signal);
    await withoutFail(o, admin.deleteNode(portal, target), signal);
  }
  // The interface was made for this volume.
  if (initiatorName !== '' && iface === `${portals[0]}:${volume}`) await withoutFail(o, admin.deleteIface(iface), signal);
}
