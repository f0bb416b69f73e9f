/** What operations on volumes took and how they ended, under the reference's names. */

import { pluginName, standOf, type VolumeRef, volumeKey } from '../../../machines/pod/volumes/volumePaths.ts';
import { STORAGE_SECONDS } from '../../../machines/text/buckets.ts';
import type { Ports } from '../../../ports/ports.ts';
import { addLabelFamilies } from './csi/labels.ts';

type StorageOperation = 'volume_mount' | 'volume_unmount' | 'volume_fs_resize';
/** Containers that are given a device map it. */
const OF_DEVICES: Readonly<Record<StorageOperation, string>> = {
  volume_mount: 'map_volume',
  volume_unmount: 'unmap_volume',
  volume_fs_resize: 'volume_fs_resize',
};
/** What serves a volume, once that is known: a claim does not say it. */
export interface Served {
  /** The kubelet's name, with the driver after it: `kubernetes.io/csi:DRIVER`. */
  plugin: string;
  /** It is of an old plugin, and was translated. */
  migrated: boolean;
  device: boolean;
  /** Its PersistentVolume, by which messages call it. Absent: they call it as the pod does. */
  volume?: string;
}
/** The whole of a mount, all its attempts together. */
const MOUNT = 'overall_volume_mount';

export interface StorageMetrics {
  operation(operation: StorageOperation, ref: VolumeRef, signal: AbortSignal): <T>(work: Promise<T>) => Promise<T>;
  serves(ref: VolumeRef, by: Served): void;
  /** `key`: its {@link volumeKey}, where the caller has it. */
  servedBy(ref: VolumeRef, key?: string): Served;
  /** Volumes that a look at the disk found at the start of the volume manager; `strange`: of kinds that it does not know. */
  found(o: { known: number; strange: number }): void;
}

export function storageMetrics({ metrics, clock }: Pick<Ports, 'metrics' | 'clock'>): StorageMetrics {
  const duration = metrics.histogram('storage_operation_duration_seconds', 'Storage operation duration', STORAGE_SECONDS, [
    'volume_plugin',
    'operation_name',
    'status',
    'migrated',
  ]);
  const whole = metrics.histogram(
    'volume_operation_total_seconds',
    'Seconds from the first attempt at a volume operation until it succeeded',
    STORAGE_SECONDS,
    ['plugin_name', 'operation_name'],
  );
  const rebuilt = metrics.counter('reconstruct_volume_operations_total', 'Volumes that were found on disk when the volume manager started');
  const strange = metrics.counter(
    'reconstruct_volume_operations_errors_total',
    'Volumes that were found on disk when the volume manager started, of kinds that it does not know',
  );
  addLabelFamilies(metrics);
  /** Since when a mount has been tried, by volume. */
  const tried = new Map<string, number>();
  const served = new Map<string, Served>();
  /** By the directory of the plugin: a node may have a thousand volumes, and all are shown anew with each change. */
  const plain = new Map<string, Served>();
  const plainly = (directory: string): Served => {
    const by = plain.get(directory) ?? { plugin: pluginName(directory), migrated: false, device: false };
    plain.set(directory, by);
    return by;
  };
  const servedBy = (ref: VolumeRef, key = volumeKey(ref)): Served => served.get(key) ?? plainly(standOf(ref).plugin);
  const mounted = (ref: VolumeRef, beganMs: number, ok: boolean): void => {
    const key = volumeKey(ref);
    const sinceMs = tried.get(key) ?? beganMs;
    if (ok) {
      tried.delete(key);
      whole.observe((clock.monoMs() - sinceMs) / 1000, { plugin_name: servedBy(ref).plugin, operation_name: MOUNT });
    } else tried.set(key, sinceMs);
  };
  const operation: StorageMetrics['operation'] = (what, ref, signal) => {
    const beganMs = clock.monoMs();
    const ended = (status: 'success' | 'fail-unknown'): void => {
      // What was called off neither succeeded nor failed.
      if (signal.aborted) return;
      const { plugin, migrated, device } = servedBy(ref);
      const operation_name = device ? OF_DEVICES[what] : what;
      const labels = { volume_plugin: plugin, operation_name, status, migrated: String(migrated) };
      duration.observe((clock.monoMs() - beganMs) / 1000, labels);
      if (what === 'volume_mount') mounted(ref, beganMs, status === 'success');
      if (what !== 'volume_unmount') return;
      tried.delete(volumeKey(ref));
      if (status === 'success') served.delete(volumeKey(ref));
    };
    return async (work) => {
      try {
        const value = await work;
        ended('success');
        return value;
      } catch (error) {
        ended('fail-unknown');
        throw error;
      }
    };
  };
  return {
    operation,
    serves: (ref, by) => void served.set(volumeKey(ref), by),
    servedBy,
    found(o) {
      rebuilt.inc(undefined, o.known + o.strange);
      strange.inc(undefined, o.strange);
    },
  };
}
