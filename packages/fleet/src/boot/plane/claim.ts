/**
 * One control plane at a time has a folder. A claim is a socket in the folder, which ends with its process in whatever way. A socket with a
 * path is reached from every network namespace of the machine. The one in the abstract namespace of Linux is reached from its own alone,
 * and is all that earlier versions have.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, constants, openSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { claimOf } from '../alone.ts';

/** How the names of sockets begin that say that the folder is in use. */
export const CLAIM = 'claim.';
/** What connecting says to a socket whose process ended. Any other error may be one of a process that lives. */
const DEAD: readonly (string | undefined)[] = ['ECONNREFUSED', 'ENOENT'];

export function isClaim(name: string): boolean {
  return name.startsWith(CLAIM);
}

/**
 * Until that is disposed of, or the process ends. Null: another process has it, or this one. Each claims first and looks then, so that of
 * two that come at once one at least sees the other.
 */
export async function claimFolder(dir: string): Promise<Disposable | null> {
  if (process.platform !== 'linux') return { [Symbol.dispose]() {} };
  const near = await claimOf(keyOf(dir));
  if (near === null) return null;
  const own = `${CLAIM}${randomUUID()}`;
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY);
  // Nobody is served: who connects hears the end.
  const socket = createServer((connection) => connection.destroy()).unref();
  const release = (): void => {
    near[Symbol.dispose]();
    // The file of the socket is removed by its path, which takes the descriptor.
    socket.close(() => closeSync(fd));
  };
  try {
    socket.listen(within(fd, own));
    await once(socket, 'listening');
    const others = claimsIn(dir).filter((name) => name !== own);
    const alive = await Promise.all(others.map((name) => isAlive(within(fd, name))));
    if (alive.includes(true)) {
      release();
      return null;
    }
    for (const name of others) rmSync(join(dir, name), { force: true });
    return { [Symbol.dispose]: release };
  } catch (error) {
    release();
    throw error;
  }
}

/** Whether a process has the folder, as far as is known: one that cannot be read may be in use. */
export async function isClaimed(dir: string): Promise<boolean> {
  const near = await claimOf(keyOf(dir));
  if (near === null) return true;
  near[Symbol.dispose]();
  let fd: number | undefined;
  try {
    fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY);
    const of = fd;
    const alive = await Promise.all(claimsIn(dir).map((name) => isAlive(within(of, name))));
    return alive.includes(true);
  } catch {
    return true;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

function keyOf(dir: string): string[] {
  return ['plane', dir];
}

function claimsIn(dir: string): string[] {
  return readdirSync(dir).filter(isClaim);
}

/** The path of a socket has 107 bytes at most, and that of a folder may be longer. */
function within(fd: number, name: string): string {
  return `/proc/self/fd/${fd}/${name}`;
}

async function isAlive(path: string): Promise<boolean> {
  const connection = connect(path);
  try {
    await once(connection, 'connect');
    return true;
  } catch (error) {
    return !DEAD.includes((error as NodeJS.ErrnoException).code);
  } finally {
    connection.destroy();
  }
}
