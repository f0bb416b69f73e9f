/**
 * The real {@link Documents} port. What is cheap is decoded at once; the rest in a thread of its own, one document after the
 * other, which is ended when a document exceeds its time or its memory, and when there was nothing to do for a while.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { decodeDocument, isCheap } from '../../../actors/pods/sources/document.ts';
import type { Decoded } from '../../../machines/pods/sources/decode.ts';
import type { DocumentSource, Documents } from '../../../ports/documents.ts';
import type { Entropy } from '../../../ports/ports.ts';
import { codeOf, messageOf } from '../../errors.ts';

/** 1.5 MiB of YAML, the largest there may be, takes 2 s on one core of its own. */
export const DOCUMENT_TIMEOUT_MS = 20_000;
/** 10 MiB of JSON, or 1.5 MiB of YAML with an entry for every few bytes, need less. */
export const DOCUMENT_MEMORY_MIB = 256;
/** For the thread to load its program, on a machine that is very busy. */
const START_TIMEOUT_MS = 30_000;
/** A thread at rest costs some 5 MiB; starting one takes tens of milliseconds. */
const IDLE_MS = 5_000;
const YOUNG_MIB = 16;

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

/** Beside this file in a checkout, beside the program in a package. */
function workerFile(): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const candidates = [join(here, 'documents.mjs'), join(here, '..', 'documents.mjs'), join(here, 'worker.ts')];
  const found = candidates.find((path) => existsSync(path));
  if (found === undefined) throw new Error(`the program that decodes documents is not there: ${candidates.join(', ')}`);
  return found;
}

/** Disposing ends the thread; what waits is rejected. */
export function createDocuments(o: DocumentsOptions): Documents & Disposable {
  const { entropy, timeoutMs = DOCUMENT_TIMEOUT_MS, memoryMiB = DOCUMENT_MEMORY_MIB, idleMs = IDLE_MS } = o;
  const queue: Job[] = [];
  let current: Job | null = null;
  let worker: Worker | null = null;
  let ready = false;
  let timer: NodeJS.Timeout | undefined;
  let over = false;

  const end = (): void => {
    clearTimeout(timer);
    void worker?.terminate();
    worker = null;
    ready = false;
  };
  /** The present document is done with; the next one's turn. */
  const finish = (settle: (job: Job) => void): void => {
    clearTimeout(timer);
    const job = current;
    current = null;
    if (job !== null) settle(job);
    next();
  };
  const refuse = (what: string): void => {
    end();
    finish((job) => job.resolve({ ok: false, errors: [what] }));
  };
  const fail = (what: string): void => {
    end();
    finish((job) => job.reject(new Error(`the thread that decodes documents ${what}`)));
  };
  const ask = (job: Job): void => {
    // A copy, which the thread then owns.
    const bytes = Uint8Array.from(job.bytes);
    worker?.postMessage({ bytes, source: job.source } satisfies Question, [bytes.buffer]);
    clearTimeout(timer);
    timer = setTimeout(() => refuse(`takes longer than ${timeoutMs} ms to decode`), timeoutMs).unref();
  };

  function started(): Worker {
    const mine = new Worker(workerFile(), {
      name: 'documents',
      resourceLimits: { maxOldGenerationSizeMb: memoryMiB, maxYoungGenerationSizeMb: YOUNG_MIB },
      env: {},
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    // It keeps nothing alive: who waits for a document does.
    mine.unref();
    mine.on('message', ({ decoded }: Told) => {
      if (mine !== worker) return;
      if (decoded !== null) return finish((job) => job.resolve(decoded));
      ready = true;
      if (current !== null) ask(current);
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

  function next(): void {
    if (current !== null || over) return;
    current = queue.shift() ?? null;
    if (current === null) {
      if (worker !== null) timer = setTimeout(end, idleMs).unref();
      return;
    }
    clearTimeout(timer);
    try {
      worker ??= started();
      if (ready) ask(current);
      else timer = setTimeout(() => fail(`was not ready within ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS).unref();
    } catch (error) {
      fail(`cannot be started: ${messageOf(error)}`);
    }
  }

  return {
    async decode(bytes, source) {
      if (isCheap(bytes)) return decodeDocument(bytes, source, entropy);
      if (over) throw new Error('the thread that decodes documents has ended');
      return new Promise((resolve, reject) => {
        queue.push({ bytes, source, resolve, reject });
        next();
      });
    },
    [Symbol.dispose]() {
      over = true;
      end();
      const left = current === null ? queue.splice(0) : [current, ...queue.splice(0)];
      current = null;
      for (const job of left) job.reject(new Error('the thread that decodes documents has ended'));
    },
  };
}
