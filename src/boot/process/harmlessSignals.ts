/**
 * Signals without effect. A handler costs a turn of the event loop for each, and where more come than it takes, the pipe to it is
 * full and SIGTERM is lost with the rest. So the kernel drops what nobody sends on purpose, and for a minute what comes too often.
 */
import { constants } from 'node:os';
import { SILENT_SIGNALS, TOLD_SIGNALS } from '@actorlet/process/src/signals.ts';
import { messageOf } from '../../machines/text/errors.ts';
import type { Logger } from '../../ports/ports.ts';
import type { BootIo } from '../steps/context.ts';
import type { Libc } from './libc.ts';

/** More of one signal within a second are too many. */
const IN_A_SECOND_MAX = 20;
const DROPPED_MS = 60_000;
/** One line of log about one signal in this time. */
const TOLD_EVERY_MS = 10_000;
/** Real-time signals of Linux; the C library keeps the two before them. Node cannot hear them, and they end a process by default. */
const REAL_TIME = { first: 34, last: 64 } as const;
const WITHOUT = 'is without effect; flags and configuration are read at the start';

interface Options {
  io: Pick<BootIo, 'on'>;
  log: Logger;
  libc(): Pick<Libc, 'ignoreSignal' | 'outliveSignal'>;
  monoMs(): number;
}

/** Disposing ends what `io` was asked for. */
export function handleHarmlessSignals(o: Options): Disposable {
  const heard: Disposable[] = [];
  for (const name of SILENT_SIGNALS) {
    // V8's profiler has it: `outliveSignals` left it alone.
    if (name === 'SIGPROF' && process.listenerCount(name) === 0) continue;
    // The handler keeps the process alive where the kernel cannot be told.
    heard.push(o.io.on(name, () => {}));
    drop(o, name);
  }
  outliveRealTime(o);
  heard.push(...TOLD_SIGNALS.map((name) => new Told(o, name)));
  return {
    [Symbol.dispose]() {
      for (const one of heard) one[Symbol.dispose]();
    },
  };
}

function outliveRealTime({ libc, log }: Options): void {
  if (process.platform !== 'linux') return;
  try {
    const calls = libc();
    for (let signal: number = REAL_TIME.first; signal <= REAL_TIME.last; signal++) calls.outliveSignal(signal);
  } catch (error) {
    log.debug({ err: messageOf(error) }, 'real-time signals end this process');
  }
}

/** Gives what undoes it; null: it cannot be. */
function drop({ libc, log }: Options, name: NodeJS.Signals): (() => void) | null {
  try {
    return libc().ignoreSignal(constants.signals[name]);
  } catch (error) {
    log.debug({ err: messageOf(error) }, `${name} cannot be ignored; it is handled`);
    return null;
  }
}

class Told implements Disposable {
  readonly #o: Options;
  readonly #name: (typeof TOLD_SIGNALS)[number];
  readonly #heard: Disposable;
  #second = { fromMs: Number.NEGATIVE_INFINITY, count: 0 };
  #toldMs = Number.NEGATIVE_INFINITY;
  #untold = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(o: Options, name: (typeof TOLD_SIGNALS)[number]) {
    this.#o = o;
    this.#name = name;
    this.#heard = o.io.on(name, () => this.#hear());
  }

  #hear(): void {
    const nowMs = this.#o.monoMs();
    if (nowMs - this.#second.fromMs >= 1_000) this.#second = { fromMs: nowMs, count: 0 };
    this.#second.count += 1;
    if (this.#second.count > IN_A_SECOND_MAX) {
      this.#dropForAWhile();
      return;
    }
    if (nowMs - this.#toldMs < TOLD_EVERY_MS) {
      this.#untold += 1;
      return;
    }
    const more = this.#untold === 0 ? '' : `; it came ${this.#untold} times more since it was told of last`;
    [this.#toldMs, this.#untold] = [nowMs, 0];
    this.#o.log.info({}, `${this.#name} ${WITHOUT}${more}`);
  }

  #dropForAWhile(): void {
    if (this.#timer !== undefined) return;
    const restore = drop(this.#o, this.#name);
    this.#o.log.warn({}, `${this.#name} comes more than ${IN_A_SECOND_MAX} times a second: it is ignored for ${DROPPED_MS / 1_000} s`);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      restore?.();
    }, DROPPED_MS).unref();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#heard[Symbol.dispose]();
  }
}
