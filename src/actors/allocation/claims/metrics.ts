/** The kubelet's metrics of dynamic resources. */
import type { ClaimRecord } from '../../../machines/allocation/claims/types.ts';
import { gaugeRows } from '../../../ports/gaugeRows.ts';
import type { Ports } from '../../../ports/ports.ts';
import { CODE_NAMES, CsiError } from '../../../ports/sockets/csi.ts';

/** Buckets of the reference: 15 from 0.1 s to 40 s, since a call may take 45 s. */
const BUCKETS = Array.from({ length: 15 }, (_, i) => 0.1 * (40 / 0.1) ** (i / 14));
const ANY_DRIVER = '<any>';

export interface ClaimMetrics {
  operation(name: 'PrepareResources' | 'UnprepareResources', ms: number, isError: boolean): void;
  call(driver: string, method: string, ms: number, error: unknown): void;
  /** Claims that are prepared, by driver. */
  inUse(records: ReadonlyMap<string, ClaimRecord>): void;
}

export function claimMetrics(metrics: Ports['metrics']): ClaimMetrics {
  const operations = metrics.histogram(
    'dra_operations_duration_seconds',
    'Time that all ResourceClaims of a pod took when it started or stopped, by operation (PrepareResources, UnprepareResources) and its success',
    BUCKETS,
    ['operation_name', 'is_error'],
  );
  const calls = metrics.histogram('dra_grpc_operations_duration_seconds', 'Duration in seconds of the DRA gRPC operations', BUCKETS, [
    'driver_name',
    'method_name',
    'grpc_status_code',
  ]);
  const help = 'ResourceClaims in use on the node, by driver and over all drivers (<any>). A claim may have devices of several drivers';
  const show = gaugeRows(metrics.gauge('dra_resource_claims_in_use', help, ['driver_name']));
  return {
    operation: (operation_name, ms, isError) => operations.observe(ms / 1000, { operation_name, is_error: String(isError) }),
    call(driver_name, method_name, ms, error) {
      const grpc_status_code =
        error === null ? 'OK' : error instanceof CsiError ? (CODE_NAMES[error.code] ?? String(error.code)) : 'Unknown';
      calls.observe(ms / 1000, { driver_name, method_name, grpc_status_code });
    },
    inUse(records) {
      const prepared = [...records.values()].filter((r) => r.prepared);
      const users = prepared.flatMap(({ drivers }) => [...drivers.keys()]);
      show([[{ driver_name: ANY_DRIVER }, prepared.length], ...users.map((driver_name) => [{ driver_name }, 1] as const)]);
    },
  };
}
