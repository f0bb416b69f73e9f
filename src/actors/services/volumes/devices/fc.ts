/** Finds a disk of Fibre Channel, and takes its devices from the kernel when no pod has it any more. */

import type { FcDisk } from '../../../../machines/pod/volumes/kinds/fc.ts';
import { diskOfGlobal, linksNamed, linksOf } from '../../../../machines/services/volumes/devices/fc.ts';
import { messageOf } from '../../../../machines/text/errors.ts';
import { listIfThere } from '../../../../ports/ifThere.ts';
import { DIR_MODE, serverCall } from '../disk/limits.ts';
import { mounterOf, type VolumeTools } from '../kind.ts';
import { removeDevices } from './removal.ts';
import { deviceName, multipathOf, pathsBelow } from './sysfs.ts';
import { untilThere } from './waiting.ts';

const HOSTS = '/sys/class/scsi_host';
/** What udev takes to make a link after a card has found a disk. */
const LINK_WAIT_MS = 5_000;

/** A multipath device comes before a single path; cards are asked to look again only where there is none. */
export async function attachFc(o: VolumeTools, { disk, global }: { disk: FcDisk; global: string }, signal: AbortSignal): Promise<string> {
  const { fs } = o.ports;
  await fs.mkdirp(global, DIR_MODE);
  const above = await multipathOf(fs, await linksTo(o, disk));
  if (above !== undefined) return above;
  for (const host of await listIfThere(fs, HOSTS)) {
    // One card that does not answer hides no disk of another.
    await mounterOf(o)
      .tellKernel(`${HOSTS}/${host}/scan`, '- - -', serverCall(signal))
      .catch((error: unknown) => o.log.warn({ host, err: messageOf(error) }, 'a card did not look for disks'));
  }
  const links = await untilThere(o, LINK_WAIT_MS, async () => {
    const found = await linksTo(o, disk);
    return found.length === 0 ? undefined : found;
  });
  const [link] = links ?? [];
  if (links === undefined || link === undefined) throw new Error('no fc disk found');
  return (await multipathOf(fs, links)) ?? link;
}

export async function detachFc(o: VolumeTools, global: string, signal: AbortSignal): Promise<void> {
  const { fs } = o.ports;
  const disk = diskOfGlobal(global);
  if (disk === null) return;
  const links = await linksTo(o, disk);
  const dm = await multipathOf(fs, links);
  const names =
    dm === undefined ? await Promise.all(links.map((link) => deviceName(fs, link))) : await pathsBelow(fs, dm.slice('/dev/'.length));
  await removeDevices(o, [...new Set(names)], signal);
}

async function linksTo({ ports: { fs } }: VolumeTools, disk: FcDisk): Promise<string[]> {
  const dir = linksOf(disk);
  return linksNamed(await listIfThere(fs, dir), disk).map((name) => `${dir}/${name}`);
}
