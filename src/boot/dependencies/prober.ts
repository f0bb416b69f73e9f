/** The real {@link Prober}: plain sockets, `node:http`, and gRPC loaded with the first probe that needs it. */
import { connect } from 'node:net';
import type { Prober } from '../../ports/prober.ts';
import { probeHttp } from './probe/http.ts';
import { lookup } from './probe/lookup.ts';
import { throughTunnel, tunnelOf } from './probe/tunnel.ts';

/** Holds nothing between calls. `tunnelSocket`: of the runtime that alone reaches its pods. */
export function createProber(tunnelSocket: string | null = null): Prober {
  const tunnel = tunnelOf(tunnelSocket);
  return {
    httpGet: (url, o) => probeHttp(url, o, tunnel),
    tcpDial: async ({ host, port }, { signal }) => {
      const socketPath = tunnel(host);
      if (socketPath !== null) return void (await throughTunnel(socketPath, { host, port }, signal)).destroy();
      return new Promise((resolve, reject) => {
        const socket = connect({ host, port, signal, lookup });
        socket.once('connect', () => {
          socket.destroy();
          resolve();
        });
        // An aborted socket reports its end here too; after the promise has settled there is nobody left to tell.
        socket.on('error', reject);
      });
    },
    async grpcHealth(at, o) {
      const { grpcHealth } = await import('./probe/grpc.ts');
      return grpcHealth(at, o, tunnel);
    },
  };
}
