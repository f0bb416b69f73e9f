/** What is left of an actor while it sleeps. */
import type { Woken } from '../types.ts';

export interface Slept extends Woken {
  /** What is shown of it: that of its machine when it fell asleep. */
  readonly state: string;
  readonly reason: string;
  readonly message: string;
  /** Its machine as all of its kind share it, for who draws its chart; null: it is no machine. */
  readonly machine: object | null;
  /** Monotonic ms since when it is in `state`. */
  readonly sinceMonoMs: number;
}
