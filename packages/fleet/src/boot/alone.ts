/** One process of a machine at a time has a shard of a fleet: two would both write the statuses of the same nodes. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Shard } from '../types.ts';
import { UsageError } from './args.ts';

export interface Claimed {
  /** Of the API server. */
  server: string;
  fleet: string;
  shard: Shard;
}

/**
 * Until that is disposed of, or the process ends in whatever way: the claim is a socket in the abstract namespace of Linux, which is no
 * file. @throws UsageError where another process has it.
 */
export async function claimed({ server, fleet, shard: { index, count } }: Claimed): Promise<Disposable> {
  const what = count === 1 ? `the fleet ${fleet}` : `shard ${index}/${count} of the fleet ${fleet}`;
  const claim = await claimOf([server, fleet, index, count]);
  if (claim !== null) return claim;
  throw new UsageError(
    `${what} runs on this machine already, on the API server ${server}: stop it first, or choose another --name and --prefix`,
  );
}

/** Null: another process has the claim of that key, or this one. */
export async function claimOf(key: readonly (string | number)[]): Promise<Disposable | null> {
  if (process.platform !== 'linux') return { [Symbol.dispose]() {} };
  const hash = createHash('sha256').update(JSON.stringify(key)).digest('hex');
  // Nobody is served: who connects hears the end.
  const socket = createServer((connection) => connection.destroy()).unref();
  socket.listen(`\0actorlet-fleet-${hash}`);
  try {
    await once(socket, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return null;
  }
  return { [Symbol.dispose]: () => void socket.close() };
}
