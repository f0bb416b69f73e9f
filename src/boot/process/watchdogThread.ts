/**
 * A thread that ends the process when the main thread stalls: no slice finished for the limit -> it prints the path of
 * the running actor and what it handles, notes that for the next start, and exits 70. It runs beside systemd's watchdog,
 * which names nobody.
 *
 * The thread's program is a string, because the daemon is shipped as one bundled file; it reads the memory that
 * `Heartbeat` of the kernel writes (a test holds the two together).
 */
import { Worker } from 'node:worker_threads';
import { EXIT } from '../errors.ts';
import { DIED_STUCK, NOTE } from './handling.ts';

export const STALL_LIMIT_MS = 30_000;

export interface StallWatchOptions {
  shared: SharedArrayBuffer;
  limitMs?: number;
  /** See `handling.ts`; it need not be there yet. */
  noteFile?: string;
  /** The thread itself failed: nobody keeps watch any more. */
  onFailure?(error: Error): void;
}

const PROGRAM = `
const { workerData } = require('node:worker_threads');
const { closeSync, openSync, readSync, writeSync } = require('node:fs');
const { createRequire } = require('node:module');
const { shared, limitMs, exitCode, from, noteFile, note, diedStuck } = workerData;
const ints = new Int32Array(shared, 0, 4);
let seq = -1;
let since = performance.now();
let looked = since;
const everyMs = Math.max(10, limitMs / 10);
function handled() {
  try {
    const fd = openSync(noteFile, 'r+');
    const bytes = Buffer.alloc(note.bytes);
    readSync(fd, bytes, 0, note.bytes, 0);
    if (bytes[note.busy] !== 1) return '';
    writeSync(fd, Buffer.from([diedStuck]), 0, 1, note.how);
    closeSync(fd);
    return ' (' + bytes.toString('utf8', note.text, note.text + Math.min(bytes.readUInt32LE(note.length), note.bytes - note.text)) + ')';
  } catch {
    return '';
  }
}
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
  // This thread was held up too: the whole process was stopped, or the machine was, which says nothing of the main thread.
  if (now - looked > 3 * everyMs) since += now - looked;
  looked = now;
  const seen = Atomics.load(ints, 0);
  if (seen !== seq) {
    seq = seen;
    since = now;
  } else if (now - since >= limitMs) {
    const path = ints[1] === 1 ? new TextDecoder().decode(new Uint8Array(shared, 24, ints[2]).slice()) : 'outside any actor';
    die('the main thread has been stuck for ' + Math.round(now - since) + ' ms, running ' + path + handled() + '; exiting with code ' + exitCode + ', containers are left running\\n');
  }
}, everyMs);
`;

/** The heartbeat behind `shared` must be pulsed several times per limit. Disposing ends the thread. */
export function watchForStalls(o: StallWatchOptions): Disposable {
  const worker = new Worker(PROGRAM, {
    eval: true,
    name: 'watchdog',
    workerData: {
      shared: o.shared,
      limitMs: o.limitMs ?? STALL_LIMIT_MS,
      exitCode: EXIT.internal,
      from: import.meta.url,
      noteFile: o.noteFile ?? '',
      note: NOTE,
      diedStuck: DIED_STUCK,
    },
    resourceLimits: { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 },
    env: {},
    execArgv: [],
  });
  // Unheard, it would end the process.
  worker.on('error', (error) => o.onFailure?.(error));
  worker.unref();
  return { [Symbol.dispose]: () => void worker.terminate() };
}
