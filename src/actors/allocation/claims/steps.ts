/** What is under way about each claim, published for `why`. */
import { type ClaimStep, claimStepsView } from '../../../machines/allocation/claims/messages.ts';
import { type ClaimRecord, claimKey } from '../../../machines/allocation/claims/types.ts';
import type { ActorCtx } from '../../supervision/types.ts';

export class ClaimSteps {
  readonly #ctx: Pick<ActorCtx, 'ports' | 'publish'>;
  readonly #steps = new Map<string, readonly ClaimStep[]>();

  constructor(ctx: Pick<ActorCtx, 'ports' | 'publish'>) {
    this.#ctx = ctx;
    // Whatever an earlier manager waited for, nobody waits for any more.
    ctx.publish(claimStepsView, new Map());
  }

  async during<T>(claim: Pick<ClaimRecord, 'namespace' | 'name'>, what: string, work: () => Promise<T>): Promise<T> {
    const [key, step] = [claimKey(claim), { what, sinceWallMs: this.#ctx.ports.clock.wallMs() }];
    this.#put(key, [...this.#of(key), step]);
    try {
      return await work();
    } finally {
      this.#put(
        key,
        this.#of(key).filter((s) => s !== step),
      );
    }
  }

  #of(key: string): readonly ClaimStep[] {
    return this.#steps.get(key) ?? [];
  }
  #put(key: string, steps: readonly ClaimStep[]): void {
    if (steps.length === 0) this.#steps.delete(key);
    else this.#steps.set(key, steps);
    this.#ctx.publish(claimStepsView, new Map(this.#steps));
  }
}
