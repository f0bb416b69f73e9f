/** How an actor calls a lower layer, so that `why` can say what it answered last, and what it has not answered. Holds no secret. */
import { answered, givenUp, type PeerCall, type PeerWords, peerKey, waiting } from '../../machines/pod/peers/peers.ts';
import { withoutSecrets } from '../../machines/pod/peers/withoutSecrets.ts';
import type { ViewKey } from '../../machines/supervision/address.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { type Clock, CriError } from '../../ports/ports.ts';

export interface PeerCallsOptions {
  clock: Clock;
  publish(words: PeerWords): void;
}

export class PeerCalls {
  readonly #o: PeerCallsOptions;
  #words: PeerWords = new Map();
  /** Calls under way, by what they are about. */
  readonly #underWay = new Map<string, number>();

  constructor(o: PeerCallsOptions) {
    this.#o = o;
    // Calls of an earlier incarnation are over.
    o.publish(this.#words);
  }

  /** `signal`: aborted, its asker gave up. `secrets`: never shown, should the answer repeat them. */
  async during<T>(
    of: PeerCall,
    work: () => Promise<T>,
    { signal, secrets = [] }: { signal?: AbortSignal; secrets?: readonly string[] } = {},
  ): Promise<T> {
    const key = peerKey(of);
    this.#underWay.set(key, (this.#underWay.get(key) ?? 0) + 1);
    this.#put(waiting(this.#words, of, this.#o.clock.wallMs()));
    try {
      const answer = await work();
      this.#ended(key);
      this.settled(of);
      return answer;
    } catch (error) {
      this.#ended(key);
      if (signal?.aborted === true) this.#put(givenUp(this.#words, of));
      // As events of pods have it, so that nobody reads it twice.
      else this.failed(of, withoutSecrets(error instanceof CriError ? error.details : messageOf(error), secrets));
      throw error;
    }
  }

  /** It said so by itself, or one of its calls that are not followed one by one. */
  failed(of: PeerCall, error: string): void {
    this.#put(answered(this.#words, of, { error, nowMs: this.#o.clock.wallMs() }));
  }

  settled(of: PeerCall): void {
    this.#put(answered(this.#words, of, { error: null, nowMs: this.#o.clock.wallMs() }));
    if (this.#underWay.has(peerKey(of))) this.#put(waiting(this.#words, of, this.#o.clock.wallMs()));
  }

  /** The peer is gone. */
  forget(peer: string): void {
    for (const word of this.#words.values()) if (word.peer === peer) this.settled(word);
  }

  #ended(key: string): void {
    const left = (this.#underWay.get(key) ?? 0) - 1;
    if (left > 0) this.#underWay.set(key, left);
    else this.#underWay.delete(key);
  }

  #put(words: PeerWords): void {
    if (words === this.#words) return;
    this.#words = words;
    this.#o.publish(words);
  }
}

/** Of an actor that publishes them as its own view. */
export function peerCalls(
  ctx: { ports: { clock: Clock }; publish<T>(key: ViewKey<T>, value: T): void },
  key: ViewKey<PeerWords>,
): PeerCalls {
  return new PeerCalls({ clock: ctx.ports.clock, publish: (words) => ctx.publish(key, words) });
}
