/** The time that a call of the API client has, and the words for how it ended. */
import type { KubeFailure } from '../../../machines/kube/request.ts';
import type { KubeCallOptions } from '../../../ports/kube.ts';
import type { Clock } from '../../../ports/ports.ts';
import { UNVERIFIED } from './refusal.ts';

/** Errors of a connection that never was: nothing reached the server. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'CERT_HAS_EXPIRED',
  ...UNVERIFIED,
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'EPROTO',
]);

export class Deadline {
  readonly signal: AbortSignal;
  readonly #own = new AbortController();
  readonly #opts: KubeCallOptions;
  readonly #clock: Clock;
  readonly #givenUp = (): void => this.#own.abort(this.#opts.signal.reason);
  #timer: unknown;
  #judging: NodeJS.Immediate | undefined;
  #late = false;

  constructor(clock: Clock, opts: KubeCallOptions) {
    this.#opts = opts;
    this.#clock = clock;
    this.signal = this.#own.signal;
    const { timeoutMs, signal } = opts;
    if (signal.aborted) this.#givenUp();
    else signal.addEventListener('abort', this.#givenUp, { once: true });
    if (timeoutMs === null) return;
    // A busy process reads late: an answer that came meanwhile is read before the call is given up.
    this.#timer = clock.setTimeout(() => {
      this.#judging = setImmediate(() => {
        this.#late = true;
        this.#own.abort(new Error(`no answer within ${timeoutMs} ms`));
      });
    }, timeoutMs);
  }

  disarm(): void {
    if (this.#timer !== undefined) this.#clock.clearTimeout(this.#timer);
    this.#timer = undefined;
    clearImmediate(this.#judging);
  }
  end(): void {
    this.disarm();
    this.#opts.signal.removeEventListener('abort', this.#givenUp);
  }

  /** `sent`: the request may have reached the server. */
  failure(error: unknown, sent: boolean): KubeFailure {
    const outcome = (code: string): 'failed' | 'unknown' => (sent && !NOT_SENT.has(code) ? 'unknown' : 'failed');
    if (this.#opts.signal.aborted)
      return { code: 0, reason: 'Aborted', message: 'the call was given up', outcome: sent ? 'unknown' : 'failed' };
    if (this.#late) {
      const message = `no answer within ${this.#opts.timeoutMs ?? 0} ms`;
      return { code: 0, reason: 'Timeout', message, outcome: sent ? 'unknown' : 'failed' };
    }
    const e = error instanceof Error ? error : new Error(String(error));
    const code = 'code' in e && typeof e.code === 'string' ? e.code : 'EIO';
    return { code: 0, reason: code, message: e.message || code, outcome: outcome(code) };
  }
}
