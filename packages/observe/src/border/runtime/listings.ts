/** What the runtime lists: learnt from what the tree asks anyway, and asked for only while somebody waits for the kubelet. */
import { CRI_LABELS, type CriContainer, type PodSandbox, type RuntimeHint } from '@actorlet/kubelet/machines/wire/cri.ts';
import type { CriMethod, CriRequest, CriResponse } from '@actorlet/kubelet/machines/wire/criCalls.ts';
import type { Clock, Cri } from '@actorlet/kubelet/ports/ports.ts';
import type { WaitEnd } from '../waiting.ts';

/** Hints come in bursts. */
const AFTER_HINT_MS = 100;
/** Without hints, and for what no hint tells. */
const EVERY_MS = 1_000;
/** Of the time of this program and the runtime, listings take so small a part: a runtime that is at work for the kubelet is asked seldom. */
const LISTING_SHARE = 1 / 20;
const LIST_TIMEOUT_MS = 10_000;

type Answer = { [M in CriMethod]: { method: M; req: CriRequest<M>; res: CriResponse<M> } }[CriMethod];

export interface Listing {
  sandboxes: readonly PodSandbox[];
  containers: readonly CriContainer[];
}

interface Waiter {
  /** True: it was answered. */
  look(listing: Listing): boolean;
}

export class RuntimeListings {
  readonly #cri: Cri;
  readonly #clock: Clock;
  readonly #waiters = new Set<Waiter>();
  /** Of containers, as the last listing of all shows them. */
  #states: ReadonlyMap<string, CriContainer['state']> = new Map();
  readonly #subjects = new Map<string, { pod: string; uid: string; name: string; madeMs: number }>();
  readonly #listed: (beganMs: number) => void;
  #timer: unknown;
  #dueMs = Number.POSITIVE_INFINITY;
  #asking = false;
  /** Monotonic ms before which the runtime is not asked again. */
  #restUntilMs = 0;
  #again = false;

  /** `listed`: is told of each listing that this asked for, and when it began. */
  constructor(cri: Cri, { clock, listed }: { clock: Clock; listed: (beganMs: number) => void }) {
    this.#cri = cri;
    this.#clock = clock;
    this.#listed = listed;
  }

  /** Of a container or sandbox. */
  podOf(id: string): { pod: string; uid: string } {
    const { pod, uid } = this.#subjects.get(id) ?? { pod: '', uid: '' };
    return { pod, uid };
  }
  /** Of a sandbox or container of this pod that was listed. */
  hasAny(uid: string): boolean {
    return [...this.#subjects.values()].some((subject) => subject.uid === uid);
  }
  /** An instance of this container that was made since then. */
  isMade({ uid, name, sinceMs }: { uid: string; name: string; sinceMs: number }): boolean {
    return [...this.#subjects.values()].some((made) => made.uid === uid && made.name === name && made.madeMs >= sinceMs);
  }
  nameOf(containerId: string): string {
    return this.#subjects.get(containerId)?.name ?? '';
  }

  /** Undefined: there is no such container. */
  stateOf(containerId: string): CriContainer['state'] | undefined {
    return this.#states.get(containerId);
  }

  /** Whether a container of this pod runs. */
  isRunning(uid: string): boolean {
    return [...this.#states].some(([id, state]) => state === 'CONTAINER_RUNNING' && this.#subjects.get(id)?.uid === uid);
  }

  /** From an answer that the tree was given. */
  learn(answer: Answer): void {
    if (answer.method === 'ListContainers') {
      const { containers } = answer.res;
      for (const c of containers) this.#know(c, c.metadata?.name ?? '');
      if (answer.req.filter == null) this.#states = new Map(containers.map(({ id, state }) => [id, state]));
    } else if (answer.method === 'ListPodSandbox') for (const s of answer.res.items) this.#know(s, '');
  }

  /** Until a listing shows it; the first look is at once. */
  until<T>(shown: (listing: Listing) => T | undefined, o: { timeoutMs: number | null; signal: AbortSignal }): Promise<WaitEnd<T>> {
    return new Promise((resolve, reject) => {
      const end = (act: () => void): void => {
        this.#waiters.delete(waiter);
        if (timer !== undefined) this.#clock.clearTimeout(timer);
        o.signal.removeEventListener('abort', givenUp);
        act();
      };
      const givenUp = (): void => end(() => resolve({ kind: 'given up' }));
      const waiter: Waiter = {
        look: (listing) => {
          let value: T | undefined;
          try {
            value = shown(listing);
          } catch (error) {
            end(() => reject(error));
            return true;
          }
          if (value === undefined) return false;
          end(() => resolve({ kind: 'shown', value }));
          return true;
        },
      };
      let timer: unknown;
      if (o.signal.aborted) return resolve({ kind: 'given up' });
      o.signal.addEventListener('abort', givenUp, { once: true });
      if (o.timeoutMs !== null) timer = this.#clock.setTimeout(() => end(() => resolve({ kind: 'late' })), o.timeoutMs);
      this.#waiters.add(waiter);
      this.#soon(0);
    });
  }

  async *hearing(stream: AsyncIterable<RuntimeHint>): AsyncGenerator<RuntimeHint> {
    for await (const hint of stream) {
      if (this.#waiters.size > 0) this.#soon(AFTER_HINT_MS);
      yield hint;
    }
  }

  #know({ id, labels, createdAt }: Pick<CriContainer, 'id' | 'labels' | 'createdAt'>, name: string): void {
    const { [CRI_LABELS.podNamespace]: namespace, [CRI_LABELS.podName]: pod, [CRI_LABELS.podUid]: uid } = labels;
    if (uid === undefined || this.#subjects.has(id)) return;
    if (this.#subjects.size >= IDS_MAX) this.#subjects.clear();
    this.#subjects.set(id, { pod: `${namespace ?? ''}/${pod ?? ''}`, uid, name, madeMs: Number(createdAt) / 1_000_000 });
  }

  #soon(ms: number): void {
    const nowMs = this.#clock.monoMs();
    const dueMs = Math.max(nowMs + ms, this.#restUntilMs);
    if (this.#asking) {
      this.#again = true;
      return;
    }
    if (this.#timer !== undefined) {
      if (dueMs >= this.#dueMs) return;
      this.#clock.clearTimeout(this.#timer);
    }
    this.#dueMs = dueMs;
    this.#timer = this.#clock.setTimeout(() => {
      this.#timer = undefined;
      void this.#ask();
    }, dueMs - nowMs);
  }

  async #ask(): Promise<void> {
    if (this.#waiters.size === 0) return;
    this.#asking = true;
    this.#again = false;
    const beganMs = this.#clock.monoMs();
    try {
      const opts = { timeoutMs: LIST_TIMEOUT_MS, signal: new AbortController().signal };
      const [sandboxes, containers] = await Promise.all([
        this.#cri.call('ListPodSandbox', {}, opts),
        this.#cri.call('ListContainers', {}, opts),
      ]);
      this.learn({ method: 'ListPodSandbox', req: {}, res: sandboxes });
      this.learn({ method: 'ListContainers', req: {}, res: containers });
      const listing = { sandboxes: sandboxes.items, containers: containers.containers };
      for (const waiter of [...this.#waiters]) waiter.look(listing);
      this.#listed(beganMs);
    } catch {
      // A runtime that is away shows nothing; whoever waits has a deadline, and the link says that it is away.
    }
    this.#asking = false;
    const nowMs = this.#clock.monoMs();
    this.#restUntilMs = nowMs + Math.min((nowMs - beganMs) / LISTING_SHARE, EVERY_MS);
    if (this.#waiters.size > 0) this.#soon(this.#again ? AFTER_HINT_MS : EVERY_MS);
  }
}

/** Ids remembered; beyond it everything is forgotten and learnt anew from the next listing. */
const IDS_MAX = 20_000;
