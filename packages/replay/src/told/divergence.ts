/** What a tree does otherwise than a recording says, in words. */
import type { Input, Outcome } from '../entries.ts';
import { HIDDEN } from '../secrets/masks.ts';
import type { Difference } from './differences.ts';

/** Who does something. */
export interface Doer {
  /** Path of the actor; '' where it is none, or the recording does not tell. */
  readonly actor: string;
  /** `NAMESPACE/NAME` of the pod that it is about; ''. */
  readonly pod: string;
  readonly state: string;
  /** Type of the event that the actor took last. */
  readonly event: string;
}

/** What was done then and what is done now. */
export interface Divergence {
  /** Number of the input after which it came, from 0. */
  readonly input: number;
  readonly inputIs: string;
  readonly monoMs: number;
  readonly wallMs: number;
  readonly was: string;
  readonly now: string;
  /** Who did it; null where nothing was, or is, done. */
  readonly wasBy: Doer | null;
  readonly nowBy: Doer | null;
  /** What was said with it, in one line; '' where that is not known. */
  readonly wasSaid: string;
  readonly nowSaid: string;
  readonly fields: readonly Difference[];
  /** Where the tree asks now; '' where it no longer asks. */
  readonly stack: string;
  /** How many of the same kind came after it. */
  more: number;
}

/** The first one as entries. Null: nothing was, or is, done there. */
export interface Parted {
  readonly input: Input;
  /** What the tree did after this input then and now, before the difference. */
  readonly done: readonly Outcome[];
  readonly was: Outcome | null;
  readonly now: Outcome | null;
}

/** Whether what differs, or what was done just before it, has a secret in it. Fields that differ and hold none say that it has not. */
export function touchesSecrets({ done, was }: Parted, fields: readonly Difference[]): boolean {
  const isPlain = fields.length > 0 && !fields.some((one) => one.was.includes(HIDDEN) || one.now.includes(HIDDEN));
  return [...done, isPlain ? null : was].some((outcome) => {
    if (outcome === null) return false;
    if (outcome[0] === 'step') return outcome[5] === HIDDEN;
    const masks = outcome[0] === 'ask' ? outcome[5] : outcome[0] === 'answer' ? outcome[3] : undefined;
    return masks !== undefined && masks.length > 0;
  });
}
