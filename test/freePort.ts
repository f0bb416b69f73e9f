/** Ports for servers of tests and benches. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below what Linux gives to connections and to port 0, so that nothing takes the port before its user listens. */
const PORTS = { first: 10_000, count: 20_000 } as const;

/** The one bad port of the Fetch standard among them. */
const REFUSED_BY_FETCH = 10_080;

/** A port that nobody listens on. Files that run side by side draw from many, so that two do not draw the same. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + randomInt(PORTS.count);
    if (port === REFUSED_BY_FETCH) continue;
    const free = await new Promise<boolean>((resolve, reject) => {
      const server = createServer().once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'EADDRINUSE') resolve(false);
        else reject(error);
      });
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
