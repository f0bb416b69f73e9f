/**
 * Credentials that programs on the node give. A program is asked once at a time for one image; what it answers is kept for
 * as long as it says. One that fails gives none, and the pull goes on without.
 */

import type { PodRef } from '../../../machines/pod/names.ts';
import {
  askedAnnotations,
  authsFor,
  type CredentialProvider,
  cacheKeys,
  echoes,
  isAsked,
  type ProviderAccount,
  type ProviderAnswer,
  providerRequest,
  readAnswer,
  repositoryOf,
  sharedBy,
} from '../../../machines/runtime/imagePuller/credentialProviders.ts';
import type { OwnedAuth } from '../../../machines/runtime/imagePuller/keyring.ts';
import { DEFAULT_SECONDS } from '../../../machines/text/buckets.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { parseGoDuration } from '../../../machines/text/go/goDuration.ts';
import type { CredentialPrograms, Logger, Metrics, Ports } from '../../../ports/ports.ts';
import type { PeerCalls } from '../../foundation/client.ts';
import type { AccountSource } from '../../services/client.ts';

/** A program that takes longer is killed: the pull waits for it. */
const PROVIDER_LIMIT_MS = 60_000;
/** Life of a token, the API's own default. */
const TOKEN_SECONDS = 3_600;
/** Answers kept of one provider; the oldest goes first. */
const ANSWERS_MAX = 1_000;

export interface PullingPod {
  pod: PodRef;
  /** '' = it has none. */
  serviceAccount: string;
}
interface Kept {
  answer: ProviderAnswer;
  untilMonoMs: number;
}

interface ProviderKeyringOptions {
  ports: Pick<Ports, 'clock' | 'entropy' | 'metrics'>;
  log: Logger;
  programs: CredentialPrograms;
  signal: AbortSignal;
  /** Null on a node without an API, where no pod has a service account. */
  accounts: AccountSource | null;
  calls: PeerCalls;
}

export class ProviderKeyring {
  readonly #o: ProviderKeyringOptions;
  readonly #durations: ReturnType<Metrics['histogram']>;
  readonly #errors: ReturnType<Metrics['counter']>;
  /** By provider, then by what the answer holds for. */
  readonly #kept = new Map<string, Map<string, Kept>>();
  readonly #running = new Map<string, Promise<ProviderAnswer | null>>();

  constructor(o: ProviderKeyringOptions) {
    this.#o = o;
    const { metrics } = o.ports;
    const duration = 'Duration of execution in seconds for credential provider plugin';
    this.#durations = metrics.histogram('kubelet_credential_provider_plugin_duration', duration, DEFAULT_SECONDS, ['plugin_name']);
    this.#errors = metrics.counter('kubelet_credential_provider_plugin_errors_total', 'Number of errors from credential provider plugin', [
      'plugin_name',
    ]);
  }

  /** Asks every provider that knows this image, in the order of the configuration. Never rejects. */
  credentials(image: string, of: PullingPod): Promise<readonly OwnedAuth[]> {
    return this.#among(this.#o.programs.providers, image, of);
  }

  /** Asks only providers that are told of the pod: what shows that this pod may use an image that is there. Never rejects. */
  async accountCredentials(image: string, of: PullingPod): Promise<readonly OwnedAuth[]> {
    if (of.serviceAccount === '') return [];
    const told = this.#o.programs.providers.filter((p) => p.tokenAttributes !== undefined);
    return this.#among(told, image, of);
  }

  /** They are asked about the repository, without tag and digest: `docker.io/library/busybox` for `busybox:1.36`. */
  async #among(providers: readonly CredentialProvider[], image: string, of: PullingPod): Promise<readonly OwnedAuth[]> {
    const { repository } = repositoryOf(image) ?? {};
    if (repository === undefined) return [];
    const asked = providers.filter((p) => isAsked(p, repository));
    return (await Promise.all(asked.map((p) => this.#of(p, repository, of)))).flat();
  }

  async #of(provider: CredentialProvider, image: string, of: PullingPod): Promise<readonly OwnedAuth[]> {
    const account = provider.tokenAttributes === undefined ? null : await this.#account(provider, of);
    if (account === undefined) return [];
    const answer = await this.#answer(provider, image, account);
    if (answer === null) return [];
    if (account === null) return authsFor(answer, image);
    const { uid, namespace, name } = account;
    const kind = provider.tokenAttributes?.cacheType === 'ServiceAccount' ? 'serviceAccount' : 'token';
    return authsFor(answer, image).map(({ auth }) => ({ auth, owner: { kind, uid, namespace, name } }));
  }

  /** Null: the provider is asked without one. Undefined: it is not asked. */
  async #account({ name: provider, tokenAttributes: t }: CredentialProvider, of: PullingPod): Promise<ProviderAccount | null | undefined> {
    if (t === undefined) return null;
    const { pod, serviceAccount: name } = of;
    if (name === '' || this.#o.accounts === null) return t.requireServiceAccount ? undefined : null;
    const { namespace } = pod;
    const refuse = (err: string): undefined => {
      if (this.#o.signal.aborted) return;
      const place = { provider, uid: pod.uid, namespace, serviceAccount: name, err };
      this.#o.log.warn(place, 'a credential provider is not asked, for want of what it is to be told of the service account');
    };
    const account = await this.#o.accounts.account({ namespace, name }, this.#o.signal);
    if (account.kind !== 'found') return refuse(account.message ?? 'there is no such service account');
    const annotations = askedAnnotations(t, account.value.annotations);
    // A workload may choose in this way not to be served by the provider: no mistake.
    if (annotations === null) return undefined;
    const request = { namespace, serviceAccount: name, audiences: [t.audience], expirationSeconds: TOKEN_SECONDS };
    const token = await this.#o.accounts.token({ ...request, pod: { name: pod.name, uid: pod.uid } }, this.#o.signal);
    if (token.kind !== 'found') return refuse(token.message ?? 'there is no such service account');
    return { uid: account.value.uid, namespace, name, annotations, token: token.value.token };
  }

  #answer(provider: CredentialProvider, image: string, account: ProviderAccount | null): Promise<ProviderAnswer | null> {
    const shared = sharedBy(provider, account, (text) => this.#o.ports.entropy.sha256Hex(text));
    const kept = this.#remembered(provider, image, shared);
    if (kept !== undefined) return Promise.resolve(kept);
    const key = `${provider.name} ${image} ${shared}`;
    const known = this.#running.get(key);
    if (known !== undefined) return known;
    const running = this.#ask(provider, image, { account, shared }).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }

  #remembered({ name }: CredentialProvider, image: string, shared: string): ProviderAnswer | undefined {
    const mine = this.#kept.get(name);
    for (const of of Object.values(cacheKeys(image))) {
      const key = `${of} ${shared}`;
      const kept = mine?.get(key);
      if (kept === undefined) continue;
      if (kept.untilMonoMs > this.#o.ports.clock.monoMs()) return kept.answer;
      mine?.delete(key);
    }
    return undefined;
  }

  async #ask(
    provider: CredentialProvider,
    image: string,
    { account, shared }: { account: ProviderAccount | null; shared: string },
  ): Promise<ProviderAnswer | null> {
    const { name } = provider;
    const about = { peer: `credential provider ${name}`, name: image, call: 'run', about: image };
    const secrets = account === null ? [] : [account.token];
    try {
      const answer = await this.#o.calls.during(about, () => this.#run(provider, image, account), { signal: this.#o.signal, secrets });
      const cacheMs = answer.cacheMs ?? provider.defaultCacheMs;
      const key = `${cacheKeys(image)[answer.keyType]} ${shared}`;
      if (cacheMs > 0) this.#keep(name, key, { answer, untilMonoMs: this.#o.ports.clock.monoMs() + cacheMs });
      return answer;
    } catch (error) {
      if (this.#o.signal.aborted) return null;
      this.#errors.inc({ plugin_name: name });
      const err = messageOf(error);
      this.#o.log.warn({ provider: name, image, err }, 'a credential provider gave nothing; the image is pulled without what it knows');
      return null;
    }
  }

  async #run(provider: CredentialProvider, image: string, account: ProviderAccount | null): Promise<ProviderAnswer> {
    const beganMs = this.#o.ports.clock.monoMs();
    const call = { timeoutMs: PROVIDER_LIMIT_MS, signal: this.#o.signal };
    const text = await this.#o.programs
      .run(provider, providerRequest(provider, image, account), call)
      .finally(() => this.#durations.observe((this.#o.ports.clock.monoMs() - beganMs) / 1000, { plugin_name: provider.name }));
    const answer = readAnswer(provider, text, parseGoDuration);
    if (echoes(answer, provider, account)) throw new Error('gave the token of the pod back, which only cacheType Token allows');
    return answer;
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
