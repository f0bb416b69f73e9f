/** The images of the runtime, as a node's status lists them: read from time to time. */

import { criView } from '../../machines/runtime/cri/messages.ts';
import { messageOf } from '../../machines/text/errors.ts';
import { criClient } from '../runtime/client.ts';
import type { ActorCtx } from '../supervision/types.ts';

const EVERY_MS = 30_000;
const NAMES_MAX = 5;
type Image = { names: string[]; sizeBytes: number };

export class NodeImages {
  readonly #ctx: Pick<ActorCtx<never>, 'ports' | 'registry' | 'log'>;
  /** -1: no cap. */
  readonly #max: number;
  #last: { atMs: number; list: readonly Image[] } | undefined;

  constructor(ctx: Pick<ActorCtx<never>, 'ports' | 'registry' | 'log'>, max: number) {
    this.#ctx = ctx;
    this.#max = max;
  }

  /** Largest first, and those of one size by their ids, the last first, as the kubelet has them. While the runtime is away the last known ones stay. */
  async list(signal: AbortSignal): Promise<readonly Image[]> {
    const nowMs = this.#ctx.ports.clock.monoMs();
    if (this.#last !== undefined && nowMs - this.#last.atMs < EVERY_MS) return this.#last.list;
    if (this.#ctx.registry.read(criView)?.value.state !== 'ready') return this.#last?.list ?? [];
    try {
      const { images } = await criClient(this.#ctx.registry).read('ListImages', {}, { signal });
      const all = images
        .toSorted((a, b) => Number(b.size) - Number(a.size) || (a.id > b.id ? -1 : 1))
        .map((i) => ({ names: [...i.repoDigests, ...i.repoTags].slice(0, NAMES_MAX), sizeBytes: Number(i.size) }));
      const list = this.#max < 0 ? all : all.slice(0, this.#max);
      this.#last = { atMs: nowMs, list };
      return list;
    } catch (error) {
      this.#ctx.log.debug({ err: messageOf(error) }, 'images cannot be listed for the node status');
      return this.#last?.list ?? [];
    }
  }
}
