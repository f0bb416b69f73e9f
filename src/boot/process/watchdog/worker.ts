/** The watchdog thread: see `watchdog.ts`. What it needs it loads at its start: later the machine may be out of anything. */

import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import koffi from 'koffi';
import { router } from '../../../actors/edge/answers/answers.ts';
import { healthRoutes } from '../../../actors/edge/healthChecks.ts';
import { readHeartbeat, type Stall, StallDetector } from '../../../actors/supervision/watchdog.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import type { Listening } from '../../../ports/listening.ts';
import { acceptCalls } from '../../dependencies/net/acceptMany.ts';
import { serveHttp } from '../../dependencies/net/netServe.ts';
import type { Order, Told, WatchdogData } from './watchdog.ts';

const { shared, loaded, limitMs, everyMs, healthLimitMs, noteFile, note, diedStuck, exitCode } = workerData as WatchdogData;
const detector = new StallDetector({ everyMs });
const look = (): Stall => detector.look(readHeartbeat(shared), performance.now());

// ---- a stuck main thread ---------------------------------------------------------------------------------------------------

/** What is handled, in brackets, after it was noted that the process dies of it; '' where nothing is. */
function handled(): string {
  try {
    const fd = openSync(noteFile, 'r+');
    try {
      const bytes = Buffer.alloc(note.bytes);
      readSync(fd, bytes, 0, note.bytes, 0);
      if (bytes[note.busy] !== 1) return '';
      writeSync(fd, Buffer.from([diedStuck]), 0, 1, note.how);
      const length = Math.min(bytes.readUInt32LE(note.length), note.bytes - note.text);
      return ` (${bytes.toString('utf8', note.text, note.text + length)})`;
    } finally {
      closeSync(fd);
    }
  } catch {
    return '';
  }
}

/** From a thread `process.exit` ends that thread alone. */
function processExit(): ((code: number) => void) | Error {
  try {
    return koffi.load('libc.so.6').func('void _exit(int code)');
  } catch (error) {
    return error as Error;
  }
}
const exit = processExit();
acceptCalls();
Atomics.store(loaded, 0, 1);
Atomics.notify(loaded, 0);

function die({ path, forMs }: Stall): void {
  const what = `the main thread has been stuck for ${Math.round(forMs)} ms, running ${path}${handled()}`;
  writeSync(2, `${what}; exiting with code ${exitCode}, containers are left running\n`);
  if (typeof exit === 'function') exit(exitCode);
  writeSync(2, `exit code ${exitCode} is not possible (${messageOf(exit)}), killing instead\n`);
  process.kill(process.pid, 'SIGKILL');
}
setInterval(() => {
  const stall = look();
  if (stall.forMs >= limitMs) die(stall);
}, everyMs);

// ---- the health port -------------------------------------------------------------------------------------------------------

const health = router({
  get: {},
  any: healthRoutes({
    ping: () => {
      const { path, forMs } = look();
      return forMs < healthLimitMs ? undefined : `the main thread has been stuck for ${Math.round(forMs / 1000)} s, running ${path}`;
    },
  }),
});
const ports = new Map<number, Listening>();

async function follow(order: Order): Promise<Told> {
  const { id } = order;
  try {
    if ('listen' in order) {
      const listening = await serveHttp(order.listen, health);
      ports.set(id, listening);
      return { id, address: listening.address };
    }
    await ports.get(id)?.close();
    ports.delete(id);
    return { id, closed: true };
  } catch (error) {
    return { id, failed: messageOf(error), code: codeOf(error) };
  }
}
parentPort?.on('message', async (order: Order) => parentPort?.postMessage(await follow(order)));
