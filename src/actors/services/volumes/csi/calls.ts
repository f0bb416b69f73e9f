/** Calls of drivers: who serves them now, their deadline, how long they took. */

import { withoutSecrets } from '../../../../machines/pod/peers/withoutSecrets.ts';
import type { VolumeRef } from '../../../../machines/pod/volumes/volumePaths.ts';
import type { DriversView } from '../../../../machines/services/plugins/messages.ts';
import { STORAGE_SECONDS } from '../../../../machines/text/buckets.ts';
import type { CsiMethod, CsiRequest, CsiResponse } from '../../../../machines/wire/csi.ts';
import type { Ports } from '../../../../ports/ports.ts';
import { CODE_NAMES, CsiError } from '../../../../ports/sockets/csi.ts';
import type { PeerCalls } from '../../../foundation/client.ts';

/** Deadline of every call of a driver (resources and volumes 8.1). */
const RPC_TIMEOUT_MS = 120_000;
/** In place of a gRPC code where the call never reached the driver. */
const NO_CODE = 'unknown-non-grpc';

/** A driver as it is registered at this moment. */
export interface Driver {
  call<M extends CsiMethod>(method: M, request: CsiRequest<M>, signal: AbortSignal): Promise<CsiResponse<M>>;
  capabilities(signal: AbortSignal): Promise<ReadonlySet<string>>;
}

export interface DriverUse {
  who: string;
  /** What it is asked about. */
  of: Pick<VolumeRef, 'uid' | 'name'>;
  /** For a volume of an old plugin. */
  migrated?: boolean;
}
/** Where drivers are found, and how they are called. */
export interface Drivers {
  ports: Ports;
  drivers(): DriversView;
  /** Why a driver of that name cannot be registered; '' = nothing is known. */
  unregistered(name: string): string;
  calls: PeerCalls;
}

/** @throws in words of the reference where no driver of that name is registered, and why it is not. */
export function driverNamed(o: Drivers, name: string, { who, of, migrated = false }: DriverUse): Driver {
  const found = o.drivers().get(name);
  const { csi, clock, metrics } = o.ports;
  if (found === undefined) {
    const why = o.unregistered(name);
    const missing = `driver name ${name} not found in the list of registered CSI drivers`;
    throw new Error(`kubernetes.io/csi: ${who}: ${missing}${why === '' ? '' : `; it cannot be registered: ${why}`}`);
  }
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
      const about = { peer: `CSI driver ${name}`, name, call: method, about: `volume ${of.name}`, uid: of.uid };
      const ask = () => csi.call(found.endpoint, method, request, { timeoutMs: RPC_TIMEOUT_MS, signal });
      const answer = await o.calls.during(about, ask, { signal, secrets: secretsIn(request) });
      note('OK');
      return answer;
    } catch (error) {
      note(error instanceof CsiError ? (CODE_NAMES[error.code] ?? String(error.code)) : NO_CODE);
      // It becomes an event of the pod.
      const { code, details } = error instanceof CsiError ? error : { code: 0, details: '' };
      const shown = withoutSecrets(details, secretsIn(request));
      throw shown === details ? error : new CsiError({ method, code, details: shown });
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

function secretsIn(request: object): string[] {
  return 'secrets' in request ? Object.values(request.secrets as Readonly<Record<string, string>>) : [];
}
