/**
 * A thread that ends the process when the main thread stalls: no slice finished for the limit -> it prints the path of
 * the running actor and exits 70. Used where systemd's watchdog is not.
 *
 * The thread's program is a string, because the daemon is shipped as one bundled file; it reads the memory that
 * `Heartbeat` of the kernel writes (a test holds the two together).
 */
import { Worker } from 'node:worker_threads';
import { EXIT } from '../errors.ts';

export const STALL_LIMIT_MS = 30_000;

export interface StallWatchOptions {
  shared: SharedArrayBuffer;
  limitMs?: number;
}

const PROGRAM = `
const { workerData } = require('node:worker_threads');
const { writeSync } = require('node:fs');
const { createRequire } = require('node:module');
const { shared, limitMs, exitCode, from } = workerData;
const ints = new Int32Array(shared, 0, 4);
let seq = -1;
let since = performance.now();
function die(text) {
  writeSync(2, text);
  try {
    const koffi = createRequire(from)('koffi');
    koffi.load('libc.so.6').func('void _exit(int code)')(exitCode);
  } catch (error) {
    writeSync(2, 'exit code ' + exitCode + ' is not possible (' + error.message + '), killing instead\\n');
    process.kill(process.pid, 'SIGKILL');
  }
}
setInterval(() => {
  const now = performance.now();
  const seen = Atomics.load(ints, 0);
  if (seen !== seq) {
    seq = seen;
    since = now;
  } else if (now - since >= limitMs) {
    const path = ints[1] === 1 ? new TextDecoder().decode(new Uint8Array(shared, 24, ints[2]).slice()) : 'outside any actor';
    die('the main thread has been stuck for ' + Math.round(now - since) + ' ms, running ' + path + '; exiting with code ' + exitCode + ', containers are left running\\n');
  }
}, Math.max(10, limitMs / 10));
`;

/** The heartbeat behind `shared` must be pulsed several times per limit. Disposing ends the thread. */
export function watchForStalls(o: StallWatchOptions): Disposable {
  const worker = new Worker(PROGRAM, {
    eval: true,
    name: 'watchdog',
    workerData: { shared: o.shared, limitMs: o.limitMs ?? STALL_LIMIT_MS, exitCode: EXIT.internal, from: import.meta.url },
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
    env: {},
    execArgv: [],
  });
  worker.unref();
  return { [Symbol.dispose]: () => void worker.terminate() };
}
