/**
 * A thread beside the main one, which goes on while that one is busy or stuck. It ends the process when no slice has finished
 * for the limit: it prints the path of the running actor and what that handles, notes it for the next start, and exits 70.
 * It runs beside systemd's watchdog, which names nobody. It also serves the health port.
 */
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Listening } from '../../../ports/listening.ts';
import type { Net } from '../../../ports/sockets/net.ts';
import { EXIT } from '../../errors.ts';
import { workerFile } from '../../workerFile.ts';
import { DIED_STUCK, NOTE } from '../handling.ts';

export const STALL_LIMIT_MS = 30_000;
/** Looks at the heartbeat per limit. */
const LOOKS_PER_LIMIT = 10;
/** /healthz fails after this part of the limit without a finished slice: 10 s of 30. */
const HEALTH_SHARE = 1 / 3;
/** The thread's heap: the heads of as many requests as may wait at once take half of it. */
const MEMORY_MIB = 32;
const YOUNG_MIB = 2;
/** After a failure. Whatever made it fail may still be there. */
const RESTART_MS = 1_000;
/** For so long its end waits for a thread that is still loading. One that cannot load has failed, and is not waited for. */
const LOAD_MS = 5_000;

export interface WatchdogOptions {
  /** The memory that `Heartbeat` of the supervision writes. It must be pulsed several times per limit. */
  shared: SharedArrayBuffer;
  limitMs?: number;
  /** See `handling.ts`; it need not be there yet. */
  noteFile?: string;
  /** The thread failed, and is started again after a second; or it cannot listen as before. */
  onFailure?(error: Error): void;
}
/** Disposing ends the thread and closes its ports. */
export interface Watchdog extends Disposable {
  readonly shared: SharedArrayBuffer;
  serveHealth: NonNullable<Net['serveHealth']>;
}

type At = { host: string; port: number };
export interface WatchdogData {
  shared: SharedArrayBuffer;
  /** One word: 1 when the thread has loaded what it needs. Ended while koffi loads, it would take the process with it by an abort. */
  loaded: Int32Array;
  limitMs: number;
  everyMs: number;
  healthLimitMs: number;
  noteFile: string;
  note: typeof NOTE;
  diedStuck: number;
  exitCode: number;
}
/** To the thread. */
export type Order = { id: number; listen: At } | { id: number; close: true };
/** Its answer to that order. */
export type Told = { id: number; address: string } | { id: number; closed: true } | { id: number; failed: string; code: string };

export function startWatchdog(o: WatchdogOptions): Watchdog {
  const limitMs = o.limitMs ?? STALL_LIMIT_MS;
  const loaded = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  const workerData: WatchdogData = {
    ...{ shared: o.shared, loaded, limitMs, everyMs: Math.max(10, limitMs / LOOKS_PER_LIMIT), healthLimitMs: limitMs * HEALTH_SHARE },
    ...{ noteFile: o.noteFile ?? '', note: NOTE, diedStuck: DIED_STUCK, exitCode: EXIT.internal },
  };
  const asked = new Map<number, PromiseWithResolvers<Told>>();
  /** Ports that a new thread has to open again. */
  const open = new Map<number, At>();
  let worker: Worker | null = null;
  let again: NodeJS.Timeout | undefined;
  let lastId = 0;

  const hear = (told: Told): void => {
    const waits = asked.get(told.id);
    asked.delete(told.id);
    if (waits !== undefined) waits.resolve(told);
    else if ('failed' in told) o.onFailure?.(new Error(told.failed));
  };
  const fail = (error: Error): void => {
    worker = null;
    again = setTimeout(start, RESTART_MS).unref();
    for (const waits of asked.values()) waits.reject(error);
    asked.clear();
    o.onFailure?.(error);
  };
  function start(): void {
    try {
      begin();
    } catch (error) {
      // Without descriptors or memory no thread begins.
      fail(error instanceof Error ? error : new Error(messageOf(error)));
    }
  }
  function begin(): void {
    const mine = new Worker(workerFile('watchdog', import.meta.url), {
      name: 'watchdog',
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB, maxYoungGenerationSizeMb: YOUNG_MIB },
      env: {},
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    worker = mine;
    Atomics.store(loaded, 0, 0);
    // Unheard, it would end the process.
    mine.on('error', (error) => mine === worker && fail(error as Error));
    mine.on('message', hear);
    mine.unref();
    for (const [id, listen] of open) mine.postMessage({ id, listen } satisfies Order);
  }
  const ask = async (order: Order): Promise<Told> => {
    if (worker === null) throw new Error('the watchdog thread has failed and is being started again');
    const waits = Promise.withResolvers<Told>();
    asked.set(order.id, waits);
    worker.postMessage(order);
    const told = await waits.promise;
    if ('failed' in told) throw Object.assign(new Error(told.failed), { code: told.code });
    return told;
  };
  const serveHealth = async (at: At): Promise<Listening> => {
    const id = ++lastId;
    const told = await ask({ id, listen: at });
    open.set(id, at);
    return {
      address: 'address' in told ? told.address : '',
      async close() {
        // A thread that has failed listens nowhere.
        if (open.delete(id) && worker !== null) await ask({ id, close: true });
      },
    };
  };

  const untilLoaded = (): void => {
    if (worker !== null) Atomics.wait(loaded, 0, 0, LOAD_MS);
  };
  process.once('exit', untilLoaded);
  start();
  return {
    shared: o.shared,
    serveHealth,
    [Symbol.dispose]() {
      clearTimeout(again);
      process.off('exit', untilLoaded);
      untilLoaded();
      const last = worker;
      worker = null;
      void last?.terminate();
    },
  };
}
