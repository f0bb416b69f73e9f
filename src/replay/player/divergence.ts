/** The first difference between a recording and what the tree does now, in words. */
import type { Input, Outcome } from '../entries.ts';

/** What was done then and what is done now. */
export interface Divergence {
  /** Number of the input after which it came, from 0. */
  readonly input: number;
  readonly inputIs: string;
  readonly monoMs: number;
  readonly wallMs: number;
  readonly was: string;
  readonly now: string;
  /** Where the tree asks now; '' where it no longer asks. */
  readonly stack: string;
}

/** The same as entries. Null: nothing was, or is, done there. */
export interface Parted {
  readonly input: Input;
  /** What the tree did after this input then and now, before the difference. */
  readonly done: readonly Outcome[];
  readonly was: Outcome | null;
  readonly now: Outcome | null;
}
