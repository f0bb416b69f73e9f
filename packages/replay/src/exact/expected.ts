/** What the tree did after an input, as the recording has it, and which of it is what the tree does now. */
import type { Json, Now, Outcome } from '../entries.ts';
import type { Range } from '../player/watch.ts';
import { HIDDEN } from '../secrets/masks.ts';
import { functionsIn } from '../seen/said.ts';
import type { By } from '../seen/whose.ts';
import { sameArguments } from './digests.ts';

export interface Expected {
  readonly outcome: Outcome;
  readonly by: By;
  /** Of the actor that did it. */
  readonly state: string;
  /** Numbers of the recording: of the call that is answered later, of the timer, and of the functions that were given. */
  call: number | null;
  timer: number | null;
  insides: Range;
  /** What came back at once, once that was looked up. */
  now: Now | null;
}

/** Of a step. */
const REASON = 5;
/** A timer of a recording that is known in part was set in a node that did more before it. */
const OPEN_MS_MAX = 5;

/** @param open What the tree does is known in part only. */
export function isSame(then: Outcome, now: Outcome, open: boolean): boolean {
  switch (then[0]) {
    case 'ask':
      return now[0] === 'ask' && then[1] === now[1] && sameArguments(then, now);
    case 'set':
      return now[0] === 'set' && Math.abs(then[1] - now[1]) <= (open ? OPEN_MS_MAX : 0);
    case 'answer':
      return now[0] === 'answer' && then[1] === now[1] && then[2] === now[2];
    case 'inside':
      return false;
    case 'step':
      return now[0] === 'step' && now.every((part, i) => then[i] === part || (i === REASON && then[i] === HIDDEN));
    case 'shown':
      return now[0] === 'shown' && then[1] === now[1] && then[2] === now[2] && then[3] === now[3];
  }
}

/** Whether the two are the same act, done otherwise. The strictest measure that finds one comes first. */
export const LIKENESSES: readonly ((then: Expected, now: Outcome, by: By) => boolean)[] = [
  ({ outcome: then, by: thenBy }, now, by) => {
    if (then[0] !== now[0]) return false;
    if (then[0] === 'ask' && now[0] === 'ask') return then[1] === now[1] && then[4] === now[4] && thenBy.path === by.path;
    if (then[0] === 'answer') return then[1] === now[1];
    if (then[0] === 'step' || then[0] === 'set') return then[0] === 'set' ? thenBy.path === by.path : then[1] === now[1];
    return then[1] === now[1] && then[2] === now[2];
  },
  ({ outcome: then, by: thenBy }, now, by) =>
    then[0] === 'ask' && now[0] === 'ask' && then[1] === now[1] && firstWord(then[4]) === firstWord(now[4]) && thenBy.path === by.path,
];

function firstWord(brief: string | undefined): string {
  return brief?.split(' ', 1)[0] ?? '';
}

/** Numbers as the recording counts them: also of what the tree does not do any more. */
export class Numbers {
  calls = 0;
  timers = 0;
  insides = 0;

  /** Of what is next in the recording. @param said What was said with it; undefined where that is not known. */
  give(one: Expected, said: Json | undefined, text: (json: Json) => string): void {
    const { outcome } = one;
    if (said !== undefined) {
      const from = this.insides;
      this.insides += functionsIn(said);
      one.insides = { from, to: this.insides };
    }
    if (outcome[0] === 'set') one.timer = this.timers++;
    if (outcome[0] === 'inside') this.promisesIn(text(outcome[2]));
    if (outcome[0] !== 'ask') return;
    if (outcome[3] === 'later') one.call = this.calls++;
    else if (typeof outcome[3] === 'object' && 'value' in outcome[3]) this.promisesIn(text(outcome[3].value));
  }

  /** Promises among values have numbers of their own. */
  promisesIn(json: string): void {
    if (!json.includes('"$":"p"')) return;
    for (const [, call = ''] of json.matchAll(/"\$":"p","v":(\d+)/g)) this.calls = Math.max(this.calls, Number(call) + 1);
  }
}
