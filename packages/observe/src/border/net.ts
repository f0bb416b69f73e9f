/** Connections and listeners behind the border: the node listens in its own folder alone, and asks nobody but its HTTP source. */
import type { Net } from '@actorlet/kubelet/ports/sockets/net.ts';

export function netBorder(net: Net, o: { stateDir: string; podSource: string }): Partial<Net> {
  return {
    async httpGet(url, opts) {
      // All other questions are hooks, which the kubelet runs.
      return url === o.podSource ? net.httpGet(url, opts) : { status: 200, body: new Uint8Array() };
    },
    async serveHttp(at, handler) {
      if ('socketPath' in at && at.socketPath.startsWith(`${o.stateDir}/`) && !at.socketPath.includes('/../'))
        return net.serveHttp(at, handler);
      const where = 'socketPath' in at ? at.socketPath : `${at.host}:${at.port}`;
      throw Object.assign(new Error(`listening at ${where} is refused: it is the kubelet's`), { code: 'EPERM' });
    },
  };
}
