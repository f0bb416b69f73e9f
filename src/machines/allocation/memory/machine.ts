/** What the memory manager keeps of the machine's NUMA nodes, in the shape of the reference's state. Pure. */
import { HUGE_PAGES_PREFIX } from '../../kube/names.ts';
import { bytesQuantity } from '../../kube/quantity.ts';
import type { NumaNode } from '../numaNode.ts';

/** One resource of a NUMA node, in bytes. */
export interface Table {
  total: number;
  systemReserved: number;
  allocatable: number;
  reserved: number;
  free: number;
}
export interface NodeMemory {
  /** One for each resource of each container that has some of it. */
  assignments: number;
  /** NUMA nodes that containers have some of together with this one. */
  cells: readonly number[];
  tables: ReadonlyMap<string, Table>;
}
/** By number of the NUMA node. */
export type Machine = ReadonlyMap<number, NodeMemory>;
/** What one container has of one resource. */
export interface Block {
  resource: string;
  size: number;
  nodes: readonly number[];
}
export interface MemoryLedger {
  readonly machine: Machine;
  /** By UID of the pod, then by name of the container. */
  readonly entries: ReadonlyMap<string, ReadonlyMap<string, readonly Block[]>>;
}
export interface MemoryPlace {
  /** With nothing allocated. */
  nodes: Machine;
  /** The topology manager says from which NUMA nodes. */
  aligned: boolean;
}
/** Bytes by resource, memory first. */
export type Wanted = ReadonlyMap<string, number>;

/** `reserved`: what is the system's, by NUMA node and resource. Never less than nothing is left. */
export function machineOf(nodes: readonly NumaNode[], reserved: ReadonlyMap<number, ReadonlyMap<string, number>>): Machine {
  return new Map(
    nodes.map(({ id, memoryBytes, hugePages }): [number, NodeMemory] => {
      const tableOf = (resource: string, total: number, usable: number): [string, Table] => {
        const systemReserved = reserved.get(id)?.get(resource) ?? 0;
        const allocatable = Math.max(0, usable - systemReserved);
        return [resource, { total, systemReserved, allocatable, reserved: 0, free: allocatable }];
      };
      const pages = hugePages.map(({ pageBytes, count }) =>
        tableOf(`${HUGE_PAGES_PREFIX}${bytesQuantity(pageBytes)}`, pageBytes * count, pageBytes * count),
      );
      const inPages = hugePages.reduce((sum, { pageBytes, count }) => sum + pageBytes * count, 0);
      return [id, { assignments: 0, cells: [id], tables: new Map([...pages, tableOf('memory', memoryBytes, memoryBytes - inPages)]) }];
    }),
  );
}

export function sameNodes(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((node) => b.includes(node));
}

/** Each node of the block counts it, and gives (1) or gets back (-1) what it has of it until there is enough. */
export function moved(machine: Machine, { nodes, resource, size }: Block, by: 1 | -1): Machine {
  const now = new Map(machine);
  let left = size;
  for (const id of nodes) {
    const node = now.get(id);
    if (node === undefined) continue;
    const table = node.tables.get(resource);
    const here = Math.min(left, table?.[by === 1 ? 'free' : 'reserved'] ?? 0);
    left -= here;
    const tables = new Map(node.tables);
    if (table !== undefined) tables.set(resource, { ...table, reserved: table.reserved + by * here, free: table.free - by * here });
    const assignments = node.assignments + by;
    now.set(id, { assignments, cells: by === 1 ? nodes : assignments === 0 ? [id] : node.cells, tables });
  }
  return now;
}

/** Sum of these nodes. */
export function totalOf(
  machine: Machine,
  nodes: Iterable<number>,
  { resource, of }: { resource: string; of: 'free' | 'allocatable' | 'reserved' },
): number {
  let sum = 0;
  for (const id of nodes) sum += machine.get(id)?.tables.get(resource)?.[of] ?? 0;
  return sum;
}

/**
 * What is wrong with a ledger that was kept; null: nothing. Memory may have come or gone, or other amounts are reserved now. Which
 * node of a group gave how much depends on the order of past allocations: all of a resource together has to be right.
 */
export function mistakeIn({ machine, entries }: MemoryLedger, place: MemoryPlace): string | null {
  const sums = new Map<string, number>();
  for (const [uid, containers] of entries) {
    for (const [container, blocks] of containers) {
      for (const { nodes, resource, size } of blocks) {
        const of = `[memorymanager] (pod: ${uid}, container: ${container}) the memory assignment uses`;
        if (nodes.some((id) => !place.nodes.has(id))) return `${of} the NUMA that does not exist`;
        if (nodes.some((id) => place.nodes.get(id)?.tables.has(resource) !== true)) return `${of} memory resource that does not exist`;
        sums.set(resource, (sums.get(resource) ?? 0) + size);
      }
    }
  }
  const isRight =
    sameMachine(machine, place.nodes) &&
    [...sums].every(([resource, size]) => totalOf(machine, machine.keys(), { resource, of: 'reserved' }) === size);
  return isRight ? null : '[memorymanager] the expected machine state is different from the real one';
}

/** As far as it does not depend on what is allocated. */
function sameMachine(a: Machine, b: Machine): boolean {
  const same = (one: NodeMemory, other: NodeMemory | undefined): boolean =>
    other?.tables.size === one.tables.size &&
    [...one.tables].every(([resource, { total, systemReserved, allocatable, reserved, free }]) => {
      const table = other.tables.get(resource);
      const isWhole = reserved + free === allocatable;
      return isWhole && table?.total === total && table.systemReserved === systemReserved && table.allocatable === allocatable;
    });
  return a.size === b.size && [...a].every(([id, node]) => same(node, b.get(id)));
}
