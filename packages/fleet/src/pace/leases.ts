/** When the leases of the nodes were written last, and whether that is too long ago. */
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

export class Leases {
  readonly #clock: Pick<Clock, 'monoMs'>;
  /** By node, the oldest first. */
  readonly #writtenMs = new Map<string, number>();

  constructor(clock: Pick<Clock, 'monoMs'>) {
    this.#clock = clock;
  }

  /** Nodes that hold one. */
  get count(): number {
    return this.#writtenMs.size;
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

  get late(): boolean {
    const beforeMs = this.#clock.monoMs() - LATE_MS;
    let left = this.#writtenMs.size * LATE_SHARE;
    for (const ms of this.#writtenMs.values()) {
      if (ms >= beforeMs) break;
      left -= 1;
      if (left < 0) return true;
    }
    return false;
  }
}
