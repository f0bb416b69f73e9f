/**
 * The real {@link Documents} port. What is cheap is decoded at once; the rest in a thread of its own, one document after the
 * other, which is ended when a document exceeds its time or its memory, and when there was nothing to do for a while.
 */

import { Worker } from 'node:worker_threads';
import { decodeDocument, isCheap } from '../../../actors/pods/sources/document.ts';
import type { Decoded } from '../../../machines/pods/sources/decode.ts';
import { codeOf, messageOf } from '../../../machines/text/errors.ts';
import type { DocumentSource, Documents } from '../../../ports/documents.ts';
import type { Entropy } from '../../../ports/ports.ts';
import { workerFile } from '../../workerFile.ts';

/** 1.5 MiB of YAML, the largest there may be, takes 2 s on one core of its own. */
const DOCUMENT_TIMEOUT_MS = 20_000;
/** 10 MiB of JSON, or 1.5 MiB of YAML with an entry for every few bytes, need less. */
const DOCUMENT_MEMORY_MIB = 256;
/** For the thread to load its program, on a machine that is very busy. */
const START_TIMEOUT_MS = 30_000;
/** A thread at rest costs some 5 MiB; starting one takes tens of milliseconds. */
const IDLE_MS = 5_000;
const YOUNG_MIB = 16;
/**
 * Documents that the thread has been given, so that between two of them it need not wait for a busy main thread: with one at a
 * time each takes a turn of that thread's loop, tens of milliseconds under a flood.
 */
const ASKED_MAX = 32;
/** Bytes of those documents; one that is larger is given alone. */
const ASKED_BYTES_MAX = 1024 * 1024;

/**
 * Main thread's time for cheap documents in one turn of its loop, milliseconds: hundreds of files may be read at once, and each
 * takes one or two.
 */
const CHEAP_MS_PER_TURN = 5;

export interface Question {
  bytes: Uint8Array;
  source: DocumentSource;
}
/** Null: the thread is ready. */
export interface Told {
  decoded: Decoded | null;
}

export interface DocumentsOptions {
  entropy: Entropy;
  timeoutMs?: number;
  memoryMiB?: number;
  idleMs?: number;
}

interface Job extends Question {
  resolve(decoded: Decoded): void;
  reject(error: Error): void;
}

function roomFor(job: Job | undefined, asked: readonly Job[]): boolean {
  if (job === undefined) return false;
  return asked.length === 0 || asked.reduce((sum, a) => sum + a.bytes.byteLength, job.bytes.byteLength) <= ASKED_BYTES_MAX;
}

/** Disposing ends the thread; what waits is rejected. */
export function createDocuments(o: DocumentsOptions): Documents & Disposable {
  const { entropy, timeoutMs = DOCUMENT_TIMEOUT_MS, memoryMiB = DOCUMENT_MEMORY_MIB, idleMs = IDLE_MS } = o;
  const queue: Job[] = [];
  /** With the thread, in the order in which it decodes them: the first is the one that it works at. */
  const asked: Job[] = [];
  let worker: Worker | null = null;
  let ready = false;
  let timer: NodeJS.Timeout | undefined;
  let over = false;
  let spentMs = 0;
  let turn: Promise<void> | null = null;

  /** Null: it is not cheap. */
  const decodeHere = (bytes: Uint8Array, source: DocumentSource): Decoded | null => {
    turn ??= new Promise((resolve) =>
      setImmediate(() => {
        spentMs = 0;
        turn = null;
        resolve();
      }),
    );
    const began = performance.now();
    try {
      return isCheap(bytes) ? decodeDocument(bytes, source, entropy) : null;
    } finally {
      spentMs += performance.now() - began;
    }
  };

  /** What the thread had not begun waits for the next one. */
  const end = (): void => {
    clearTimeout(timer);
    void worker?.terminate();
    worker = null;
    ready = false;
    queue.unshift(...asked.splice(0));
  };
  const refuse = (what: string): void => {
    end();
    queue.shift()?.resolve({ ok: false, errors: [what] });
    next();
  };
  const fail = (what: string): void => {
    end();
    queue.shift()?.reject(new Error(`the thread that decodes documents ${what}`));
    next();
  };
  /** The first document's time begins. */
  const watch = (): void => {
    clearTimeout(timer);
    const first = asked[0];
    // Its answer may have come already, and wait behind this timer.
    const look = (): void => void (first === asked[0] && refuse(`takes longer than ${timeoutMs} ms to decode`));
    timer = setTimeout(() => setImmediate(look), timeoutMs).unref();
  };
  const ask = (job: Job): void => {
    // A copy, which the thread then owns.
    const bytes = Uint8Array.from(job.bytes);
    worker?.postMessage({ bytes, source: job.source } satisfies Question, [bytes.buffer]);
    if (asked.push(job) === 1) watch();
  };

  function started(): Worker {
    const mine = new Worker(workerFile('documents', import.meta.url), {
      name: 'documents',
      resourceLimits: { maxOldGenerationSizeMb: memoryMiB, maxYoungGenerationSizeMb: YOUNG_MIB },
      env: {},
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    // It keeps nothing alive: who waits for a document does.
    mine.unref();
    mine.on('message', ({ decoded }: Told) => {
      if (mine !== worker) return;
      if (decoded === null) ready = true;
      else {
        asked.shift()?.resolve(decoded);
        if (asked.length > 0) watch();
      }
      next();
    });
    mine.on('error', (error) => {
      if (mine !== worker) return;
      if (codeOf(error) === 'ERR_WORKER_OUT_OF_MEMORY') return refuse(`takes more than ${memoryMiB} MiB of memory to decode`);
      fail(`failed: ${messageOf(error)}`);
    });
    mine.on('exit', () => {
      if (mine === worker) fail('ended');
    });
    return mine;
  }

  function start(): void {
    clearTimeout(timer);
    try {
      worker = started();
      timer = setTimeout(() => fail(`was not ready within ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS).unref();
    } catch (error) {
      fail(`cannot be started: ${messageOf(error)}`);
    }
  }

  /** Gives the thread what there is room for. */
  function next(): void {
    if (over) return;
    if (worker === null) {
      if (queue.length > 0) start();
      return;
    }
    if (!ready) return;
    while (asked.length < ASKED_MAX && roomFor(queue[0], asked)) ask(queue.shift() as Job);
    if (asked.length > 0) return;
    clearTimeout(timer);
    timer = setTimeout(end, idleMs).unref();
  }

  return {
    async decode(bytes, source) {
      // A thread that runs anyway takes cheap ones too; to start one for them would cost more than they do.
      while (spentMs >= CHEAP_MS_PER_TURN && !ready) await turn;
      const here = spentMs < CHEAP_MS_PER_TURN ? decodeHere(bytes, source) : null;
      if (here !== null) return here;
      if (over) throw new Error('the thread that decodes documents has ended');
      return new Promise((resolve, reject) => {
        queue.push({ bytes, source, resolve, reject });
        next();
      });
    },
    [Symbol.dispose]() {
      over = true;
      end();
      for (const job of queue.splice(0)) job.reject(new Error('the thread that decodes documents has ended'));
    },
  };
}
