/**
 * The real Net port: HTTP servers on TCP and unix sockets, and a bounded HTTP GET, on `node:http` alone.
 * Why not a framework: importing fastify and serving one route costs 16-17 MiB resident under Node 24, `node:http` 1.4
 * (measured), and the daemon has 125 MiB for everything.
 */
import type { Net } from '../../../ports/sockets/net.ts';
import { httpGet } from './netGet.ts';
import { serveHttp } from './netServe.ts';

/** Makes the real {@link Net}. Holds no state of its own; the caller that starts a server owns it. */
export function createNet(o: Pick<Net, 'serveHealth'> = {}): Net {
  return { httpGet, serveHttp, ...o };
}
