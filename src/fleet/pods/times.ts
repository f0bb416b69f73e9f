/** How long pods of one machine took until they were Ready, over restarts of its daemon. */
import type { Registry } from '../../actors/supervision/types.ts';
import type { PodStatus } from '../../machines/kube/types.ts';
import { podsView } from '../../machines/pods/manager/messages.ts';
import { statusesView } from '../../machines/pods/status/messages.ts';
import type { Clock } from '../../ports/ports.ts';

/** Hears of pods that its node has, and that they are Ready, ended or gone. */
export interface PodsBeingMade {
  begun(uid: string): void;
  made(uid: string): void;
}

export class PodTimes {
  /** From the creation, which the API server tells in whole seconds. */
  readonly createdSeconds: number[] = [];
  /** From the moment when its node saw it. */
  readonly seenSeconds: number[] = [];
  readonly #clock: Clock;
  /** Pods that were created before are not measured. */
  readonly #sinceMs: number;
  /** By UID: when it was seen, and when it was created. */
  readonly #waiting = new Map<string, { seenMs: number; createdMs: number }>();
  readonly #known = new Set<string>();
  readonly #making = new Set<string>();
  readonly #heard: PodsBeingMade;

  constructor(clock: Clock, heard: PodsBeingMade) {
    this.#clock = clock;
    this.#heard = heard;
    this.#sinceMs = Math.floor(clock.wallMs() / 1_000) * 1_000;
  }

  /** Until that is disposed of. */
  follow(registry: Pick<Registry, 'watch'>): Disposable {
    const pods = registry.watch(podsView, ({ records }) => {
      for (const uid of this.#known) if (!records.has(uid)) this.#forget(uid);
      for (const [uid, { pod }] of records) {
        if (this.#known.has(uid)) continue;
        this.#known.add(uid);
        if (!isMade(pod.status)) {
          this.#making.add(uid);
          this.#heard.begun(uid);
        }
        const createdMs = Date.parse(pod.metadata.creationTimestamp ?? '');
        if (createdMs >= this.#sinceMs) this.#waiting.set(uid, { seenMs: this.#clock.monoMs(), createdMs });
      }
    });
    const statuses = registry.watch(statusesView, (view) => {
      for (const uid of this.#making) if (isMade(view.get(uid)?.status)) this.#made(uid);
      for (const [uid, { seenMs, createdMs }] of this.#waiting) {
        if (!isReady(view.get(uid)?.status)) continue;
        this.#waiting.delete(uid);
        this.createdSeconds.push(Math.max(0, this.#clock.wallMs() - createdMs) / 1_000);
        this.seenSeconds.push((this.#clock.monoMs() - seenMs) / 1_000);
      }
    });
    return {
      [Symbol.dispose]() {
        pods[Symbol.dispose]();
        statuses[Symbol.dispose]();
      },
    };
  }

  #made(uid: string): void {
    if (this.#making.delete(uid)) this.#heard.made(uid);
  }

  #forget(uid: string): void {
    this.#known.delete(uid);
    this.#waiting.delete(uid);
    this.#made(uid);
  }
}

type Status = Pick<PodStatus, 'phase' | 'conditions'>;

function isReady(status: Status | undefined): boolean {
  return status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
}
function isMade(status: Status | undefined): boolean {
  return isReady(status) || status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
