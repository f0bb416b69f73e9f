/** Pulls under way: one per image and credentials however many pods wait, and only so many at a time. */

import { TokenBucket } from '../../../machines/data/tokenBucket.ts';
import { parseImageRef } from '../../../machines/kube/imageRef.ts';
import type { OwnedAuth } from '../../../machines/runtime/imagePuller/keyring.ts';
import type { AuthConfig, Image, ImageSpec, PodSandboxConfig } from '../../../machines/wire/cri.ts';
import { type Clock, CriError } from '../../../ports/ports.ts';
import type { CriClient } from '../client.ts';

export interface PullOptions {
  /** Pulls at a time; Infinity = no bound. */
  parallelMax: number;
  /** Config fields registryPullQPS and registryBurst; 0 pulls per second = no limit. */
  qps: number;
  burst: number;
  /** These wait for nothing, and are not counted. */
  isBuiltIn(image: string): boolean;
}
export interface PullRequest {
  /** Pods that share a pull share the annotations of the first. */
  image: ImageSpec;
  auths: readonly OwnedAuth[];
  sandboxConfig: PodSandboxConfig;
}
/**
 * `used`: which of the credentials worked, -1 for none. `beganMonoMs`: of the failed pull, null when it never began.
 * `unknown`: the image may come all the same. All that shared one are told the same.
 */
export type PullResult =
  | { ok: true; imageRef: string; image: Image | null; pullMs: number; used: number }
  | { ok: false; error: string; beganMonoMs: number | null; unknown?: true };

interface Turn {
  registry: string;
  go(): void;
}
interface Pull {
  image: string;
  result: Promise<PullResult>;
  waiters: number;
  abort: AbortController;
  /** Monotonic; null while it waits for its turn. */
  beganMonoMs: number | null;
  /** Called when its turn comes. */
  began: Set<() => void>;
}

function registryOf(image: string): string {
  const parsed = parseImageRef(image);
  return parsed.ok ? parsed.ref.domain : '';
}

function gaveUp(error: string): PullResult {
  return { ok: false, error, beganMonoMs: null };
}

export class Pulls {
  readonly #o: PullOptions & { cri: CriClient; clock: Clock; onChange(active: number): void };
  readonly #bucket: TokenBucket;
  readonly #pulls = new Map<string, Pull>();
  readonly #turns: Turn[] = [];
  /** Of each registry, how many run. */
  readonly #running = new Map<string, number>();

  constructor(o: PullOptions & { cri: CriClient; clock: Clock; onChange(active: number): void }) {
    this.#o = o;
    this.#bucket = new TokenBucket(o.qps, o.burst);
  }

  /** Joins the pull of that image, or begins one. It is cancelled when the last that waits for it gave up. */
  async pull(request: PullRequest, signal: AbortSignal, began: () => void = () => {}): Promise<PullResult> {
    // The origin of credentials makes no difference to the registry.
    const key = `${request.image.image}\n${JSON.stringify(request.auths.map((a) => a.auth))}`;
    let pull = this.#pulls.get(key);
    if (pull === undefined || pull.abort.signal.aborted) {
      pull = this.#begin(key, request);
    }
    const joined = pull;
    joined.waiters++;
    if (joined.beganMonoMs === null) joined.began.add(began);
    else began();
    const given = Promise.withResolvers<PullResult>();
    const leave = () => given.resolve(gaveUp('nobody waits for this image any more'));
    if (signal.aborted) leave();
    else signal.addEventListener('abort', leave, { once: true });
    try {
      return await Promise.race([joined.result, given.promise]);
    } finally {
      signal.removeEventListener('abort', leave);
      joined.began.delete(began);
      joined.waiters--;
      if (joined.waiters === 0) joined.abort.abort();
    }
  }

  /** What is being pulled, oldest first: `nginx:1.25 (12 s)`. */
  progress(): string[] {
    const now = this.#o.clock.monoMs();
    return [...this.#pulls.values()].map((p) =>
      p.beganMonoMs === null ? `${p.image} (waiting for its turn)` : `${p.image} (${Math.round((now - p.beganMonoMs) / 1000)} s)`,
    );
  }

  #begin(key: string, request: PullRequest): Pull {
    const abort = new AbortController();
    const pull: Pull = {
      image: request.image.image,
      waiters: 0,
      abort,
      beganMonoMs: null,
      began: new Set(),
      result: Promise.resolve(gaveUp('')),
    };
    this.#pulls.set(key, pull);
    pull.result = this.#run(pull, request).finally(() => {
      if (this.#pulls.get(key) === pull) this.#pulls.delete(key);
      this.#o.onChange(this.#pulls.size);
    });
    this.#o.onChange(this.#pulls.size);
    return pull;
  }

  async #run(pull: Pull, request: PullRequest): Promise<PullResult> {
    if (this.#o.isBuiltIn(pull.image)) return this.#tryAll(this.#begun(pull), request, pull.abort.signal);
    const registry = registryOf(pull.image);
    if (!(await this.#turn(registry, pull.abort.signal))) return gaveUp('cancelled before its turn came');
    try {
      const beganMonoMs = this.#begun(pull);
      if (!this.#bucket.take(beganMonoMs)) return { ok: false, error: 'pull QPS exceeded', beganMonoMs };
      return await this.#tryAll(beganMonoMs, request, pull.abort.signal);
    } finally {
      this.#count(registry, -1);
      this.#next();
    }
  }

  #begun(pull: Pull): number {
    pull.beganMonoMs = this.#o.clock.monoMs();
    for (const began of pull.began) began();
    return pull.beganMonoMs;
  }

  /** Every matching credential in order until one works; none at all = anonymous. */
  async #tryAll(beganMonoMs: number, request: PullRequest, signal: AbortSignal): Promise<PullResult> {
    const errors: string[] = [];
    const attempts: (AuthConfig | undefined)[] = request.auths.length === 0 ? [undefined] : request.auths.map((a) => a.auth);
    let unknown = false;
    for (const [i, auth] of attempts.entries()) {
      try {
        const { imageRef } = await this.#o.cri.read(
          'PullImage',
          { image: request.image, sandboxConfig: request.sandboxConfig, ...(auth === undefined ? {} : { auth }) },
          { signal },
        );
        const pullMs = this.#o.clock.monoMs() - beganMonoMs;
        return {
          ok: true,
          imageRef,
          image: await this.#pulled({ ...request.image, image: imageRef }, signal),
          pullMs,
          used: auth === undefined ? -1 : i,
        };
      } catch (error) {
        if (!(error instanceof CriError)) throw error;
        errors.push(error.details);
        unknown ||= error.outcome === 'unknown';
        if (signal.aborted) break;
      }
    }
    const error = errors.length === 1 ? (errors[0] ?? '') : `[${errors.join(', ')}]`;
    return { ok: false, error, beganMonoMs, ...(unknown ? { unknown } : {}) };
  }

  /** What has come. Null where the runtime does not tell: the pull has worked all the same. */
  async #pulled(image: ImageSpec, signal: AbortSignal): Promise<Image | null> {
    try {
      return (await this.#o.cri.read('ImageStatus', { image }, { signal })).image;
    } catch (error) {
      if (!(error instanceof CriError)) throw error;
      return null;
    }
  }

  /** Resolves true when it may run, false when it was cancelled while it waited. */
  #turn(registry: string, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.#active() < this.#o.parallelMax) {
      this.#count(registry, 1);
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const go = () => {
        signal.removeEventListener('abort', cancel);
        this.#count(registry, 1);
        resolve(true);
      };
      const turn: Turn = { registry, go };
      const cancel = () => {
        const at = this.#turns.indexOf(turn);
        if (at >= 0) this.#turns.splice(at, 1);
        resolve(false);
      };
      signal.addEventListener('abort', cancel, { once: true });
      this.#turns.push(turn);
    });
  }

  /** The oldest of the registry with the fewest pulls: one that hangs does not hold up the others. */
  #next(): void {
    const load = ({ registry }: Turn): number => this.#running.get(registry) ?? 0;
    const least = Math.min(...this.#turns.map(load));
    const at = this.#turns.findIndex((turn) => load(turn) === least);
    if (at >= 0) this.#turns.splice(at, 1)[0]?.go();
  }

  #active(): number {
    return [...this.#running.values()].reduce((sum, n) => sum + n, 0);
  }

  #count(registry: string, by: 1 | -1): void {
    const n = (this.#running.get(registry) ?? 0) + by;
    if (n > 0) this.#running.set(registry, n);
    else this.#running.delete(registry);
  }
}
