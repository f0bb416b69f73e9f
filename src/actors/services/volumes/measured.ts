/** What operations on volumes took and how they ended, under the reference's names. */
import { STORAGE_SECONDS } from '../../../machines/edge/https/buckets.ts';
import { pluginName, type VolumeRef } from '../../../machines/services/volumes/paths.ts';
import type { Ports } from '../../../ports/ports.ts';

export type StorageOperation = 'volume_mount' | 'volume_unmount';

export type MeasureStorage = (operation: StorageOperation, ref: VolumeRef, signal: AbortSignal) => <T>(work: Promise<T>) => Promise<T>;

export function storageMetrics({ metrics, clock }: Pick<Ports, 'metrics' | 'clock'>): MeasureStorage {
  const duration = metrics.histogram('storage_operation_duration_seconds', 'Storage operation duration', STORAGE_SECONDS, [
    'volume_plugin',
    'operation_name',
    'status',
    'migrated',
  ]);
  const errors = metrics.counter('storage_operation_errors_total', 'Storage operation errors', ['volume_plugin', 'operation_name']);
  return (operation_name, ref, signal) => {
    const beganMs = clock.monoMs();
    const volume_plugin = pluginName(ref.plugin);
    const ended = (status: 'success' | 'fail-unknown'): void => {
      // What was called off neither succeeded nor failed.
      if (signal.aborted) return;
      duration.observe((clock.monoMs() - beganMs) / 1000, { volume_plugin, operation_name, status, migrated: 'false' });
      if (status !== 'success') errors.inc({ volume_plugin, operation_name });
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
}
