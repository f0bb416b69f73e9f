/** Which faults are at work just now, what each has hit, and each one's own chance. */
import type { FaultKind as SpecKind } from '@actorlet/faults/src/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { FaultEntry } from '../faults.ts';

export type EntryOf<K extends SpecKind> = Extract<FaultEntry, { kind: K }>;

export interface ActiveFaults {
  add(f: FaultEntry): void;
  /** False when it had ended already. */
  remove(f: FaultEntry): boolean;
  clear(): void;
  /** Entries of one kind on one node, oldest first. */
  of<K extends SpecKind>(node: number, kind: K): readonly EntryOf<K>[];
  /** Rolls the dice of a fault whose selector matched, and counts a hit under `kind.what`. */
  hit(f: FaultEntry, what: string): boolean;
  /** Counts a hit that needed no dice. */
  count(f: FaultEntry, what: string): void;
  /** Counts a window that begins; what it hits is counted apart. */
  countWindow(f: FaultEntry): void;
  chanceOf(f: FaultEntry): SimRng;
  /** The same by number. */
  chance(id: number): SimRng;
  readonly counts: Map<string, number>;
  /** Hits by the name in the scenario. */
  readonly byName: Map<string, number>;
}

/** Counts of windows end in this; other counts of a kind are hits. */
export const WINDOW = 'window';

const NONE: readonly never[] = [];

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

export function activeFaults(rng: SimRng): ActiveFaults {
  const active = new Map<string, FaultEntry[]>();
  const chances = new Map<number, SimRng>();
  const hits = new Map<number, number>();
  const self: ActiveFaults = {
    counts: new Map(),
    byName: new Map(),
    add(f) {
      const key = `${f.node} ${f.kind}`;
      active.set(key, [...(active.get(key) ?? []), f]);
    },
    remove(f) {
      const key = `${f.node} ${f.kind}`;
      const list = active.get(key) ?? [];
      if (!list.includes(f)) return false;
      const rest = list.filter((other) => other !== f);
      if (rest.length === 0) active.delete(key);
      else active.set(key, rest);
      return true;
    },
    clear: () => active.clear(),
    of<K extends SpecKind>(node: number, kind: K) {
      // Stored under its kind.
      return active.size === 0 ? NONE : ((active.get(`${node} ${kind}`) ?? NONE) as readonly EntryOf<K>[]);
    },
    hit(f, what) {
      if (f.times !== undefined && (hits.get(f.id) ?? 0) >= f.times) return false;
      if (f.probability < 1 && !self.chanceOf(f).chance(f.probability)) return false;
      hits.set(f.id, (hits.get(f.id) ?? 0) + 1);
      self.count(f, what);
      return true;
    },
    count(f, what) {
      add(self.counts, what === '' ? f.kind : `${f.kind}.${what}`);
      if (f.name !== undefined) add(self.byName, f.name);
    },
    countWindow: (f) => add(self.counts, `${f.kind}.${WINDOW}`),
    chanceOf: (f) => self.chance(f.id),
    chance(id) {
      const known = chances.get(id);
      if (known !== undefined) return known;
      const made = rng.fork(`fault-${id}`);
      chances.set(id, made);
      return made;
    },
  };
  return self;
}
