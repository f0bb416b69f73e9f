/**
 * When the leases of the nodes were written last. Nodes that start take time from those that run: a machine that is given more of them
 * than it can hold would make all of them NotReady, and none would come back.
 */
import type { KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import { resourceOf } from '../calls.ts';

/**
 * A node writes its lease every 10 s. Of 2,800 nodes that waited for 20 s, on 2 cores beside their control plane, none came back: what
 * the cluster does about nodes that are NotReady is more work for all.
 */
const LATE_MS = 13_000;
/** With more late ones than that share it is the machine that is behind, and not a node that was made to fail. */
const LATE_SHARE = 0.05;
const LOOK_EVERY_MS = 1_000;
/** A node starts that often all the same: leases may be late for another reason. */
const STARTS_EVERY_MS = 60_000;

export class Leases {
  readonly #clock: Pick<Clock, 'monoMs' | 'setTimeout'>;
  /** By node, the oldest first. */
  readonly #writtenMs = new Map<string, number>();
  #startedMs = Number.NEGATIVE_INFINITY;
  #waits = false;
  #ended = false;
  readonly #onWait: (running: number) => void;

  /** `onWait`: called when nodes begin to wait, with how many hold a lease. */
  constructor(o: { clock: Pick<Clock, 'monoMs' | 'setTimeout'>; onWait(running: number): void }) {
    this.#clock = o.clock;
    this.#onWait = o.onWait;
  }

  /** The API server did as it was asked by that node. */
  done(node: string, { verb, path }: KubeRequest): void {
    if (verb === 'GET' || resourceOf(path) !== 'leases') return;
    this.#writtenMs.delete(node);
    this.#writtenMs.set(node, this.#clock.monoMs());
  }

  /** Its daemon does not run. */
  gone(node: string): void {
    this.#writtenMs.delete(node);
  }

  /** Nobody waits any more. */
  end(): void {
    this.#ended = true;
  }

  /** Resolves once few leases are late. */
  async inTime(): Promise<void> {
    while (!this.#ended && this.#areLate()) {
      if (!this.#waits) this.#onWait(this.#writtenMs.size);
      this.#waits = true;
      if (this.#clock.monoMs() - this.#startedMs >= STARTS_EVERY_MS) break;
      await new Promise<void>((resolve) => void this.#clock.setTimeout(resolve, LOOK_EVERY_MS));
    }
    this.#startedMs = this.#clock.monoMs();
  }

  #areLate(): boolean {
    const beforeMs = this.#clock.monoMs() - LATE_MS;
    let left = this.#writtenMs.size * LATE_SHARE;
    for (const ms of this.#writtenMs.values()) {
      if (ms >= beforeMs) break;
      left -= 1;
      if (left < 0) return true;
    }
    this.#waits = false;
    return false;
  }
}
