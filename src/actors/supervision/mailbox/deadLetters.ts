/** Messages that reached nobody: counted always, logged at powers of two, the newest kept. */

import type { Ports } from '../../../ports/ports.ts';
import { isPowerOfTwo } from '../errors.ts';
import type { Observers } from '../observers.ts';
import type { DeadLetter } from '../types.ts';

/** How many are kept for a look back. */
const DEAD_LETTERS_KEPT = 256;
/** Distinct address and reason pairs whose counts are kept for log sampling. */
const SAMPLES_MAX = 1024;

export class DeadLetters {
  #total = 0;
  readonly #byReason: Record<string, number> = {};
  #recent: DeadLetter[] = [];
  readonly #seen = new Map<string, number>();
  readonly #ports: Ports;
  readonly #observers: Observers;

  constructor(ports: Ports, observers: Observers) {
    this.#ports = ports;
    this.#observers = observers;
  }

  add(letter: Omit<DeadLetter, 'atMs'>, error?: Error): void {
    const full: DeadLetter = { atMs: this.#ports.clock.wallMs(), ...letter };
    this.#total += 1;
    this.#byReason[letter.reason] = (this.#byReason[letter.reason] ?? 0) + 1;
    this.#recent.push(full);
    if (this.#recent.length > DEAD_LETTERS_KEPT * 2) this.#recent = this.#recent.slice(-DEAD_LETTERS_KEPT);
    this.#logSampled(letter, error);
    if (this.#observers.any) this.#observers.emit({ kind: 'dead-letter', atMs: full.atMs, letter: full });
  }

  read(): { total: number; byReason: Record<string, number>; recent: readonly DeadLetter[] } {
    return { total: this.#total, byReason: { ...this.#byReason }, recent: this.#recent.slice(-DEAD_LETTERS_KEPT) };
  }

  #logSampled(letter: Omit<DeadLetter, 'atMs'>, error: Error | undefined): void {
    const sample = `${letter.reason} ${letter.to}`;
    const count = (this.#seen.get(sample) ?? 0) + 1;
    if (this.#seen.size >= SAMPLES_MAX && !this.#seen.has(sample)) this.#seen.clear();
    this.#seen.set(sample, count);
    if (!isPowerOfTwo(count)) return;
    const fields = { actor: letter.to, event: letter.type, key: letter.key, reason: letter.reason, count };
    this.#ports.log.warn(error === undefined ? fields : { ...fields, err: error }, 'dead letter: the message reached nobody');
  }
}
