/** What the pod resources API answers: which devices, CPUs and memory containers hold. Pure. */

import type { Held, HeldResources } from '../allocation/messages.ts';
import { TokenBucket } from '../data/tokenBucket.ts';
import type { Container } from '../kube/podTable.ts';
import type { Pod } from '../kube/types.ts';
import { isTerminal } from '../pod/phase.ts';
import { isRestartableInit } from '../pod/runtime/shouldRestart.ts';
import { isRefused, type PodRecord } from '../pods/manager/messages.ts';
import type { StatusView } from '../pods/status/messages.ts';

interface ContainerResources extends HeldResources {
  name: string;
}
export interface PodResources {
  name: string;
  namespace: string;
  containers: readonly ContainerResources[];
}

/** What the node's managers published. */
export interface PodResourcesFacts {
  records: ReadonlyMap<string, PodRecord>;
  statuses: StatusView | undefined;
  /** What each provider of allocation holds. */
  held: readonly Held[];
}

/** `active`: leaves out pods that have ended (gate `KubeletPodResourcesListUseActivePods`). */
export function listPodResources(facts: PodResourcesFacts, { active }: { active: boolean }): PodResources[] {
  return [...facts.records].flatMap(([uid, record]) =>
    record.source === 'runtime' || (active && hasEnded(facts, { uid, record })) ? [] : [resourcesOf(record.pod, facts)],
  );
}

/** Of pods with one name, the newest that has not ended; otherwise the newest. Null: the node has no such pod. */
export function podResourcesByName(
  facts: PodResourcesFacts,
  { namespace, name }: { namespace: string; name: string },
): PodResources | null {
  const named = [...facts.records].filter(
    ([, { pod, source }]) => source !== 'runtime' && pod.metadata.name === name && pod.metadata.namespace === namespace,
  );
  const found = named.findLast(([uid, record]) => !hasEnded(facts, { uid, record })) ?? named.at(-1);
  return found === undefined ? null : resourcesOf(found[1].pod, facts);
}

/** All that can be given to containers, taken or free. */
export function allocatableResources({ held }: Pick<PodResourcesFacts, 'held'>): HeldResources {
  return joined(held.map((one) => one.allocatable()));
}

function hasEnded({ statuses }: PodResourcesFacts, { uid, record }: { uid: string; record: PodRecord }): boolean {
  const phase = record.worker?.phase;
  return (
    isRefused(record) ||
    phase === 'terminated' ||
    phase === 'finished' ||
    isTerminal((statuses?.get(uid)?.status ?? record.pod.status).phase)
  );
}

function resourcesOf(pod: Pod, { held }: PodResourcesFacts): PodResources {
  const { metadata, spec } = pod;
  const sidecars = (spec.initContainers ?? []).filter(isRestartableInit);
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    containers: [...sidecars, ...spec.containers].map((container: Container) => ({
      name: container.name,
      ...joined(held.map((one) => one.of(metadata.uid, container.name, { pod, container }))),
    })),
  };
}

/** Each provider tells of resources of its own. */
function joined(parts: readonly Partial<HeldResources>[]): HeldResources {
  return Object.assign({ devices: [], cpuIds: [], memory: [] }, ...parts);
}

/** Calls that are answered a second, and at once. From the reference. */
const QPS = 100;
const BURST = 10;

export const callBucket = (): TokenBucket => new TokenBucket(QPS, BURST);
