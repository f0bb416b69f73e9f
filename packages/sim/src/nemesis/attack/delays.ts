/** Until when faults have slowed something down. */
import type { SimTime } from '@actorlet/world/src/time.ts';

/** A message that was held back. */
interface Late {
  node: number;
  path: string;
  delayMs: number;
  dueMs: number;
}

export class Delays {
  readonly #time: SimTime;
  readonly #slowUntilMs = new Map<number, number>();
  readonly #late: Late[] = [];

  constructor(time: SimTime) {
    this.#time = time;
  }

  /** A call of this node's disk took so long. */
  slow(node: number, delayMs: number): void {
    this.#slowUntilMs.set(node, this.#time.monoMs + delayMs * 3);
  }

  /** A message to this actor was held back so long. */
  late(node: number, path: string, delayMs: number): void {
    this.#late.push({ node, path, delayMs, dueMs: this.#time.monoMs + delayMs });
  }

  slowUntilMs(node: number): number {
    return this.#slowUntilMs.get(node) ?? 0;
  }

  lateMs(node: number, path: string, sinceMs: number): number {
    const isDue = (m: Late): boolean => m.node === node && m.path === path && m.dueMs >= sinceMs;
    return this.#late.reduce((max, m) => (isDue(m) ? Math.max(max, m.delayMs) : max), 0);
  }
}
