/** Steps a world through virtual time, and looks at it after each step. */
import { drain } from '@actorlet/world/src/globals.ts';
import type { World } from './world.ts';

/** A step that takes no time is cheap; a world that never moves on is stuck. */
const STEPS_PER_INSTANT_MAX = 200_000;
const BEAT_MS = 1_000;

export class Loop {
  readonly #world: World;
  readonly #signal: AbortSignal | undefined;
  #steps = 0;
  #instant = { atMs: -1, steps: 0 };
  #beatAtMs = 0;

  constructor(world: World, signal: AbortSignal | undefined) {
    this.#world = world;
    this.#signal = signal;
  }

  get steps(): number {
    return this.#steps;
  }

  /** Steps until `done` says so or the time is over; true when it did. Ends at once when an invariant is broken. */
  async until(endMs: number, done: () => boolean): Promise<boolean> {
    const { time, checks } = this.#world;
    await drain();
    while (checks.hold) {
      this.#signal?.throwIfAborted();
      if (done()) return true;
      if (!(await time.step(endMs))) return done();
      this.#steps += 1;
      this.#afterStep();
    }
    return false;
  }

  /** The same for a time that begins now. */
  async within(ms: number, done: () => boolean): Promise<boolean> {
    return await this.until(this.#world.time.monoMs + ms, done);
  }

  async advance(ms: number): Promise<void> {
    await this.within(ms, () => false);
  }

  #afterStep(): void {
    const { time, nodes, checks, phase, nemesis } = this.#world;
    const now = time.monoMs;
    if (now !== this.#instant.atMs) this.#instant = { atMs: now, steps: 0 };
    this.#instant.steps += 1;
    if (this.#instant.steps > STEPS_PER_INSTANT_MAX)
      checks.fail('time-goes-on', `${STEPS_PER_INSTANT_MAX} steps without time: somebody spins`);
    if (phase === 'faults') nemesis.step();
    for (const node of nodes) {
      if (!node.runtime.changed) continue;
      node.runtime.changed = false;
      checks.ask('changed', node, node.runtime.hollow.dump());
    }
    if (now - this.#beatAtMs < BEAT_MS) return;
    this.#beatAtMs = now;
    for (const node of nodes) {
      const state = node.daemon?.tree.state();
      if (state !== undefined) checks.ask('beat', node, state);
    }
  }
}
