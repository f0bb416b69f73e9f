/** Seeded chance. Every part of the world draws from a fork with its own name, so that one more draw here shifts nothing there. */
import type { Rng } from '@actorlet/kubelet/ports/ports.ts';

export interface SimRng extends Rng {
  /** A generator of its own, decided by the seed and the names on the way to it, not by what was drawn so far. */
  fork(name: string): SimRng;
  /** Whole number in [0, max). */
  int(max: number): number;
  chance(probability: number): boolean;
  /** Undefined for an empty list. */
  pick<T>(list: readonly T[]): T | undefined;
  between(min: number, max: number): number;
}

/** FNV-1a, finished so that near names give far seeds. */
function hash32(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

export function simRng(name: string): SimRng {
  let a = hash32(name);
  // Mulberry32: 32 bits of state are plenty for one name of one run.
  const next = (): number => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = a;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return {
    next,
    fork: (child) => simRng(`${name}/${child}`),
    int: (max) => Math.floor(next() * max),
    chance: (probability) => next() < probability,
    pick: (list) => list[Math.floor(next() * list.length)],
    between: (min, max) => min + next() * (max - min),
  };
}
