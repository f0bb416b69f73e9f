/** The real {@link Prober}: plain sockets, `node:http`, and gRPC loaded with the first probe that needs it. */
import { connect } from 'node:net';
import type { Prober } from '../../ports/prober.ts';
import { probeHttp } from './probe/http.ts';

/** Holds nothing between calls. */
export function createProber(): Prober {
  return {
    httpGet: probeHttp,
    tcpDial: ({ host, port }, { signal }) =>
      new Promise((resolve, reject) => {
        const socket = connect({ host, port, signal });
        socket.once('connect', () => {
          socket.destroy();
          resolve();
        });
        // An aborted socket reports its end here too; after the promise has settled there is nobody left to tell.
        socket.on('error', reject);
      }),
    async grpcHealth(at, o) {
      const { grpcHealth } = await import('./probe/grpc.ts');
      return grpcHealth(at, o);
    },
  };
}
