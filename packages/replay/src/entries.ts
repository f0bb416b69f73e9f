/**
 * The lines of a recording of inputs, in the order in which the tree took them. Each is a JSON array whose first element is
 * its code. What comes in is an input; what the tree asks for after it, up to the next input, belongs to that input.
 */

/** Text of a value as {@link ./values.ts} writes it, or the number of an earlier `body` line with the same text. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * Inputs. `ms`: milliseconds since the input before, on the monotonic clock.
 * - `settled`: call number `call` resolved, or with `failed` rejected.
 * - `called`: the outside called function number `fn` of the tree.
 * - `timer`: timer number `timer` fired. Timers are numbered as they are set.
 * - `turn`: deferred turn number `turn` of the tree runs.
 * - `aborted`: signal number `signal` aborted.
 * By hand, through no port:
 * - `told`: the boot called `start` or `stop` of the node.
 * - `asked`: the outside asked the actor at `path`; `key` of the message holds where to answer.
 * - `sent`: the outside sent a message to the actor at `path`.
 * - `killed`: the outside killed the actor at `path`.
 * - `tapped`, `untapped`: the outside put a function between all mailboxes, and took it away.
 */
export type Input =
  | readonly ['settled', ms: number, call: number, value: Json]
  | readonly ['failed', ms: number, call: number, error: Json]
  | readonly ['called', ms: number, fn: number, args: Json]
  | readonly ['timer', ms: number, timer: number]
  | readonly ['turn', ms: number, turn: number]
  | readonly ['aborted', ms: number, signal: number]
  | ByHand;
export type ByHand =
  | readonly ['told', ms: number, what: 'create' | 'start' | 'stop']
  | readonly ['asked', ms: number, path: string, key: string, event: Json, limits: Json]
  | readonly ['sent', ms: number, path: string, event: Json]
  | readonly ['killed', ms: number, path: string]
  | readonly ['tapped', ms: number, tap: Json]
  | readonly ['untapped', ms: number];

/**
 * What the tree did after an input.
 * - `ask`: it called `name`; `digest` is of the arguments; '=' where `brief` shows them whole, '' where they are not known. `now`: what came back at once.
 *   `masks`: which of its texts have a secret in them (`secrets/masks.ts`); absent: none.
 * - `inside`: the outside called back function `fn` before that call returned; the `ask` it belongs to follows.
 * - `answer`: what function `fn` of the tree answered to its call number `of`.
 * - `set`: it set a timer of `ms` milliseconds; timers are numbered in this order.
 * - `step`: the actor at `path` went from one state to another.
 * - `shown`: it published a pod's status (`key`: UID) or an event of Kubernetes; '' where that is gone.
 */
export type Outcome =
  | readonly ['ask', name: string, digest: string, now: Now, brief?: string, masks?: readonly number[]]
  | readonly ['inside', fn: number, args: Json]
  | readonly ['answer', of: number, digest: string, masks?: readonly number[]]
  | readonly ['set', ms: number]
  | readonly ['step', path: string, from: string, to: string, event: string, reason: string]
  | readonly ['shown', what: string, key: string, digest: string, masks?: readonly number[]];
/** `nothing`: undefined. `later`: a promise, settled by its number. `same`: as the last time with these arguments. */
export type Now = 'nothing' | 'later' | 'same' | { readonly value: Json } | { readonly thrown: Json };

/**
 * - `clock`: from the n-th look at the clock since the last input on, it stands `ms` after where it stood.
 * - `wall`: wall time less monotonic time, in milliseconds; before the input for which it holds first.
 * - `body`: a long value, numbered from 0, which later lines name.
 * - `end`: the recording was ended in order.
 * - `by`: the actor at `path` does what follows, up to the next one; `event`: the one that it took last.
 * - `said`: what has this digest from here on, as {@link ./seen/said.ts} keeps it.
 * - `open`: what the tree does next after this input is not known: a recording that was cut down to a divergence.
 */
type Note =
  | readonly ['clock', look: number, ms: number]
  | readonly ['wall', offsetMs: number]
  | readonly ['body', text: string]
  | readonly ['end', why: string]
  | readonly ['by', path: string, event: string]
  | readonly ['said', digest: string, value: Json]
  | readonly ['open'];

export type Entry = Input | Outcome | Note;

/** Changes when an older program could not read what follows. */
export const FORMAT = 2;
/** Without `by`, `said` and `shown`. */
export const FORMAT_BEFORE = 1;

/** The first line. */
export interface Header {
  readonly format: typeof FORMAT | typeof FORMAT_BEFORE;
  readonly actorlet: string;
  readonly node: string;
  readonly startedAt: string;
  readonly monoMs: number;
  readonly wallMs: number;
  readonly seed: number;
  /** Flags and configuration of the node, and its feature gates. */
  readonly config: Json;
  /** The ports with their functions, by number. */
  readonly ports: Json;
  readonly options: Json;
  /** Where names were replaced afterwards: digests of what is said under them, and those of then. */
  readonly digests?: { readonly [now: string]: string };
}

const INPUTS: ReadonlySet<string> = new Set(
  ['settled', 'failed', 'called', 'timer', 'turn', 'aborted'].concat(['told', 'asked', 'sent', 'killed', 'tapped', 'untapped']),
);
export function isInput(entry: Entry): entry is Input {
  return INPUTS.has(entry[0]);
}

const OUTCOMES: ReadonlySet<string> = new Set(['ask', 'inside', 'answer', 'set', 'step', 'shown']);
export function isOutcome(entry: Entry): entry is Outcome {
  return OUTCOMES.has(entry[0]);
}
