/** Connections to pods of `embedded://oci`, whose networks only that runtime can enter: CONNECT on its socket. */
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import { isPodAddress } from '@actorlet/runtimes/src/shared/podAddress.ts';

/** The socket to ask for a host; null for one that is reached as ever. */
export type TunnelOf = (host: string) => string | null;

export const tunnelOf =
  (socketPath: string | null): TunnelOf =>
  (host) =>
    socketPath !== null && isPodAddress(host) ? socketPath : null;

/** Rejects when nobody listens there. */
export function throughTunnel(socketPath: string, at: { host: string; port: number }, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const req = request({ socketPath, method: 'CONNECT', path: `${at.host}:${at.port}`, signal, agent: false });
    req.on('connect', (res, socket) => {
      if (res.statusCode === 200) {
        resolve(socket);
        return;
      }
      socket.destroy();
      reject(new Error(`connect ${at.host}:${at.port}: ${res.statusMessage ?? res.statusCode}`));
    });
    req.on('error', reject);
    req.end();
  });
}
