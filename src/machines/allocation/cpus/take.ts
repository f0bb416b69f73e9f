/**
 * Which CPUs somebody gets who is to have them alone: what lies together goes together, whole sockets and NUMA nodes before
 * whole caches, whole cores and single threads. The same CPUs as in the reference (resources and volumes 2.2). Pure.
 */
import { type CpuSet, cpuSet } from '../cpuSet.ts';
import { distribute, type Taken, type TakeRequest } from './distribute.ts';
import { byUnit, fewestFirst, outerLevel, unitsInOrder } from './order.ts';
import { averageOf, type Cpu, type Level, type Topology, threadsPerCore } from './topology.ts';

export type { Taken } from './distribute.ts';

export interface TakeOptions {
  /** `full-pcpus-only`: whole cores, or nothing. */
  fullCoresOnly?: boolean;
  /** `distribute-cpus-across-cores`: no whole cores, but a thread of each core before a second one of any. */
  acrossCores?: boolean;
  /** `distribute-cpus-across-numa`: as many on each NUMA node where one does not suffice. */
  acrossNodes?: boolean;
  /** `prefer-align-cpus-by-uncorecache`. */
  byCache?: boolean;
  /** `align-by-socket`. */
  bySocket?: boolean;
}
/** `n` CPUs of `free`, or why not. */
export function takeCpus(topology: Topology, request: TakeRequest, o: TakeOptions = {}): Taken {
  const packed = (r: TakeRequest, of = o) => takePacked(topology, r, of);
  if (o.acrossNodes !== true) return packed(request);
  const group = o.fullCoresOnly === true ? threadsPerCore(topology) : 1;
  // Caches are not looked at where CPUs are distributed.
  return (
    distribute({ topology, group, packed: (r) => packed(r, { ...o, byCache: false }) }, request) ??
    packed(request, { ...o, byCache: false })
  );
}

function takePacked(topology: Topology, { free, n }: TakeRequest, o: TakeOptions): Taken {
  if (n < 1) return { ok: true, cpus: [] };
  const taking = new Taking(topology, free, n);
  if (taking.lacks) return lacking(n, free);
  if (o.acrossCores === true && o.bySocket === true) taking.keepToOneSocket();
  // What is larger comes first: a socket with several NUMA nodes, or a NUMA node with several sockets.
  for (const level of taking.outer === 'node' ? (['node', 'socket'] as const) : (['socket', 'node'] as const)) taking.whole(level);
  if (o.byCache === true) taking.caches();
  if (o.acrossCores !== true) taking.whole('core');
  taking.threads(o.acrossCores === true);
  return taking.result();
}

function lacking(n: number, free: CpuSet): Taken {
  return { ok: false, why: `not enough cpus available to satisfy request: requested=${n}, available=${free.length}` };
}

class Taking {
  readonly outer: 'node' | 'socket';
  readonly #topology: Topology;
  #free: Cpu[];
  readonly #taken: number[] = [];
  #needed: number;

  constructor(topology: Topology, free: CpuSet, wanted: number) {
    const among = new Set(free);
    this.#topology = topology;
    this.#free = topology.cpus.filter((c) => among.has(c.id));
    this.#needed = wanted;
    this.outer = outerLevel(topology);
  }

  get lacks(): boolean {
    return this.#needed > this.#free.length;
  }

  /** Where one socket has enough, threads of different cores are not sought on others (kubernetes/kubernetes#141238). */
  keepToOneSocket(): void {
    const those = byUnit(this.#free, 'socket');
    const order = unitsInOrder(this.#free, { outer: this.outer, level: 'socket' });
    const found = order.find((socket) => (those.get(socket)?.length ?? 0) >= this.#needed);
    if (found !== undefined) this.#free = those.get(found) ?? [];
  }

  /** Units of which all is free, as long as as much is needed. */
  whole(level: Exclude<Level, 'cache'>): void {
    if (this.#needed < 1) return;
    this.#wholeUnits(level, unitsInOrder(this.#free, { outer: this.outer, level }));
  }

  /** Whole caches as long as as much is needed; else a part of the first one in which the rest has room. */
  caches(): void {
    for (const cache of this.#cachesInOrder()) {
      if (this.#needed >= averageOf(this.#topology, 'cache')) this.#wholeUnits('cache', this.#cachesInOrder());
      if (this.#needed < 1) return;
      this.#partOfCache(cache);
      if (this.#needed < 1) return;
    }
  }

  #cachesInOrder(): number[] {
    const free = byUnit(this.#free, 'cache');
    const inNode = byUnit(this.#free, 'node');
    return unitsInOrder(this.#free, { outer: this.outer, level: 'node' }).flatMap((node) =>
      fewestFirst(byUnit(inNode.get(node) ?? [], 'cache').keys(), free),
    );
  }

  #wholeUnits(level: Level, order: readonly number[]): void {
    const all = byUnit(this.#topology.cpus, level);
    const free = byUnit(this.#free, level);
    const average = averageOf(this.#topology, level);
    // Where threads are offline, the reference takes a core of which one thread is taken for a free one, and gives that thread twice.
    const full = (unit: number): number => (level === 'node' || level === 'cache' ? (all.get(unit)?.length ?? 0) : average);
    for (const unit of order) {
      const cpus = all.get(unit) ?? [];
      const here = free.get(unit)?.length ?? 0;
      if (here === full(unit) && here === cpus.length && this.#needed >= here) this.#take(cpus.map((c) => c.id));
    }
  }

  #partOfCache(cache: number): void {
    const threads = threadsPerCore(this.#topology);
    const cores = [
      ...byUnit(
        this.#free.filter((c) => c.cache === cache),
        'core',
      ).keys(),
    ].sort((a, b) => a - b);
    const some = new Set(cores.slice(0, Math.ceil(this.#needed / threads)));
    let cpus = this.#free.filter((c) => some.has(c.core)).map((c) => c.id);
    // Half of the last core.
    if (this.#needed % 2 !== 0 && threads > 1 && cpus.length > this.#needed) cpus = cpus.slice(0, -1);
    if (cpus.length === this.#needed) this.#take(cpus);
  }

  threads(acrossCores: boolean): void {
    if (this.#needed < 1) return;
    const cores = byUnit(this.#free, 'core');
    const inOrder = (free: readonly Cpu[]): Cpu[][] =>
      unitsInOrder(free, { outer: this.outer, level: 'core' }).map((core) => cores.get(core) ?? []);
    const sockets = byUnit(this.#free, 'socket');
    const order = acrossCores
      ? unitsInOrder(this.#free, { outer: this.outer, level: 'socket' }).flatMap((socket) => inTurns(inOrder(sockets.get(socket) ?? [])))
      : inOrder(this.#free).flat();
    this.#take(order.slice(0, this.#needed).map((c) => c.id));
  }

  result(): Taken {
    return this.#needed > 0 ? { ok: false, why: 'failed to allocate cpus' } : { ok: true, cpus: cpuSet(this.#taken) };
  }

  #take(cpus: readonly number[]): void {
    const gone = new Set(cpus);
    this.#taken.push(...cpus);
    this.#free = this.#free.filter((c) => !gone.has(c.id));
    this.#needed -= cpus.length;
  }
}

/** The first of each, then the second of each, and so on: whatever numbers the threads of a core have (kubernetes/kubernetes#140766). */
function inTurns<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat();
}
