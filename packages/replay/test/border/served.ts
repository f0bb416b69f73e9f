/** Servers of a node under test, asked without a socket. */
import type { HttpReply, HttpRequest, Net } from '@actorlet/kubelet/ports/sockets/net.ts';

/** By port, or by the path of the socket. */
export type Served = Map<string, (req: HttpRequest) => Promise<HttpReply>>;

/** A network that notes what is served on it. */
export function noting(net: Net, served: Served): Net {
  return {
    ...net,
    async serveHttp(at, handler) {
      served.set('port' in at ? String(at.port) : at.socketPath, handler);
      return await net.serveHttp(at, handler);
    },
  };
}
