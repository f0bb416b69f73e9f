/** What a fuzz target is, and what may come of a case. */
import type fc from 'fast-check';

export interface Target {
  name: string;
  /** Of 100 cases, about how many are of this one. */
  share: number;
  /** Cases that one run counts for. Default 1. */
  casesPerRun?: number;
  property: fc.IRawProperty<unknown>;
  /** Before the first case and after the last. */
  open?(): Promise<void>;
  close?(): Promise<void>;
}

/** Runs what may refuse by throwing, but not by mistake: a TypeError or RangeError is no refusal. */
export function mayRefuse<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && ['Error', 'SyntaxError', 'InvalidCharacterError'].includes(error.name) && error.message !== '')
      return null;
    throw error;
  }
}

export function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(`does not hold: ${what}`);
}
