/** How long pods of one machine took until they were Ready, over restarts of its daemon. */
import type { Registry } from '@actorlet/kubelet/actors/supervision/types.ts';
import type { Pod, PodStatus } from '@actorlet/kubelet/machines/kube/types.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';

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
  /** By UID, over restarts of the daemon: what it knows begins empty at each of its starts. */
  readonly #pods = new Map<string, PodTime>();
  /** What the daemon has now. */
  readonly #present = new Set<string>();
  /** Those of them that are measured and not Ready yet. */
  readonly #waiting = new Map<string, PodTime>();
  readonly #making = new Set<string>();
  readonly #heard: PodsBeingMade;

  constructor(clock: Clock, heard: PodsBeingMade) {
    this.#clock = clock;
    this.#heard = heard;
    this.#sinceMs = Math.floor(clock.wallMs() / 1_000) * 1_000;
  }

  /** Until that is disposed of. */
  follow(registry: Pick<Registry, 'watch'>): Disposable {
    this.#present.clear();
    const pods = registry.watch(podsView, ({ records }) => {
      for (const uid of this.#present) if (!records.has(uid)) this.#gone(uid);
      for (const [uid, { pod }] of records) if (!this.#present.has(uid)) this.#came(uid, pod);
    });
    const statuses = registry.watch(statusesView, (view) => {
      for (const uid of this.#making) if (isMade(view.get(uid)?.status)) this.#made(uid);
      for (const [uid, time] of this.#waiting) {
        if (!isReady(view.get(uid)?.status)) continue;
        this.#waiting.delete(uid);
        time.measured = true;
        this.createdSeconds.push(Math.max(0, this.#clock.wallMs() - time.createdMs) / 1_000);
        this.seenSeconds.push((this.#clock.monoMs() - time.seenMs) / 1_000);
      }
    });
    return {
      [Symbol.dispose]() {
        pods[Symbol.dispose]();
        statuses[Symbol.dispose]();
      },
    };
  }

  #came(uid: string, { metadata, status }: Pod): void {
    this.#present.add(uid);
    if (!isMade(status)) {
      this.#making.add(uid);
      this.#heard.begun(uid);
    }
    let time = this.#pods.get(uid);
    if (time === undefined) {
      const createdMs = Date.parse(metadata.creationTimestamp ?? '');
      time = { seenMs: this.#clock.monoMs(), createdMs, measured: isMade(status) || !(createdMs >= this.#sinceMs) };
      this.#pods.set(uid, time);
    }
    if (!time.measured) this.#waiting.set(uid, time);
  }

  #made(uid: string): void {
    if (this.#making.delete(uid)) this.#heard.made(uid);
  }

  #gone(uid: string): void {
    this.#present.delete(uid);
    this.#pods.delete(uid);
    this.#waiting.delete(uid);
    this.#made(uid);
  }
}

interface PodTime {
  seenMs: number;
  createdMs: number;
  /** Or made before it was seen, or created too early. */
  measured: boolean;
}

type Status = Pick<PodStatus, 'phase' | 'conditions'>;

function isReady(status: Status | undefined): boolean {
  return status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
}
function isMade(status: Status | undefined): boolean {
  return isReady(status) || status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
