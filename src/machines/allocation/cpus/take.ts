/**
 * Which CPUs somebody gets who is to have them alone: what lies together goes together, whole sockets before whole cores
 * before single threads (resources and volumes 2.2, "Take algorithm"). Pure.
 */
import { type CpuSet, cpuSet } from './cpuSet.ts';
import { type Cpu, countOf, type Level, type Topology } from './topology.ts';

export interface TakeOptions {
  /** `distribute-cpus-across-cores`: no whole cores, but a thread of each core before a second one of any. */
  acrossCores?: boolean;
}

/** `n` CPUs of `free`; null where there are not as many. */
export function takeCpus(topology: Topology, { free, n, ...o }: { free: CpuSet; n: number } & TakeOptions): CpuSet | null {
  if (n > free.length) return null;
  const taking = new Taking(topology, free, n);
  // What is larger comes first: a socket with several memory nodes, or a memory node with several sockets.
  const levels: Level[] = countOf(topology, 'socket') >= countOf(topology, 'node') ? ['node', 'socket'] : ['socket', 'node'];
  for (const level of levels) taking.whole(level);
  if (o.acrossCores !== true) taking.whole('core');
  taking.threads(o.acrossCores === true);
  return taking.result();
}

class Taking {
  readonly #topology: Topology;
  readonly #free: Set<number>;
  readonly #taken: Cpu[] = [];
  readonly #wanted: number;

  constructor(topology: Topology, free: CpuSet, wanted: number) {
    this.#topology = topology;
    const known = new Set(topology.cpus.map((c) => c.id));
    this.#free = new Set(free.filter((cpu) => known.has(cpu)));
    this.#wanted = wanted;
  }

  get #needed(): number {
    return this.#wanted - this.#taken.length;
  }
  get #freeCpus(): Cpu[] {
    return this.#topology.cpus.filter((c) => this.#free.has(c.id));
  }

  /** Units of which all is free, as long as as much is needed. */
  whole(level: Level): void {
    const all = counted(this.#topology.cpus, level);
    const free = counted(this.#freeCpus, level);
    const units = [...all.keys()].filter((unit) => free.get(unit) === all.get(unit));
    for (const unit of level === 'core' ? this.#coresInOrder(units) : units.sort((a, b) => a - b))
      if (this.#needed >= (all.get(unit) ?? 0)) this.#take(this.#topology.cpus.filter((c) => c[level] === unit));
  }

  /** Sockets with fewer whole cores first. */
  #coresInOrder(cores: readonly number[]): number[] {
    const whole = new Set(cores);
    const socketOf = new Map(this.#topology.cpus.map((c) => [c.core, c.socket]));
    const wholeOf = counted(
      this.#topology.cpus.filter((c) => c.id === c.core && whole.has(c.core)),
      'socket',
    );
    const key = (core: number): number[] => [wholeOf.get(socketOf.get(core) ?? 0) ?? 0, socketOf.get(core) ?? 0, core];
    return [...cores].sort((a, b) => compare(key(a), key(b)));
  }

  /** Where something was taken already, then where little is left. */
  threads(acrossCores: boolean): void {
    const free = this.#freeCpus;
    const taken = counted(this.#taken, 'socket');
    const inSocket = counted(free, 'socket');
    const inCore = counted(free, 'core');
    const rank = (c: Cpu): number => free.filter((other) => other.core === c.core && other.id < c.id).length;
    const key = (c: Cpu): number[] => [
      ...(acrossCores ? [rank(c)] : []),
      -(taken.get(c.socket) ?? 0),
      inSocket.get(c.socket) ?? 0,
      inCore.get(c.core) ?? 0,
      c.socket,
      c.core,
      c.id,
    ];
    const order = free.map((cpu) => ({ cpu, key: key(cpu) })).sort((a, b) => compare(a.key, b.key));
    this.#take(order.slice(0, Math.max(0, this.#needed)).map(({ cpu }) => cpu));
  }

  result(): CpuSet | null {
    return this.#needed > 0 ? null : cpuSet(this.#taken.map((c) => c.id));
  }

  #take(cpus: readonly Cpu[]): void {
    for (const cpu of cpus) {
      this.#taken.push(cpu);
      this.#free.delete(cpu.id);
    }
  }
}

function counted(cpus: readonly Cpu[], level: Level): Map<number, number> {
  const counts = new Map<number, number>();
  for (const cpu of cpus) counts.set(cpu[level], (counts.get(cpu[level]) ?? 0) + 1);
  return counts;
}

/** One key after the other. */
function compare(a: readonly number[], b: readonly number[]): number {
  for (const [i, value] of a.entries()) {
    const by = value - (b[i] ?? 0);
    if (by !== 0) return by;
  }
  return 0;
}
