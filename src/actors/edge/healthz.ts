/**
 * State held: an open TCP port.
 * Lost on restart: requests in progress.
 * Rebuilt from: nothing needed.
 */
import type { ServerEvent } from '../../machines/edge/messages.ts';
import type { ActorSpec } from '../supervision/types.ts';
import { router } from './answers/answers.ts';
import { healthRoutes } from './healthChecks.ts';
import { specOfServer } from './server.ts';

export interface HealthzOptions {
  host: string;
  port: number;
  /** Named in errors about the address. Default `--healthz-port`. */
  flag?: string;
}

/**
 * The kubelet's health port (10248): /healthz with the `ping` check alone, which fails when the main thread is stuck. Where there
 * is one thread, that the process answers is the message.
 */
export function healthzServerSpec(o: HealthzOptions): ActorSpec<ServerEvent> {
  const at = { host: o.host, port: o.port };
  return specOfServer({
    id: 'healthz',
    at,
    flag: o.flag ?? '--healthz-port',
    handler: () => router({ get: {}, any: healthRoutes({ ping: () => undefined }) }),
    // Its thread takes a tenth of a second to begin, and the lease waits for the layers before it.
    awaited: false,
    listen: (net, handler) => net.serveHealth?.(at) ?? net.serveHttp(at, handler),
  });
}
