/** One question under way: settles once as reply, refused or lost, and never rejects. */
import type { Answer, ReplyTo } from '../../../machines/supervision/address.ts';
import type { Clock } from '../../../ports/ports.ts';

/** What the mailbox and the asked actor's host need to know of a question. */
export interface PendingAsk {
  readonly settled: boolean;
  refuse(reason: string): void;
  lose(reason: string): void;
  /** Runs once when it settles. */
  onSettled(fn: () => void): void;
}

export class Question<R> implements PendingAsk {
  readonly answer: Promise<Answer<R>>;
  readonly replyTo: ReplyTo<R>;
  settled = false;
  readonly #gaveUp = new AbortController();
  readonly #clock: Clock;
  readonly #timer: unknown;
  #resolve: (a: Answer<R>) => void = () => undefined;
  #listeners: (() => void)[] = [];
  readonly #signals: { signal: AbortSignal; fn: () => void }[] = [];

  constructor(clock: Clock, opts: { timeoutMs: number; signals: readonly (AbortSignal | undefined)[] }) {
    this.#clock = clock;
    this.answer = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    const reply = (value: R) => this.#settle({ kind: 'reply', value });
    this.replyTo = Object.assign(reply, {
      refuse: (reason: string) => this.#settle({ kind: 'refused', reason }),
      signal: this.#gaveUp.signal,
    });
    this.#timer = clock.setTimeout(() => this.#giveUp(`no answer within ${opts.timeoutMs} ms`), opts.timeoutMs);
    for (const signal of opts.signals) {
      if (signal === undefined) continue;
      const fn = () => this.#giveUp('the asker gave up');
      if (signal.aborted) fn();
      else {
        signal.addEventListener('abort', fn);
        this.#signals.push({ signal, fn });
      }
    }
  }

  refuse(reason: string): void {
    this.#settle({ kind: 'refused', reason });
  }
  lose(reason: string): void {
    this.#settle({ kind: 'lost', reason });
  }
  onSettled(fn: () => void): void {
    if (this.settled) fn();
    else this.#listeners.push(fn);
  }

  #giveUp(reason: string): void {
    if (this.settled) return;
    this.#settle({ kind: 'lost', reason });
    this.#gaveUp.abort(new Error(reason));
  }

  #settle(answer: Answer<R>): void {
    if (this.settled) return;
    this.settled = true;
    this.#clock.clearTimeout(this.#timer);
    for (const { signal, fn } of this.#signals) signal.removeEventListener('abort', fn);
    this.#resolve(answer);
    for (const fn of this.#listeners) fn();
    this.#listeners = [];
  }
}
