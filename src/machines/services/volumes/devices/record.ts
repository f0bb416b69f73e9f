/**
 * Where the device of a volume is mounted for all pods of the node. A record is written before anything is done and
 * removed last, so records are the count of users of a device, and a crash loses none. Pure.
 */

import { jsonOf, recordOf, textOf } from '../../../shape/lenient.ts';

/** Beside the marker of the volume. */
export const DEVICE_RECORD = 'device.json';

export interface DeviceRecord {
  /** Directory of the node, the same for each pod that has the device. */
  global: string;
  /** What the cluster calls it, where it attached it for this node; else ''. */
  attached: string;
}

export function encodeDeviceRecord({ global, attached }: DeviceRecord): string {
  return JSON.stringify({ global, ...(attached === '' ? {} : { attached }) });
}

/** Null for what is no such file. `rootDir`: of the node; nothing outside of its plugins is believed. */
export function decodeDeviceRecord(text: string, rootDir: string): DeviceRecord | null {
  const { global, attached } = recordOf(jsonOf(text));
  if (typeof global !== 'string' || !global.startsWith(`${rootDir}/plugins/`) || global.split('/').includes('..')) return null;
  return { global, attached: textOf(attached) };
}

/** Directories in which the reference mounts devices of a kind for all pods. */
export function pluginRoot(rootDir: string, plugin: string): string {
  return `${rootDir}/plugins/kubernetes.io/${plugin}`;
}
