/** Entries of a schedule while it is drawn. */
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Fault, FaultAct } from './faults.ts';

/** An entry that has no place in the schedule yet. */
export interface Drawn {
  atMs: number;
  node: number;
  afterSteps: number;
  forMs: number;
  name?: string;
  act: FaultAct;
}
export type Add = (atMs: number, act: FaultAct, forMs?: number) => void;

export function adder(drawn: Drawn[], rng: SimRng, node: number): Add {
  return (atMs, a, forMs = 0) =>
    void drawn.push({ atMs: Math.round(atMs), node, act: a, forMs, afterSteps: rng.chance(0.7) ? rng.int(40) : 0 });
}

/** The same for what has its moment to the millisecond: in a world that sleeps, steps take seconds. */
export function promptAdder(drawn: Drawn[], node: number): Add {
  return (atMs, a, forMs = 0) => void drawn.push({ atMs: Math.round(atMs), node, act: a, forMs, afterSteps: 0 });
}

/** Numbers the entries, oldest first; those of `more` behind the others, whose numbers, and chances, they leave alone. */
export function inOrder(drawn: readonly Drawn[], more: readonly Drawn[] = []): Fault[] {
  const byTime = (list: readonly Drawn[]) => [...list].sort((a, b) => a.atMs - b.atMs);
  const numbered = [...byTime(drawn), ...byTime(more)].map(({ act: a, ...when }, id): Fault => ({ id, ...when, ...a }));
  return more.length === 0 ? numbered : numbered.sort((a, b) => a.atMs - b.atMs);
}
