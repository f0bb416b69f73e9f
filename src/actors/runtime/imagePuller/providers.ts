/**
 * Credentials that programs on the node give. A program is asked once at a time for one image; what it answers is kept for
 * as long as it says. One that fails gives none, and the pull goes on without.
 */

import { parseGoDuration } from '../../../machines/config/duration.ts';
import {
  authsFor,
  type CredentialProvider,
  cacheKeys,
  isAsked,
  type ProviderAnswer,
  providerRequest,
  readAnswer,
} from '../../../machines/runtime/credentialProviders.ts';
import type { OwnedAuth } from '../../../machines/runtime/keyring.ts';
import type { CredentialPrograms, Logger, Ports } from '../../kernel/ports.ts';

/** A program that takes longer is killed: the pull waits for it. */
export const PROVIDER_LIMIT_MS = 60_000;
/** Answers kept of one provider; the oldest goes first. */
const ANSWERS_MAX = 1_000;

interface Kept {
  answer: ProviderAnswer;
  untilMonoMs: number;
}

export class ProviderKeyring {
  readonly #ports: Pick<Ports, 'clock'>;
  readonly #log: Logger;
  readonly #programs: CredentialPrograms;
  readonly #signal: AbortSignal;
  /** By provider, then by what the answer holds for. */
  readonly #kept = new Map<string, Map<string, Kept>>();
  readonly #running = new Map<string, Promise<ProviderAnswer | null>>();

  constructor(o: { ports: Pick<Ports, 'clock'>; log: Logger; programs: CredentialPrograms; signal: AbortSignal }) {
    this.#ports = o.ports;
    this.#log = o.log;
    this.#programs = o.programs;
    this.#signal = o.signal;
  }

  /** Of every provider that this image is asked of, in the order of the configuration. Never rejects. */
  async credentials(image: string): Promise<readonly OwnedAuth[]> {
    const asked = this.#programs.providers.filter((p) => isAsked(p, image));
    const answers = await Promise.all(asked.map((p) => this.#answer(p, image)));
    return answers.flatMap((answer) => (answer === null ? [] : authsFor(answer, image)));
  }

  #answer(provider: CredentialProvider, image: string): Promise<ProviderAnswer | null> {
    const kept = this.#remembered(provider, image);
    if (kept !== undefined) return Promise.resolve(kept);
    const key = `${provider.name} ${image}`;
    const known = this.#running.get(key);
    if (known !== undefined) return known;
    const running = this.#ask(provider, image).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }

  #remembered({ name }: CredentialProvider, image: string): ProviderAnswer | undefined {
    const mine = this.#kept.get(name);
    for (const key of Object.values(cacheKeys(image))) {
      const kept = mine?.get(key);
      if (kept === undefined) continue;
      if (kept.untilMonoMs > this.#ports.clock.monoMs()) return kept.answer;
      mine?.delete(key);
    }
    return undefined;
  }

  async #ask(provider: CredentialProvider, image: string): Promise<ProviderAnswer | null> {
    const { name } = provider;
    try {
      const call = { timeoutMs: PROVIDER_LIMIT_MS, signal: this.#signal };
      const text = await this.#programs.run(provider, providerRequest(provider, image), call);
      const answer = readAnswer(provider, text, parseGoDuration);
      const cacheMs = answer.cacheMs ?? provider.defaultCacheMs;
      if (cacheMs > 0) this.#keep(name, cacheKeys(image)[answer.keyType], { answer, untilMonoMs: this.#ports.clock.monoMs() + cacheMs });
      return answer;
    } catch (error) {
      if (this.#signal.aborted) return null;
      const err = error instanceof Error ? error.message : String(error);
      this.#log.warn({ provider: name, image, err }, 'a credential provider gave nothing; the image is pulled without what it knows');
      return null;
    }
  }

  #keep(name: string, key: string, kept: Kept): void {
    const mine = this.#kept.get(name) ?? new Map<string, Kept>();
    mine.delete(key);
    for (const oldest of mine.keys()) {
      if (mine.size < ANSWERS_MAX) break;
      mine.delete(oldest);
    }
    this.#kept.set(name, mine.set(key, kept));
  }
}
