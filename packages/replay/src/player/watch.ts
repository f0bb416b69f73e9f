/** What a player is given, and what it tells of what crosses between the tree and its ports. */
import type { Entropy } from '@actorlet/kubelet/ports/ports.ts';
import type { Entry, Header, Input, Json, Now } from '../entries.ts';
import type { WhoActs } from '../seen/whose.ts';
import type { Look } from './looks.ts';

/** Numbers of functions of the tree: those from `from` up to, and without, `to`. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

export const NO_FUNCTIONS: Range = { from: 0, to: 0 };

export interface PlayerWatch {
  /** The next input, before the tree gets it. Bodies are in their places. `looks`: how the clock moves while the tree looks at it. */
  input(input: Input, at: { monoMs: number; wallOffsetMs: number; looks: readonly Look[] }): void;
  /** `fn`: number of the function that the tree called. `insides`: functions among its arguments. `call`: which promise came back. */
  asked(ask: { fn: number; name: string; args: Json; insides: Range; call: number | null; now: Now }): void;
  /** The outside calls a function of the tree. */
  called(call: { fn: number; of: number; args: Json }): void;
  /** What that call gave has these functions. */
  answered(of: number, insides: Range): void;
  set(timer: number, ms: number): void;
  cleared(timer: number): void;
  /** It asked for a turn. */
  deferred(turn: number): void;
  /** It drew a number by chance. */
  drew(value: number): void;
  /** What was said, or a text of the tree, has this digest. */
  digested?(by: 'md5Hex' | 'sha256Hex', json: Json, digest: string): void;
}

export interface PlayerInput {
  header: Header;
  /** Null at the end. */
  next(): Entry | null;
  entropy: Pick<Entropy, 'md5Hex' | 'sha256Hex'>;
  /** Hears what crosses between the tree and its ports. */
  watch?: PlayerWatch | undefined;
  /** Tells whose doing something is. */
  who?: WhoActs | undefined;
  /** At a divergence it goes on, and tells of those that come after it. */
  goesOn?: boolean | undefined;
}
