/** A NUMA node of the machine, as the kernel tells of it. */
export interface NumaNode {
  /** Numbers may have holes. */
  id: number;
  /** 0: it has CPUs or devices alone. */
  memoryBytes: number;
  /** Pages that are set aside, by size. */
  hugePages: readonly { pageBytes: number; count: number }[];
  /** To each node, in their order, itself among them. Null: the kernel does not tell. */
  distances: readonly number[] | null;
}
