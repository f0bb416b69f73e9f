/**
 * The signals of eviction: the one table of their names, the resource that is short, the condition of the node, and what is read.
 * Configuration, thresholds, readings, ranking and the node's allocatable resources follow from it.
 */
import type { NodePressure } from '../nodeFacts.ts';

/** As it stands in messages. */
export type StarvedResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids';

/** How pods are ranked, by which figure of their use. `bytes`: amounts are written as such. */
export const STARVED = {
  memory: { figure: 'memoryBytes', bytes: true },
  'ephemeral-storage': { figure: 'diskBytes', bytes: true },
  inodes: { figure: 'inodes', bytes: false },
  pids: { figure: 'tasks', bytes: false },
} as const satisfies Readonly<Record<StarvedResource, { figure: string; bytes: boolean }>>;

interface SignalRow {
  resource: StarvedResource;
  pressure: NodePressure;
  /** Which reading tells it (`actors/reclaim/eviction/readings.ts`). */
  reading: string;
  /** Its thresholds follow those of another file system (`reclaim/eviction/disks.ts`); configured ones are passed over. */
  derived?: true;
  /** What evictionHard has where the configuration says nothing. */
  hard?: string;
  /** What evictionHard asks for is kept from what pods may use of the resource. */
  reserves?: true;
}

/** Names in the order of messages and schemas. */
const EVICTION_SIGNALS = {
  'memory.available': { resource: 'memory', pressure: 'MemoryPressure', reading: 'memory', hard: '100Mi', reserves: true },
  'nodefs.available': { resource: 'ephemeral-storage', pressure: 'DiskPressure', reading: 'nodefs', hard: '10%', reserves: true },
  'nodefs.inodesFree': { resource: 'inodes', pressure: 'DiskPressure', reading: 'nodefs', hard: '5%' },
  'imagefs.available': { resource: 'ephemeral-storage', pressure: 'DiskPressure', reading: 'imagefs', hard: '15%' },
  'imagefs.inodesFree': { resource: 'inodes', pressure: 'DiskPressure', reading: 'imagefs', hard: '5%' },
  'containerfs.available': { resource: 'ephemeral-storage', pressure: 'DiskPressure', reading: 'containerfs', derived: true },
  'containerfs.inodesFree': { resource: 'inodes', pressure: 'DiskPressure', reading: 'containerfs', derived: true },
  'pid.available': { resource: 'pids', pressure: 'PIDPressure', reading: 'pids' },
  // Memory of the group of all pods.
  'allocatableMemory.available': { resource: 'memory', pressure: 'MemoryPressure', reading: 'podsMemory' },
} as const satisfies Readonly<Record<string, SignalRow>>;

type Rows = typeof EVICTION_SIGNALS;
export type Signal = keyof Rows;
export type Reading = Rows[Signal]['reading'];
export type SignalFacts = SignalRow & { reading: Reading };

export const SIGNAL_FACTS: Readonly<Record<Signal, SignalFacts>> = EVICTION_SIGNALS;
export const SIGNALS = Object.keys(EVICTION_SIGNALS) as readonly Signal[];

export function isSignal(name: string): name is Signal {
  return Object.hasOwn(EVICTION_SIGNALS, name);
}
