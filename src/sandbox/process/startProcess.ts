/** The one place that starts processes: Node's `spawn` fails in three ways, two of which end the process that called it. */
import { spawn } from 'node:child_process';

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
