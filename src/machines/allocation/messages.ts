/** What the layer `allocation` is asked, and what containers get of it. Its providers allocate: device manager, CPU manager. */

import type { Container } from '../kube/podTable.ts';
import type { Pod } from '../kube/types.ts';
import { address, type Message, type ReplyTo } from '../supervision/address.ts';
import type { Device, Mount } from '../wire/cri.ts';

/** What a pod that waits to be admitted gets. `later`: nothing is decided, mostly because terminating pods still hold what it needs; ask again. */
export type AllocationAnswer = { kind: 'granted' } | { kind: 'refused'; reason: string; message: string } | { kind: 'later'; why: string };

/**
 * To the coordinator, and from it to each provider: allocate all that this pod's containers need, or nothing. The question may be
 * asked again at any time, and the answer is the same then. It comes when the allocation is on disk.
 */
export type AllocationEvent = Message &
  (
    | {
        type: 'allocation.admit';
        pod: Pod;
        /** Pods that may have something although the view of pods does not show them yet: theirs is not given away. */
        active: ReadonlySet<string>;
        /** NUMA nodes to allocate from, by container: only to these is allocated. Absent under topology manager policy none: to all. */
        affinity?: Affinities;
        /**
         * A provider that `drafts` answers as soon as it has decided, before its record is on disk. Asked again without this, it
         * answers when the record is.
         */
        draft?: true;
        replyTo: ReplyTo<AllocationAnswer>;
      }
    /** From where could this container, or the pod as a whole, have what it needs? Asked under other policies than none. */
    | { type: 'allocation.hints'; pod: Pod; container: string | null; active: ReadonlySet<string>; replyTo: ReplyTo<ProviderHints> }
    /** It was not let in after all. */
    | { type: 'allocation.forget'; uid: string }
  );

/** The coordinator. It exists on a node with a provider. */
export const allocationAddr = address<AllocationEvent>('node/allocation/coordinator');

/** For an answer of the coordinator: longer than all providers may take, one after the other. */
export const ALLOCATION_TIMEOUT_MS = 900_000;

/** NUMA nodes from which a container can have what it needs. `preferred`: no fewer nodes would do. */
export interface NumaHint {
  nodes: readonly number[];
  preferred: boolean;
}
/** What the topology manager chose. `nodes` null: any. */
export interface Affinity {
  nodes: readonly number[] | null;
  preferred: boolean;
}
/** By container. */
export type Affinities = ReadonlyMap<string, Affinity>;
/** Null: it does not matter. Empty: nowhere. */
export interface ResourceHints {
  resource: string;
  hints: readonly NumaHint[] | null;
}
/** `soon`: once pods that are on their way out have released what they hold. */
export interface ProviderHints {
  now: readonly ResourceHints[];
  soon: readonly ResourceHints[];
}

/** What a container gets of all that is allocated. */
export interface ContainerShare {
  devices: readonly Device[];
  mounts: readonly Mount[];
  envs: readonly { key: string; value: string }[];
  annotations: Readonly<Record<string, string>>;
  cdiDevices: readonly string[];
  /** The CPUs that it runs on, such as `0-3,7`; absent: all. */
  cpus?: string;
  /** These CPUs are its own: no quota of time on them. */
  quotaLifted?: boolean;
  /** The NUMA nodes of its memory, such as `0-1`; absent: all. */
  mems?: string;
}
export const NO_SHARE: ContainerShare = { devices: [], mounts: [], envs: [], annotations: {}, cdiDevices: [] };

/** What the node's status says of resources that providers allocate. */
export interface NodeResources {
  capacity: Readonly<Record<string, string>>;
  allocatable: Readonly<Record<string, string>>;
  /** No record of an earlier daemon was found: what an earlier node of this name said of such resources is not true. */
  recreated: boolean;
}

/** One device, once for each NUMA node that it is near to. */
export interface ContainerDevices {
  resourceName: string;
  deviceIds: readonly string[];
  /** Absent: the plugin names no NUMA node. */
  topology?: { nodes: readonly { ID: number }[] };
}
/** Memory or huge pages, in bytes, and the NUMA nodes that they are on. */
export interface ContainerMemory {
  memoryType: string;
  size: number;
  topology: { nodes: readonly { ID: number }[] };
}
/** What the pod resources API shows of a container, or of all that can be allocated. */
export interface HeldResources {
  devices: readonly ContainerDevices[];
  /** Only those that no other container may use. */
  cpuIds: readonly number[];
  memory: readonly ContainerMemory[];
  /** Resources of ResourceClaims. */
  dynamicResources?: readonly DynamicResource[];
}
export interface DynamicResource {
  claimName: string;
  claimNamespace: string;
  claimResources: readonly {
    cdiDevices: readonly { name: string }[];
    driverName: string;
    poolName: string;
    deviceName: string;
    shareId?: string;
  }[];
}
export interface Held {
  of(uid: string, container: string, whole: { pod: Pod; container: Container }): Partial<HeldResources>;
  /** All that containers can have, taken or free. */
  allocatable(): Partial<HeldResources>;
}
