/**
 * Spans on their way to the receiver: bounded, in batches, one at a time. While the receiver is away the newest spans are
 * kept and the oldest dropped, with a count. Nothing waits for it but `end`, which is bounded.
 */
import { retryDelayMs } from '@actorlet/kubelet/machines/supervision/restartPolicy.ts';
import type { Clock, Logger } from '@actorlet/kubelet/ports/ports.ts';
import type { Span } from './model.ts';

/** As the SDK of the reference: spans that wait at most, spans in one request. */
export const QUEUE_MAX = 2048;
export const BATCH_MAX = 512;
/** Spans that come shortly after one another go together. */
const BATCH_AFTER_MS = 1_000;
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/** `again`: the receiver may take the same later. `rejected`: spans that it did not take for good. */
export type Sent = { ok: true; rejected: number } | { ok: false; again: boolean; why: string };
export interface SpanSender {
  /** Never rejects. */
  send(spans: readonly Span[], signal: AbortSignal): Promise<Sent>;
}
export interface QueueFigures {
  exported: number;
  dropped: number;
}

export class SpanQueue {
  readonly #sender: SpanSender;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #abort = new AbortController();
  readonly figures: QueueFigures = { exported: 0, dropped: 0 };
  #waiting: Span[] = [];
  #timer: unknown = null;
  #sending: Promise<void> | null = null;
  #failures = 0;
  #underWay = 0;
  #ended = false;
  /** What is sent from now on was counted as dropped. */
  #over = false;

  constructor(sender: SpanSender, env: { clock: Clock; log: Logger }) {
    this.#sender = sender;
    this.#clock = env.clock;
    this.#log = env.log;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  add(spans: readonly Span[]): void {
    if (this.#ended) {
      this.figures.dropped += spans.length;
      return;
    }
    this.#waiting.push(...spans);
    this.#cut();
    this.#arm(this.#waiting.length >= BATCH_MAX ? 0 : BATCH_AFTER_MS);
  }

  /** What waits is sent once more, in `limitMs` at most; what is left then is dropped. */
  async end(limitMs: number): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    this.#clock.clearTimeout(this.#timer);
    const late = this.#clock.setTimeout(() => this.#abort.abort(), limitMs);
    const stopped = new Promise<void>((resolve) => this.#abort.signal.addEventListener('abort', () => resolve(), { once: true }));
    await Promise.race([this.#flush(), stopped]);
    this.#clock.clearTimeout(late);
    this.#over = true;
    this.#abort.abort();
    const left = this.#waiting.length + this.#underWay;
    this.figures.dropped += left;
    if (left > 0) this.#log.warn({ spans: left }, 'tracing: these spans could not be sent before the end');
    this.#waiting = [];
  }

  async #flush(): Promise<void> {
    await this.#sending;
    while (this.#waiting.length > 0 && !this.#abort.signal.aborted) {
      const before = this.#waiting.length;
      await this.#send();
      // Not taken: the receiver is away.
      if (this.#waiting.length >= before) break;
    }
  }

  #cut(): void {
    const over = this.#waiting.length - QUEUE_MAX;
    if (over <= 0) return;
    this.#waiting.splice(0, over);
    this.figures.dropped += over;
  }

  #arm(afterMs: number): void {
    if (this.#timer !== null || this.#sending !== null || this.#ended) return;
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = null;
      this.#sending = this.#send().finally(() => {
        this.#sending = null;
        if (this.#waiting.length > 0) this.#arm(this.#nextMs());
      });
    }, afterMs);
  }
  #nextMs(): number {
    if (this.#failures > 0) return retryDelayMs({ minMs: RETRY_MS, maxMs: RETRY_MAX_MS }, this.#failures - 1);
    return this.#waiting.length >= BATCH_MAX ? 0 : BATCH_AFTER_MS;
  }

  async #send(): Promise<void> {
    const batch = this.#waiting.splice(0, BATCH_MAX);
    this.#underWay = batch.length;
    const sent = await this.#sender.send(batch, this.#abort.signal);
    if (this.#over) return;
    this.#underWay = 0;
    if (sent.ok) {
      this.figures.exported += batch.length - sent.rejected;
      this.figures.dropped += sent.rejected;
      if (this.#failures > 0) this.#log.info({}, 'tracing: the receiver takes spans again');
      this.#failures = 0;
      return;
    }
    if (this.#failures === 0) this.#log.warn({ err: sent.why }, 'tracing: the receiver did not take spans');
    this.#failures += 1;
    if (sent.again) {
      this.#waiting.unshift(...batch);
      this.#cut();
    } else this.figures.dropped += batch.length;
  }
}
