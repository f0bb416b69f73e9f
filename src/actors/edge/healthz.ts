/**
 * State held: an open TCP port.
 * Lost on restart: requests in progress.
 * Rebuilt from: nothing needed.
 */
import type { ServerEvent } from '../../machines/edge/serverMachine.ts';
import type { ActorSpec } from '../supervision/types.ts';
import { healthRoutes } from './healthChecks.ts';
import { router, serverSpec } from './server.ts';

export interface HealthzOptions {
  host: string;
  port: number;
  /** Named in errors about the address. Default `--healthz-port`. */
  flag?: string;
}

/** The kubelet's health port (10248): /healthz with the `ping` check alone. That the process answers is the message. */
export function healthzServerSpec(o: HealthzOptions): ActorSpec<ServerEvent> {
  return serverSpec({
    id: 'healthz',
    at: { host: o.host, port: o.port },
    flag: o.flag ?? '--healthz-port',
    handler: () => router({ get: {}, any: healthRoutes({ ping: () => undefined }) }),
  });
}
