/**
 * Long lists of tests, seeds or inputs: each commit runs one part of a list, and `npm run nightly` runs all of it. The
 * commit's id chooses the part. ACTORLET_ROTATION=N chooses part N, ACTORLET_ROTATION=all runs the whole list.
 */
import { execFileSync } from 'node:child_process';
import { it } from 'vitest';

/** Whether this run takes the whole of every list. */
export const RUNS_ALL = process.env.ACTORLET_ROTATION === 'all';

/** Part `turn` of `parts`, by position: an entry that is appended leaves the others in their parts. */
export function partOf<T>(all: readonly T[], { turn, parts }: { turn: number | 'all'; parts: number }): T[] {
  return turn === 'all' ? [...all] : all.filter((_, i) => i % parts === turn % parts);
}

/** What ACTORLET_ROTATION asks for, else the number that the first eight digits of a commit's id are. */
export function turnFrom(asked: string | undefined, commit: () => string): number | 'all' {
  if (asked === 'all') return 'all';
  if (asked === undefined || asked === '') return Number.parseInt(commit().slice(0, 8), 16);
  if (!/^\d{1,15}$/.test(asked)) throw new Error(`ACTORLET_ROTATION is "${asked}": it must be a number, or "all"`);
  return Number(asked);
}

/** The commit that is checked out; without git, the day. */
function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  } catch {
    return Math.floor(Date.now() / 86_400_000).toString(16);
  }
}

/** This run's turn. Prints which part it runs and how to run another. */
function announcedTurn(what: string, parts: number): number | 'all' {
  const turn = turnFrom(process.env.ACTORLET_ROTATION, commit);
  if (turn === 'all') console.log(`${what}: all of them`);
  else console.log(`${what}: part ${turn % parts} of ${parts} (ACTORLET_ROTATION=${turn % parts}; ACTORLET_ROTATION=all runs all of them)`);
  return turn;
}

/** This run's part of a list. */
export function rotating<T>(what: string, all: readonly T[], parts: number): T[] {
  return partOf(all, { turn: announcedTurn(what, parts), parts });
}

/** An `it` that defines only the tests of this run's part, by the order of the calls. A suite needs as many tests as there are parts. */
export function inTurn(what: string, parts: number): (name: string, run: () => Promise<void>, timeoutMs?: number) => void {
  const turn = announcedTurn(what, parts);
  let calls = 0;
  return (name, run, timeoutMs) => {
    const taken = turn === 'all' || calls % parts === turn % parts;
    calls += 1;
    if (taken) it(name, run, timeoutMs);
  };
}
