/** Connections into the networks of pods: one thread for each pod that is asked, ended when nobody asks any more. */
import { existsSync } from 'node:fs';
import { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';

const IDLE_MS = 30_000;

export interface Ask {
  id: number;
  /** IPv4. */
  address: string;
  port: number;
}
/** The first, of id 0, says that the thread has loaded what it needs. */
export interface Answer {
  id: number;
  fd: number;
  /** '' when there is a descriptor. */
  error: string;
}

interface Thread {
  worker: Worker;
  /** It has loaded koffi, or has ended. One that is ended while koffi loads takes the process with it by an abort. */
  loaded: PromiseWithResolvers<void>;
  waiting: Map<number, { resolve(fd: number): void; reject(error: Error): void }>;
  idle: NodeJS.Timeout | undefined;
}

export class Dialer {
  readonly #threads = new Map<string, Thread>();
  #serial = 0;

  /** `net`: path of a network namespace. @throws when nobody listens there, or the namespace is gone. */
  async dial(net: string, at: { address: string; port: number }): Promise<Socket> {
    const thread = this.#threads.get(net) ?? this.#begin(net);
    clearTimeout(thread.idle);
    const id = ++this.#serial;
    try {
      const fd = await new Promise<number>((resolve, reject) => {
        thread.waiting.set(id, { resolve, reject });
        thread.worker.postMessage({ id, ...at } satisfies Ask);
      });
      return new Socket({ fd, readable: true, writable: true });
    } finally {
      thread.waiting.delete(id);
      if (thread.waiting.size === 0) thread.idle = setTimeout(() => void thread.worker.terminate(), IDLE_MS).unref();
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#threads.values()].map((t) => t.loaded.promise.then(() => t.worker.terminate())));
  }

  #begin(net: string): Thread {
    const worker = new Worker(program(), { name: 'dial', workerData: { net }, env: {} });
    const thread: Thread = { worker, loaded: Promise.withResolvers(), waiting: new Map(), idle: undefined };
    const over = (error: Error): void => {
      thread.loaded.resolve();
      if (this.#threads.get(net) === thread) this.#threads.delete(net);
      clearTimeout(thread.idle);
      for (const w of thread.waiting.values()) w.reject(error);
    };
    worker.on('message', ({ id, fd, error }: Answer) => {
      thread.loaded.resolve();
      const w = thread.waiting.get(id);
      if (fd >= 0) w?.resolve(fd);
      else w?.reject(new Error(error));
    });
    worker.on('error', over);
    worker.on('exit', () => over(new Error('the thread in the pod’s network has ended')));
    worker.unref();
    this.#threads.set(net, thread);
    return thread;
  }
}

/** Beside the programs or one folder above their chunks; in a checkout beside this source. */
function program(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const found = ['dial.mjs', '../dial.mjs', 'worker.ts'].map((name) => join(here, name)).find((file) => existsSync(file));
  if (found === undefined) throw new Error(`the program of the dial thread is not in ${here}: the installation is incomplete`);
  return found;
}
