/** Where the disks of Fibre Channel show, and the reference's directories of them. Pure. */

import type { FcDisk } from '../../../pod/volumes/kinds/fc.ts';
import { pluginRoot } from './record.ts';

export const fcRoot = (rootDir: string): string => pluginRoot(rootDir, 'fc');
/** `block`: containers are given the device itself. */
export function fcGlobal(rootDir: string, disk: FcDisk, block: boolean): string {
  const name = disk.by === 'target' ? `${disk.wwns.join('-')}-lun-${disk.lun}` : disk.wwids.join('-');
  return `${fcRoot(rootDir)}${block ? '/volumeDevices' : ''}/${name}`;
}
/** Which disk a directory is of; null: the name says none. */
export function diskOfGlobal(global: string): FcDisk | null {
  const name = global.slice(global.lastIndexOf('/') + 1);
  const found = /^(.+)-lun-(\d+)$/.exec(name);
  if (found !== null) return { by: 'target', wwns: (found[1] ?? '').split('-'), lun: Number(found[2]) };
  return name === '' ? null : { by: 'id', wwids: name.split('-') };
}
/** As the cluster calls it. */
export function fcUniqueName(disk: FcDisk): string {
  return `kubernetes.io/fc/${disk.by === 'target' ? `[${disk.wwns.join(' ')}]:${disk.lun}` : `[${disk.wwids.join(' ')}]`}`;
}

/** Directory of links in which such a disk shows. */
export function linksOf(disk: FcDisk): string {
  return disk.by === 'target' ? '/dev/disk/by-path' : '/dev/disk/by-id';
}
/** Links of the disk among those there: one for each of its names that has one. */
export function linksNamed(names: readonly string[], disk: FcDisk): string[] {
  if (disk.by === 'id') return disk.wwids.map((id) => `scsi-${id}`).filter((link) => names.includes(link));
  return disk.wwns.flatMap((wwn) => {
    const end = `fc-0x${wwn}-lun-${disk.lun}`;
    return names.filter((name) => name === end || (name.startsWith('pci-') && name.endsWith(`-${end}`)));
  });
}
