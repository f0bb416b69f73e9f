/**
 * The real {@link Documents} port. What is cheap is decoded at once; the rest in a thread of its own, one document after the
 * other, which is ended when a document exceeds its time or its memory, and when there was nothing to do for a while.
 */

import { Worker } from 'node:worker_threads';
import { decodeDocument, isCheap } from '../../../actors/pods/sources/document.ts';
import { ANY_POD } from '../../../machines/pods/podConfig/kept.ts';
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
const ENDED = 'the thread that decodes documents has ended';

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
  const here = new MainThread(o.entropy);
  const thread = new DocumentThread(o);
  return {
    async decode(bytes, source) {
      // A thread that runs anyway takes cheap ones too; to start one for them would cost more than they do.
      while (here.spent && !thread.ready) await here.turn;
      return (here.spent ? null : here.decode(bytes, source)) ?? thread.decode(bytes, source);
    },
    [Symbol.dispose]: () => thread.dispose(),
  };
}

/** Decodes what is cheap. */
class MainThread {
  readonly #entropy: Entropy;
  #spentMs = 0;
  #turn: Promise<void> | null = null;

  constructor(entropy: Entropy) {
    this.#entropy = entropy;
  }

  /** It has had its time of this turn. */
  get spent(): boolean {
    return this.#spentMs >= CHEAP_MS_PER_TURN;
  }

  /** Ends with this turn; null: nothing was decoded in it. */
  get turn(): Promise<void> | null {
    return this.#turn;
  }

  /** Null: it is not cheap. */
  decode(bytes: Uint8Array, source: DocumentSource): Decoded | null {
    this.#turn ??= new Promise((resolve) =>
      setImmediate(() => {
        this.#spentMs = 0;
        this.#turn = null;
        resolve();
      }),
    );
    const began = performance.now();
    try {
      return isCheap(bytes) ? decodeDocument(bytes, source, this.#entropy) : null;
    } finally {
      this.#spentMs += performance.now() - began;
    }
  }
}

class DocumentThread {
  readonly #timeoutMs: number;
  readonly #memoryMiB: number;
  readonly #idleMs: number;
  readonly #queue: Job[] = [];
  /** With the thread, in the order in which it decodes them: the first is the one that it works at. */
  readonly #asked: Job[] = [];
  #worker: Worker | null = null;
  #ready = false;
  #timer: NodeJS.Timeout | undefined;
  #over = false;

  constructor({ timeoutMs = DOCUMENT_TIMEOUT_MS, memoryMiB = DOCUMENT_MEMORY_MIB, idleMs = IDLE_MS }: DocumentsOptions) {
    this.#timeoutMs = timeoutMs;
    this.#memoryMiB = memoryMiB;
    this.#idleMs = idleMs;
  }

  get ready(): boolean {
    return this.#ready;
  }

  decode(bytes: Uint8Array, source: DocumentSource): Promise<Decoded> {
    return new Promise((resolve, reject) => {
      if (this.#over) throw new Error(ENDED);
      this.#queue.push({ bytes, source, resolve, reject });
      this.#next();
    });
  }

  dispose(): void {
    this.#over = true;
    this.#end();
    for (const job of this.#queue.splice(0)) job.reject(new Error(ENDED));
  }

  /** Gives the thread what there is room for. */
  #next(): void {
    if (this.#over) return;
    if (this.#worker === null) {
      if (this.#queue.length > 0) this.#start();
      return;
    }
    if (!this.#ready) return;
    while (this.#asked.length < ASKED_MAX && roomFor(this.#queue[0], this.#asked)) this.#ask(this.#queue.shift() as Job);
    if (this.#asked.length > 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#end(), this.#idleMs).unref();
  }

  #ask(job: Job): void {
    // A copy, which the thread then owns.
    const bytes = Uint8Array.from(job.bytes);
    this.#worker?.postMessage({ bytes, source: job.source } satisfies Question, [bytes.buffer]);
    if (this.#asked.push(job) === 1) this.#watch();
  }

  /** The first document's time begins. */
  #watch(): void {
    clearTimeout(this.#timer);
    const first = this.#asked[0];
    // Its answer may have come already, and wait behind this timer.
    const look = (): void => void (first === this.#asked[0] && this.#refuse(`takes longer than ${this.#timeoutMs} ms to decode`));
    this.#timer = setTimeout(() => setImmediate(look), this.#timeoutMs).unref();
  }

  #start(): void {
    clearTimeout(this.#timer);
    try {
      this.#worker = this.#started();
      this.#timer = setTimeout(() => this.#fail(`was not ready within ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS).unref();
    } catch (error) {
      this.#fail(`cannot be started: ${messageOf(error)}`);
    }
  }

  #started(): Worker {
    const mine = new Worker(workerFile('documents', import.meta.url), {
      name: 'documents',
      resourceLimits: { maxOldGenerationSizeMb: this.#memoryMiB, maxYoungGenerationSizeMb: YOUNG_MIB },
      env: {},
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    // It keeps nothing alive: who waits for a document does.
    mine.unref();
    mine.on('message', ({ decoded }: Told) => {
      if (mine === this.#worker) this.#told(decoded);
    });
    mine.on('error', (error) => {
      if (mine !== this.#worker) return;
      if (codeOf(error) === 'ERR_WORKER_OUT_OF_MEMORY') this.#refuse(`takes more than ${this.#memoryMiB} MiB of memory to decode`);
      else this.#fail(`failed: ${messageOf(error)}`);
    });
    mine.on('exit', () => {
      if (mine === this.#worker) this.#fail('ended');
    });
    return mine;
  }

  #told(decoded: Decoded | null): void {
    if (decoded === null) this.#ready = true;
    else {
      this.#asked.shift()?.resolve(decoded);
      if (this.#asked.length > 0) this.#watch();
    }
    this.#next();
  }

  #refuse(what: string): void {
    this.#end();
    this.#queue.shift()?.resolve({ ok: false, errors: [what], holds: ANY_POD });
    this.#next();
  }

  #fail(what: string): void {
    this.#end();
    this.#queue.shift()?.reject(new Error(`the thread that decodes documents ${what}`));
    this.#next();
  }

  /** What the thread had not begun waits for the next one. */
  #end(): void {
    clearTimeout(this.#timer);
    void this.#worker?.terminate();
    this.#worker = null;
    this.#ready = false;
    this.#queue.unshift(...this.#asked.splice(0));
  }
}
