/** Entries of a schedule while it is drawn. */
import type { SimRng } from '../world/rng.ts';
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

/** Numbers the entries, oldest first. */
export function inOrder(drawn: readonly Drawn[]): Fault[] {
  return [...drawn].sort((a, b) => a.atMs - b.atMs).map(({ act: a, ...when }, id): Fault => ({ id, ...when, ...a }));
}
