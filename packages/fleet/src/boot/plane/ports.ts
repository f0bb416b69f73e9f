/** Ports of loopback for the programs of a control plane. */
import { createServer } from 'node:net';
import { codeOf, messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { LOOPBACK } from '../../plane/flags.ts';
import { UsageError } from '../args.ts';

/** Null: another program has it. @param port 0: any. @throws UsageError where it cannot be had for another reason. */
export function freePort(port = 0): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => {
      if (codeOf(error) === 'EADDRINUSE') resolve(null);
      else reject(new UsageError(`port ${port} of ${LOOPBACK} cannot be used: ${messageOf(error)}`));
    });
    server.listen(port, LOOPBACK, () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : null));
    });
  });
}

/** @throws Error where this machine has none left. */
export async function anyPort(): Promise<number> {
  const port = await freePort();
  if (port === null) throw new Error(`${LOOPBACK} has no free port`);
  return port;
}
