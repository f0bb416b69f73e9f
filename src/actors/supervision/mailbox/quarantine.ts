/** Keys that are shut out of a mailbox because an item of theirs kept crashing its actor. */
import type { Message } from '../../../machines/supervision/address.ts';

/** Keys quarantined at a time in one mailbox; the oldest is freed beyond that. */
const KEYS_MAX = 256;

export class Quarantine {
  /** Key to the `life` that the poisonous event carried; null when it carried none. */
  readonly #keys = new Map<string, number | null>();

  add(key: string, poison: Message): void {
    this.#keys.delete(key);
    this.#keys.set(key, lifeOf(poison));
    const oldest = this.#keys.keys().next().value;
    if (this.#keys.size > KEYS_MAX && oldest !== undefined) this.#keys.delete(oldest);
  }

  /** An event of a newer life is let in, and frees its key. */
  refuses(key: string, event: Message): boolean {
    const poisoned = this.#keys.get(key);
    if (poisoned === undefined) return false;
    const life = lifeOf(event);
    if (poisoned === null || life === null || life <= poisoned) return true;
    this.#keys.delete(key);
    return false;
  }

  clear(): void {
    this.#keys.clear();
  }
}

/** By convention an event that belongs to one life of its subject carries `life: number`. */
function lifeOf(event: Message): number | null {
  const value = (event as { life?: unknown }).life;
  return typeof value === 'number' ? value : null;
}
