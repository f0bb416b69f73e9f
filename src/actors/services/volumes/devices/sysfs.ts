/** What the kernel shows of disks: sessions, LUNs and the multipath devices above them. Nothing here asks a server. */

import { listIfThere } from '../../../../ports/ifThere.ts';
import type { HostFs } from '../../../../ports/ports.ts';

const HOSTS = '/sys/class/iscsi_host';
const BLOCK = '/sys/block';
const BYTES_MAX = 4096;

interface Session {
  host: number;
  /** Directory of the session. */
  path: string;
}

async function textAt(fs: HostFs, path: string): Promise<string | null> {
  try {
    return new TextDecoder().decode(await fs.readFile(path, { bytesMax: BYTES_MAX })).trim();
  } catch {
    // It went while it was looked at.
    return null;
  }
}

async function sessionsOf(fs: HostFs, iqn: string): Promise<Session[]> {
  const found: Session[] = [];
  for (const name of await listIfThere(fs, HOSTS)) {
    const host = Number(/^host(\d+)$/.exec(name)?.[1] ?? Number.NaN);
    if (Number.isNaN(host)) continue;
    const device = `${HOSTS}/${name}/device`;
    for (const session of (await listIfThere(fs, device)).filter((n) => n.startsWith('session'))) {
      const path = `${device}/${session}`;
      if ((await textAt(fs, `${path}/iscsi_session/${session}/targetname`)) === iqn) found.push({ host, path });
    }
  }
  return found;
}

/** SCSI hosts of the sessions with a target, by portal: the one that was asked for, and the one that it led to. */
export async function portalHosts(fs: HostFs, iqn: string): Promise<ReadonlyMap<string, number>> {
  const hosts = new Map<string, number>();
  for (const { host, path } of await sessionsOf(fs, iqn)) {
    for (const name of (await listIfThere(fs, path)).filter((n) => n.startsWith('connection'))) {
      const at = `${path}/${name}/iscsi_connection/${name}`;
      for (const kind of ['', 'persistent_']) {
        const [address, port] = [await textAt(fs, `${at}/${kind}address`), await textAt(fs, `${at}/${kind}port`)];
        if (address !== null && port !== null) hosts.set(`${address.includes(':') ? `[${address}]` : address}:${port}`, host);
      }
    }
  }
  return hosts;
}

/** Names of the devices of one LUN, one of each session: `sdb`. */
export async function devicesOfLun(fs: HostFs, iqn: string, lun: number): Promise<string[]> {
  const found: string[] = [];
  for (const { host, path } of await sessionsOf(fs, iqn)) {
    const [device] = await listIfThere(fs, `${path}/target${host}:0:0/${host}:0:0:${lun}/block`);
    if (device !== undefined) found.push(device);
  }
  return found;
}

/** The multipath device above the first of these that has one. Paths may be links. */
export async function multipathOf(fs: HostFs, devices: readonly string[]): Promise<string | undefined> {
  const names = await Promise.all(devices.map((device) => deviceName(fs, device)));
  for (const dm of (await listIfThere(fs, BLOCK)).filter((n) => n.startsWith('dm-'))) {
    if (names.includes(dm)) return `/dev/${dm}`;
    const below = await listIfThere(fs, `${BLOCK}/${dm}/slaves`);
    if (names.some((name) => below.includes(name))) return `/dev/${dm}`;
  }
  return undefined;
}
/** Names of the devices below a multipath device. */
export function pathsBelow(fs: HostFs, dm: string): Promise<string[]> {
  return listIfThere(fs, `${BLOCK}/${dm}/slaves`);
}

/** Links of udev are relative and lead from `/dev/disk/by-…` to `/dev`. */
export async function deviceName(fs: HostFs, path: string): Promise<string> {
  const target = await fs.readlink(path).catch(() => path);
  return target.slice(target.lastIndexOf('/') + 1);
}
