/** What operations on volumes took and how they ended, under the reference's names. */

import { pluginName, type VolumeRef, volumeKey } from '../../../machines/pod/volumes/volumePaths.ts';
import { STORAGE_SECONDS } from '../../../machines/text/buckets.ts';
import type { Ports } from '../../../ports/ports.ts';
import { addLabelFamilies } from './csi/labels.ts';

type StorageOperation = 'volume_mount' | 'volume_unmount' | 'volume_fs_resize';
/** The whole of a mount, all its attempts together. */
const MOUNT = 'overall_volume_mount';

export interface StorageMetrics {
  operation(operation: StorageOperation, ref: VolumeRef, signal: AbortSignal): <T>(work: Promise<T>) => Promise<T>;
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
  const mounted = (ref: VolumeRef, beganMs: number, ok: boolean): void => {
    const key = volumeKey(ref);
    const sinceMs = tried.get(key) ?? beganMs;
    if (ok) {
      tried.delete(key);
      whole.observe((clock.monoMs() - sinceMs) / 1000, { plugin_name: pluginName(ref.plugin), operation_name: MOUNT });
    } else tried.set(key, sinceMs);
  };
  const operation: StorageMetrics['operation'] = (operation_name, ref, signal) => {
    const beganMs = clock.monoMs();
    const volume_plugin = pluginName(ref.plugin);
    const ended = (status: 'success' | 'fail-unknown'): void => {
      // What was called off neither succeeded nor failed.
      if (signal.aborted) return;
      duration.observe((clock.monoMs() - beganMs) / 1000, { volume_plugin, operation_name, status, migrated: 'false' });
      if (operation_name === 'volume_mount') mounted(ref, beganMs, status === 'success');
      else if (operation_name === 'volume_unmount') tried.delete(volumeKey(ref));
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
    found(o) {
      rebuilt.inc(undefined, o.known + o.strange);
      strange.inc(undefined, o.strange);
    },
  };
}
