/** What the machines of a group are: names, sizes, what of them pods may use, and what they say of themselves. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import { dnsSubdomain, HUGE_PAGES_PREFIX, labelValue, qualifiedName } from '@actorlet/kubelet/machines/kube/names.ts';
import { quantityToMilli } from '@actorlet/kubelet/machines/kube/quantity.ts';
import type { ObjectOf } from '@actorlet/kubelet/machines/shape/shape.ts';
import { fieldsIn, textsOf } from './fields.ts';
import { ALLOCATABLE, CAPACITY, MACHINE, NAMED_NODE } from './table.ts';

export interface NamedNode {
  name: string;
  /** Besides those of its group. */
  labels?: Readonly<Record<string, string>>;
  providerID?: string;
}
interface Reserved {
  cpuMilli: number;
  memoryBytes: number;
  storageBytes: number;
}
export type MachineSpec = Readonly<ObjectOf<typeof MACHINE>>;
export interface Capacity {
  cpus: number;
  memoryBytes: number;
  /** Pods that a node takes. */
  pods: number;
  /** Size of the disk; null: as every machine of a fleet has it. 0: the node reports no ephemeral storage. */
  storageBytes: number | null;
  /** Bytes of huge pages by their size: `2Mi`. */
  hugePages: Readonly<Record<string, number>>;
  /** Extended resources, such as `example.com/gpu`: how many each node has. */
  extended: Readonly<Record<string, number>>;
  /** What of all that pods may not use. */
  reserved: Reserved;
}

export const DEFAULT_CAPACITY: Capacity = {
  cpus: 8,
  memoryBytes: 32 * 2 ** 30,
  pods: 110,
  storageBytes: null,
  hugePages: {},
  extended: {},
  reserved: { cpuMilli: 0, memoryBytes: 0, storageBytes: 0 },
};
/** Of the disk of every machine of a fleet. */
export const STORAGE_BYTES = 1e12;
const HUGE_PAGES = /^[1-9]\d{0,9}[KMGT]i$/;

export function nodesIn(group: MapReader): NamedNode[] {
  const entries = group.maps('nodes');
  if (group.has('nodes') && entries.length === 0) group.wrong('nodes', 'is empty; a group has a node or more');
  return entries.map((entry) => {
    const node = fieldsIn(entry, NAMED_NODE, { name: '' });
    const why = node.name === '' ? null : dnsSubdomain(node.name);
    if (why !== null) entry.wrong('name', why);
    const labels = labelsIn(entry);
    entry.finish();
    return { ...node, ...(entry.has('labels') ? { labels } : {}) };
  });
}

export function labelsIn(of: MapReader): Record<string, string> {
  const labelled = of.map('labels');
  const labels = textsOf(labelled);
  for (const [key, value] of Object.entries(labels)) {
    const why = wrongLabel(key, value);
    if (why !== null) labelled?.wrong(key, why);
  }
  return labels;
}

/** An API server refuses a node with another one, and it would never be Ready. */
export function wrongLabel(key: string, value: string): string | null {
  return qualifiedName(key) ?? labelValue(value);
}

export function machineIn(machine: MapReader | undefined): MachineSpec {
  if (machine === undefined) return {};
  const read = fieldsIn(machine, MACHINE);
  machine.finish();
  return read;
}

export function capacityIn(group: MapReader): Capacity {
  const capacity = group.map('capacity');
  const there = capacity === undefined ? DEFAULT_CAPACITY : { ...DEFAULT_CAPACITY, ...amountsIn(capacity) };
  const allocatable = group.map('allocatable');
  return allocatable === undefined ? there : { ...there, reserved: reservedIn(allocatable, there) };
}

function amountsIn(capacity: MapReader): Partial<Capacity> {
  const own = fieldsIn(capacity, CAPACITY);
  const names = capacity.node.items.map(({ key }) => String(key));
  const huge = names.filter((name) => name.startsWith(HUGE_PAGES_PREFIX));
  const hugePages = huge.map((name): [string, number] => {
    const size = name.slice(HUGE_PAGES_PREFIX.length);
    if (!HUGE_PAGES.test(size)) capacity.wrong(name, `must be ${HUGE_PAGES_PREFIX}SIZE with a size such as 2Mi`);
    return [size, capacity.quantity(name) ?? 0];
  });
  const extended = names.flatMap((name): [string, number][] => {
    if (!name.includes('/')) return [];
    const why = qualifiedName(name);
    if (why !== null) capacity.wrong(name, why);
    return [[name, capacity.number(name, { min: 0, max: Number.MAX_SAFE_INTEGER, whole: true }) ?? 0]];
  });
  capacity.finish();
  const inHugePages = hugePages.reduce((sum, [, bytes]) => sum + bytes, 0);
  if (inHugePages > own.memoryBytes) capacity.wrong('memory', 'must not be less than its huge pages together');
  return { ...own, hugePages: Object.fromEntries(hugePages), extended: Object.fromEntries(extended) };
}

function reservedIn(allocatable: MapReader, there: Capacity): Reserved {
  const { cpu, memoryBytes, storageBytes } = fieldsIn(allocatable, ALLOCATABLE);
  allocatable.finish();
  const kept = (field: string, all: number, usable: number | undefined): number => {
    if (usable !== undefined && usable > all) allocatable.wrong(field, 'must not be more than the capacity');
    return usable === undefined ? 0 : Math.max(0, all - usable);
  };
  const inHugePages = Object.values(there.hugePages).reduce((sum, bytes) => sum + bytes, 0);
  return {
    cpuMilli: kept('cpu', there.cpus * 1_000, cpu === undefined ? undefined : quantityToMilli(cpu)),
    memoryBytes: kept('memory', there.memoryBytes - inHugePages, memoryBytes),
    storageBytes: kept('ephemeral-storage', there.storageBytes ?? STORAGE_BYTES, storageBytes),
  };
}
