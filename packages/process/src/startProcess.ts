/** The one place that starts processes: Node's `spawn` fails in three ways, two of which end the process that called it. */
import { spawn } from 'node:child_process';

/**
 * Flags of each Node process that we start. Without the first, SIGUSR1 opens Node's debugger on a loopback port, where every
 * user of the machine can run code as this process. `scripts/launch.sh` has them for the programs that people start.
 */
export const NODE_FLAGS: readonly string[] = ['--disable-sigusr1', '--disable-warning=ExperimentalWarning'];

/**
 * As Node's `spawn`, of which nothing fails outside the caller's reach. It throws what `spawn` throws (E2BIG, ENOMEM, ENOTDIR,
 * a zero byte), and throws EMFILE too, where Node returns a child without pipes and an `error` event that is easily
 * missed. ENOENT, EACCES and EAGAIN still come as `error`, then `close`.
 */
export const startProcess: typeof spawn = ((...args: Parameters<typeof spawn>) => {
  const child = spawn(...args);
  if (child.pid !== undefined || child.stdio !== undefined) return child;
  child.once('error', () => {});
  const error = new Error(`spawn ${child.spawnfile}: EMFILE: no file descriptors left`);
  throw Object.assign(error, { code: 'EMFILE', syscall: 'spawn', path: child.spawnfile });
}) as typeof spawn;
