/**
 * The real DebuggerPort: a thread that speaks for the main one. Node's own debugger server would be one on a TCP port: every user of the
 * machine can connect to it, it ends the process over bytes that are no HTTP, and closing it blocks for as long as a client stays.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import type { DebuggerDoor, DebuggerPort } from '../../../ports/machine/debugger.ts';
import type { Logger } from '../../../ports/ports.ts';
import { workerFile } from '../../workerFile.ts';

export interface DebuggerData extends DebuggerDoor {
  /** The heartbeat of the main thread, see {@link Heartbeat}: one that stands at a breakpoint is not stuck. */
  heartbeat: SharedArrayBuffer;
}

export function createDebugger(o: { folder: string; heartbeat: SharedArrayBuffer; log: Logger }): DebuggerPort {
  let worker: Worker | null = null;
  const close = async (): Promise<void> => {
    const mine = worker;
    worker = null;
    if (mine === null) return;
    await mine.terminate();
    await rm(o.folder, { recursive: true, force: true });
  };
  return {
    async open() {
      await close();
      await rm(o.folder, { recursive: true, force: true });
      // The rights of the folder are those of the socket: a thread has no umask of its own.
      await mkdir(o.folder, { recursive: true, mode: 0o700 });
      const door: DebuggerDoor = { socketPath: `${o.folder}/socket`, path: `/${randomUUID()}` };
      const workerData: DebuggerData = { ...door, heartbeat: o.heartbeat };
      const mine = new Worker(workerFile('debugger', import.meta.url), { name: 'debugger', workerData, env: {} });
      worker = mine;
      mine.once('exit', () => {
        o.log.warn({}, 'the debugger is closed');
        if (worker === mine) void close();
      });
      mine.unref();
      // Rejects when the thread fails first.
      await once(mine, 'message');
      mine.on('error', (error) => o.log.error({ err: String(error) }, 'the debugger failed'));
      o.log.warn({ socket: door.socketPath }, 'the debugger was opened over the admin socket: its user runs code as this process');
      return door;
    },
    close,
  };
}
