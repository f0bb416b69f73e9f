/** Calls of drivers: who serves them now, their deadline, how long they took. */

import type { DriversView } from '../../../../machines/services/plugins/messages.ts';
import { STORAGE_SECONDS } from '../../../../machines/text/buckets.ts';
import type { CsiMethod, CsiRequest, CsiResponse } from '../../../../machines/wire/csi.ts';
import type { Ports } from '../../../../ports/ports.ts';
import { CODE_NAMES, CsiError } from '../../../../ports/sockets/csi.ts';

/** Deadline of every call of a driver (resources and volumes 8.1). */
const RPC_TIMEOUT_MS = 120_000;
/** In place of a gRPC code where the call never reached the driver. */
const NO_CODE = 'unknown-non-grpc';

/** A driver as it is registered at this moment. */
export interface Driver {
  call<M extends CsiMethod>(method: M, request: CsiRequest<M>, signal: AbortSignal): Promise<CsiResponse<M>>;
  capabilities(signal: AbortSignal): Promise<ReadonlySet<string>>;
}

/** `migrated`: for a volume of an old plugin. @throws in words of the reference where no driver of that name is registered. */
export function driverNamed(
  o: { ports: Ports; drivers(): DriversView },
  name: string,
  { who, migrated = false }: { who: string; migrated?: boolean },
): Driver {
  const found = o.drivers().get(name);
  const { csi, clock, metrics } = o.ports;
  if (found === undefined)
    throw new Error(`kubernetes.io/csi: ${who}: driver name ${name} not found in the list of registered CSI drivers`);
  if (csi === undefined) throw new Error('this node cannot speak to plugins');
  const seconds = metrics.histogram(
    'csi_operations_seconds',
    'Container Storage Interface operation duration with gRPC error code status total',
    STORAGE_SECONDS,
    ['driver_name', 'method_name', 'grpc_status_code', 'migrated'],
  );
  const call = async <M extends CsiMethod>(method: M, request: CsiRequest<M>, signal: AbortSignal): Promise<CsiResponse<M>> => {
    const began = clock.monoMs();
    const note = (code: string) =>
      seconds.observe((clock.monoMs() - began) / 1000, {
        driver_name: name,
        method_name: `/csi.v1.Node/${method}`,
        grpc_status_code: code,
        migrated: String(migrated),
      });
    try {
      const answer = await csi.call(found.endpoint, method, request, { timeoutMs: RPC_TIMEOUT_MS, signal });
      note('OK');
      return answer;
    } catch (error) {
      note(error instanceof CsiError ? (CODE_NAMES[error.code] ?? String(error.code)) : NO_CODE);
      throw error;
    }
  };
  return {
    call,
    async capabilities(signal) {
      const { capabilities } = await call('NodeGetCapabilities', {}, signal);
      return new Set(capabilities.flatMap((c) => (c.rpc === undefined || c.rpc === null ? [] : [c.rpc.type])));
    },
  };
}
