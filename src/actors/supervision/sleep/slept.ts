/** What is left of an actor while it sleeps. */
import type { Woken } from '../types.ts';

export interface Slept extends Woken {
  /** What is shown of it: that of its machine when it fell asleep. */
  readonly state: string;
  readonly reason: string;
  readonly message: string;
  /** Monotonic ms since when it is in `state`. */
  readonly sinceMonoMs: number;
}
