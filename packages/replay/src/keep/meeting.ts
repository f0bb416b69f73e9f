/**
 * Finds a divergence again in a run that does less: the same input, the same that was done after it, and the same first
 * difference. There the recording is cut, with what was done then in the place of what is done now.
 */
import { briefOf } from '../border.ts';
import { entryOfLine } from '../check.ts';
import { isInput, isOutcome, type Outcome } from '../entries.ts';
import type { Edit } from '../lenient/edit.ts';
import type { Divergence, Parted } from '../told/divergence.ts';
import { renamedEntry } from './renamed.ts';

/** All that was done is there. */
export const ENDED = '["end","cut down"]';
/** Milliseconds by which timers and times may be apart, since less is done before them. */
const APART_MS_MAX = 50;

export class Meeting {
  readonly lines: string[] = [];
  /** The lines end in the divergence. */
  met = false;
  readonly #parted: Parted;
  /** Number of the input. */
  readonly #input: number;
  readonly #monoMs: number;
  readonly #renames: boolean;
  /** What was done since the last input; null: it is another input. */
  #done: Outcome[] | null = null;

  constructor({ parted, divergence, edit }: { parted: Parted; divergence: Divergence; edit: Edit }) {
    const renamed = <T extends Outcome | null>(outcome: T): T => (outcome === null ? outcome : renamedEntry(outcome, edit));
    this.#parted = {
      ...parted,
      done: parted.done.filter((one) => !isDraw(JSON.stringify(one))).map(renamed),
      was: renamed(parted.was),
      now: renamed(parted.now),
    };
    this.#input = divergence.input;
    this.#monoMs = divergence.monoMs;
    this.#renames = edit.names !== null;
  }

  /** The next line of the new recording. `order`: number of the recorded input that the tree has. */
  see(line: string, { atMs, order }: { atMs: number; order: number | null }): void {
    if (this.met) return;
    const entry = entryOfLine(line);
    if (entry !== null && isInput(entry)) {
      if (this.#isReached()) {
        this.#cut();
        return;
      }
      this.#done = order === this.#input ? [] : null;
    } else if (entry !== null && this.#done !== null && isOutcome(entry) && !isDraw(line)) {
      const then = this.#parted.done[this.#done.length];
      if (then === undefined && this.#isNow(entry, atMs)) {
        this.#cut();
        return;
      }
      if (then === undefined || !isSame(then, entry)) this.#done = null;
      else this.#done.push(entry);
    }
    this.lines.push(line);
  }

  /** The run is over. */
  end(): void {
    if (!this.met && this.#isReached()) this.#cut();
  }

  #isNow(entry: Outcome, nowMs: number): boolean {
    const { now, was } = this.#parted;
    if (now === null) return false;
    if (now[0] !== 'set' || entry[0] !== 'set') return isSame(now, entry);
    // Timers end when something is due: at another time what was done then would be another timer, too. Chance may be in it.
    return Math.floor(nowMs) === this.#monoMs && (isSame(now, entry) || (!Number.isInteger(now[1]) && entry[1] !== was?.[1]));
  }

  /** Nothing more was done, as now. */
  #isReached(): boolean {
    return this.#done !== null && this.#parted.now === null && this.#done.length === this.#parted.done.length;
  }

  #cut(): void {
    this.met = true;
    // What was drawn for what is done now.
    while (isDraw(this.lines.at(-1) ?? '')) this.lines.pop();
    const { was } = this.#parted;
    if (was === null) this.lines.push(ENDED);
    else this.lines.push(JSON.stringify(this.#spelled(was)), '["open"]');
  }

  #spelled(was: Outcome): Outcome {
    // A body of the whole recording is not in this one, and a digest is of other names.
    if (was[0] !== 'ask') return was;
    const [, name, digest, now, brief = briefOf([]), masks = []] = was;
    return ['ask', name, this.#renames ? '' : digest, now === 'later' ? 'later' : 'nothing', brief, masks];
  }
}

function isDraw(line: string): boolean {
  return /^\["ask","(?:rng|entropy)\./.test(line);
}

function isSame(a: Outcome, b: Outcome): boolean {
  if (a[0] === 'set' && b[0] === 'set') return Math.abs(a[1] - b[1]) <= APART_MS_MAX;
  if (a[0] === 'ask' && b[0] === 'ask') return a[1] === b[1] && a[4] === b[4];
  if (a[0] === 'step' && b[0] === 'step') return a[1] === b[1] && a[2] === b[2] && a[3] === b[3] && a[4] === b[4];
  return a[0] === b[0];
}
