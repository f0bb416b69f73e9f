/** Nodes of one shape become a group of a fleet file. */
import { bytesQuantity } from '@actorlet/kubelet/machines/kube/quantity.ts';
import { counted } from '../run/counted.ts';
import { GROUPS_MAX, NODES_MAX } from '../spec/table.ts';
import { INSTANCE_TYPES, type NodeFacts, type Shape, textOf } from './shape.ts';

interface Member {
  name: string;
  providerID: string;
  labels: Record<string, string>;
}
interface Group {
  shape: Shape;
  members: Member[];
}
export interface WrittenGroups {
  groups: Record<string, unknown>[];
  /** Of people. */
  notes: string[];
}

/** So many nodes with a value of their own each: it names them. */
const UNIQUE_MIN = 10;
const UNIQUE_SHARE = 0.9;
/** Labels that are taken apart one by one, each for a walk through all shapes. More than nodes of any cluster differ in. */
const APART_MAX = 64;
const NOTES_MAX = 20;
const NAME_CHARS_MAX = 40;
const GIB = 2 ** 30;

export class NodeShapes {
  readonly #keepNames: boolean;
  #groups = new Map<string, Group>();
  readonly #names = new Set<string>();
  #notReady = 0;
  #over = 0;

  /** @param keepNames Else names of nodes, their providers' ids, and labels that name one node alone are left out. */
  constructor(keepNames: boolean) {
    this.#keepNames = keepNames;
  }

  /** False: a node of that name was there before, or there are too many. */
  add({ name, providerID, own, shape, ready }: NodeFacts): boolean {
    if (this.#names.has(name)) return false;
    if (this.#names.size >= NODES_MAX) {
      this.#over += 1;
      return false;
    }
    this.#names.add(name);
    if (!ready) this.#notReady += 1;
    into(this.#groups, {
      shape,
      members: [this.#keepNames ? { name, providerID, labels: own } : { name: '', providerID: '', labels: {} }],
    });
    return true;
  }

  get count(): number {
    return this.#names.size;
  }

  written(): WrittenGroups {
    const keepNames = this.#keepNames;
    const notes: string[] = [];
    if (this.#over > 0) notes.push(`left out: ${counted(this.#over, 'nodes')}, since a fleet has at most ${NODES_MAX}`);
    if (this.#notReady > 0) notes.push(`not Ready there, and Ready here: ${counted(this.#notReady, 'nodes')}`);
    const unique = this.#uniqueKeys();
    this.#apart(unique, keepNames);
    if (!keepNames) notes.push(...unique.slice(0, NOTES_MAX).map((key) => `the label ${key} is left out: it names each node`));
    if (!keepNames && unique.length > NOTES_MAX) notes.push(`... and ${counted(unique.length - NOTES_MAX, 'more labels')}`);
    this.#fit(notes);
    const groups = [...this.#groups]
      .sort(([a, x], [b, y]) => y.members.length - x.members.length || (a < b ? -1 : 1))
      .map(([, group]) => group);
    const left = groups.slice(GROUPS_MAX).reduce((sum, { members }) => sum + members.length, 0);
    if (left > 0) notes.push(`left out: ${counted(left, 'nodes')}, since a fleet has at most ${GROUPS_MAX} groups`);
    const taken = new Set<string>();
    return { groups: groups.slice(0, GROUPS_MAX).map((group) => writtenGroup(group, nameOf(group.shape, taken), keepNames)), notes };
  }

  /** Labels whose value nearly every node has alone. */
  #uniqueKeys(): string[] {
    const seen = this.#valuesOf();
    return [...seen]
      .filter(([, { values, nodes }]) => values.size >= UNIQUE_MIN && values.size >= nodes * UNIQUE_SHARE)
      .map(([key]) => key);
  }

  #valuesOf(): Map<string, { values: Set<string>; nodes: number }> {
    const seen = new Map<string, { values: Set<string>; nodes: number }>();
    for (const { shape, members } of this.#groups.values()) {
      for (const [key, value] of Object.entries(shape.labels)) {
        const of = seen.get(key) ?? { values: new Set(), nodes: 0 };
        of.values.add(value);
        of.nodes += members.length;
        seen.set(key, of);
      }
    }
    return seen;
  }

  /** Takes labels out of all shapes. `keep`: each node has them as its own. */
  #apart(keys: readonly string[], keep: boolean): void {
    if (keys.length === 0) return;
    const out = new Set(keys);
    this.#reshaped(({ shape, members }) => {
      const entries = Object.entries(shape.labels);
      const own = Object.fromEntries(entries.filter(([key]) => out.has(key)));
      const labels = Object.fromEntries(entries.filter(([key]) => !out.has(key)));
      return {
        shape: { ...shape, labels },
        members: keep ? members.map((m) => ({ ...m, labels: { ...m.labels, ...own } })) : members,
      };
    });
  }

  /** What differs most goes first: labels, then odd bytes of memory and disks. */
  #fit(notes: string[]): void {
    for (let left = APART_MAX; left > 0 && this.#groups.size > GROUPS_MAX; left -= 1) {
      const [most] = [...this.#valuesOf()].sort(([, a], [, b]) => b.values.size - a.values.size);
      if (most === undefined || most[1].values.size < 2) break;
      this.#apart([most[0]], true);
    }
    if (this.#groups.size <= GROUPS_MAX) return;
    notes.push('memory and disks are rounded down to whole GiB: there are too many shapes');
    const rounded = (of: Record<string, number>): Record<string, number> =>
      Object.fromEntries(
        Object.entries(of).map(([key, amount]) => [
          key,
          (key === 'memory' || key === 'ephemeral-storage') && amount > GIB ? amount - (amount % GIB) : amount,
        ]),
      );
    this.#reshaped(({ shape, members }) => ({
      shape: { ...shape, capacity: rounded(shape.capacity), allocatable: rounded(shape.allocatable) },
      members,
    }));
  }

  #reshaped(change: (group: Group) => Group): void {
    const groups = new Map<string, Group>();
    for (const group of this.#groups.values()) into(groups, change(group));
    this.#groups = groups;
  }
}

function into(groups: Map<string, Group>, { shape, members }: Group): void {
  const key = JSON.stringify(shape);
  const group = groups.get(key);
  if (group === undefined) groups.set(key, { shape, members: [...members] });
  else for (const m of members) group.members.push(m);
}

/** By the type of machine: `m5-large`, `m5-large-2`. */
function nameOf({ labels }: Shape, taken: Set<string>): string {
  const type = INSTANCE_TYPES.map((key) => labels[key] ?? '').find((of) => of !== '') ?? 'node';
  const plain =
    type
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .slice(0, NAME_CHARS_MAX)
      .replaceAll(/^-+|-+$/g, '') || 'node';
  let name = plain;
  for (let next = 2; taken.has(name); next += 1) name = `${plain}-${next}`;
  taken.add(name);
  return name;
}

function writtenGroup({ shape, members }: Group, name: string, keepNames: boolean): Record<string, unknown> {
  const { labels, taints, unschedulable, machine, version, handlers, provider } = shape;
  const plain = !keepNames && members.every((m) => Object.keys(m.labels).length === 0);
  const nodes = members.map((m, i) => {
    return {
      name: keepNames ? m.name : `${name}-${i}`,
      ...(keepNames && m.providerID !== '' ? { providerID: m.providerID } : {}),
      ...(Object.keys(m.labels).length === 0 ? {} : { labels: m.labels }),
    };
  });
  return {
    name,
    ...(plain ? { count: members.length } : { nodes }),
    ...(keepNames || provider === '' ? {} : { providerID: `${provider}://{name}` }),
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(taints.length === 0 ? {} : { taints: taints.map(textOf) }),
    ...(unschedulable ? { unschedulable } : {}),
    ...(version === '' ? {} : { version }),
    ...(Object.keys(machine).length === 0 ? {} : { machine }),
    ...(handlers.length === 0 ? {} : { runtimeHandlers: handlers }),
    capacity: amountsText(shape.capacity),
    allocatable: { ...amountsText(shape.allocatable), cpu: milliText(shape.allocatable.cpu ?? 0) },
  };
}

function amountsText(amounts: Record<string, number>): Record<string, string | number> {
  const isBytes = (key: string): boolean => key === 'memory' || key === 'ephemeral-storage' || key.startsWith('hugepages-');
  return Object.fromEntries(Object.entries(amounts).map(([key, amount]) => [key, isBytes(key) ? bytesQuantity(amount) : amount]));
}

function milliText(milli: number): string {
  return milli % 1_000 === 0 ? String(milli / 1_000) : `${milli}m`;
}
