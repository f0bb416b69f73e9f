/** What the pod resources API answers: which devices and CPUs containers hold. Pure. */
import { cpusOf } from '../allocation/cpus/ledger.ts';
import { type Allocation, type DeviceLedger, NO_DEVICES, NO_NODE } from '../allocation/devices/types.ts';
import type { CpusView } from '../allocation/messages.ts';
import type { Container } from '../kube/podTable.ts';
import type { Pod } from '../kube/types.ts';
import { isTerminal } from '../pod/phase.ts';
import { isRestartableInit } from '../pod/runtime/shouldRestart.ts';
import type { PodRecord } from '../pods/manager/messages.ts';
import type { StatusView } from '../pods/status/messages.ts';

/** One device, once for each NUMA node that it is near to. */
export interface ContainerDevices {
  resourceName: string;
  deviceIds: readonly string[];
  /** Absent: the plugin names no NUMA node. */
  topology?: { nodes: readonly { ID: number }[] };
}
export interface ContainerResources {
  name: string;
  devices: readonly ContainerDevices[];
  /** Only those that no other container may use. */
  cpuIds: readonly number[];
}
export interface PodResources {
  name: string;
  namespace: string;
  containers: readonly ContainerResources[];
}
export interface AllocatableResources {
  devices: readonly ContainerDevices[];
  /** None under CPU manager policy `none`, as in the reference. */
  cpuIds: readonly number[];
}

/** What the node's managers published. */
export interface PodResourcesFacts {
  records: ReadonlyMap<string, PodRecord>;
  statuses: StatusView | undefined;
  devices: DeviceLedger | undefined;
  cpus: CpusView | undefined;
}

/** Of every pod, or of those alone that have not ended (gate `KubeletPodResourcesListUseActivePods`). */
export function listPodResources(facts: PodResourcesFacts, { active }: { active: boolean }): PodResources[] {
  const held = Map.groupBy((facts.devices ?? NO_DEVICES).allocations, (a) => a.uid);
  return [...facts.records].flatMap(([uid, record]) =>
    record.source === 'runtime' || (active && hasEnded(facts, { uid, record }))
      ? []
      : [resourcesOf(record.pod, held.get(uid) ?? [], facts)],
  );
}

/** Null: the node has no such pod. */
export function podResourcesByName(
  facts: PodResourcesFacts,
  { namespace, name }: { namespace: string; name: string },
): PodResources | null {
  for (const [uid, { pod, source }] of facts.records) {
    if (source === 'runtime' || pod.metadata.name !== name || pod.metadata.namespace !== namespace) continue;
    const held = (facts.devices ?? NO_DEVICES).allocations.filter((a) => a.uid === uid);
    return resourcesOf(pod, held, facts);
  }
  return null;
}

/** All that can be given to containers, taken or free. */
export function allocatableResources({ devices, cpus }: Pick<PodResourcesFacts, 'devices' | 'cpus'>): AllocatableResources {
  return {
    devices: [...(devices ?? NO_DEVICES).resources].flatMap(([resource, { healthy, numa }]) =>
      [...healthy].flatMap((id) => {
        const nodes = numa.get(id) ?? [];
        return nodes.length === 0 ? [device(resource, id)] : nodes.map((node) => device(resource, id, node));
      }),
    ),
    cpuIds: cpus?.allocatable ?? [],
  };
}

function hasEnded({ statuses }: PodResourcesFacts, { uid, record }: { uid: string; record: PodRecord }): boolean {
  const phase = record.worker?.phase;
  return (
    record.rejected || phase === 'terminated' || phase === 'finished' || isTerminal((statuses?.get(uid)?.status ?? record.pod.status).phase)
  );
}

function resourcesOf({ metadata, spec }: Pod, held: readonly Allocation[], { cpus }: PodResourcesFacts): PodResources {
  const sidecars = (spec.initContainers ?? []).filter(isRestartableInit);
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    containers: [...sidecars, ...spec.containers].map(({ name }: Container) => {
      const own = cpus === undefined ? null : cpusOf(cpus.ledger, metadata.uid, name);
      return {
        name,
        devices: held.filter((a) => a.container === name).flatMap(devicesOf),
        cpuIds: own?.exclusive === true ? own.cpus : [],
      };
    }),
  };
}

function devicesOf({ resource, devices }: Allocation): ContainerDevices[] {
  return Object.entries(devices).flatMap(([node, ids]) =>
    ids.map((id) => (node === NO_NODE ? device(resource, id) : device(resource, id, Number(node)))),
  );
}

function device(resourceName: string, id: string, node?: number): ContainerDevices {
  return { resourceName, deviceIds: [id], ...(node === undefined ? {} : { topology: { nodes: [{ ID: node }] } }) };
}

/** Of the reference: so many calls a second are answered, and so many at once. */
const QPS = 100;
const BURST = 10;

export interface TokenBucket {
  readonly tokens: number;
  readonly atMonoMs: number;
}
export const FULL_BUCKET: TokenBucket = { tokens: BURST, atMonoMs: 0 };

/** The bucket after a call, and whether that call is answered. */
export function takeToken(bucket: TokenBucket, monoMs: number): { bucket: TokenBucket; ok: boolean } {
  const tokens = Math.min(BURST, bucket.tokens + (Math.max(0, monoMs - bucket.atMonoMs) / 1000) * QPS);
  const ok = tokens >= 1;
  return { bucket: { tokens: ok ? tokens - 1 : tokens, atMonoMs: monoMs }, ok };
}
