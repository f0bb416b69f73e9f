/**
 * Remains of pods that are taken back, as plans (pod lifecycle 9.1, 9.2): containers, sandboxes, log directories, dead links.
 * Nothing here removes anything; the collector does, and asks again before it does.
 */

import { isTerminal } from '../pod/phase.ts';
import { containerIdOfLink, podUidOfLogDir } from '../pod/runtime/logNames.ts';
import { sortContainers, sortSandboxes } from '../pod/runtime/runtimeStatus.ts';
import type { ListedPod } from '../pod/runtime/seen.ts';
import type { PodRecord } from '../pods/manager/messages.ts';
import { EVICTED } from './eviction/messages.ts';

const NS_PER_MS = 1_000_000n;
/** The runtime may stamp a little ahead of what this node reads. */
const CLOCK_SLACK_MS = 1_000;

export interface GcPolicy {
  /** A container younger than this is left alone. Default 0. */
  minAgeMs: number;
  /** Dead instances kept per pod and container name. Default 1; fewer breaks restart counts and Never pods (trap 59). */
  maxPerPodContainer: number;
  /** Dead instances kept on the node; negative is no limit. Default -1. */
  maxContainers: number;
}
export const DEFAULT_GC_POLICY: GcPolicy = { minAgeMs: 0, maxPerPodContainer: 1, maxContainers: -1 };

export interface CollectContainer {
  id: string;
  uid: string;
  name: string;
  podName: string;
  podNamespace: string;
  annotations: Record<string, string>;
  /** State unknown: it may be running, so it is stopped first. */
  killFirst: boolean;
}

/**
 * Nothing of this pod is wanted any more: no record of it is left, or it was evicted, or (`urgent`) it has ended. One that was not
 * deleted loses its containers only where the API server shows its end: without them a restart of the daemon would run it again.
 */
export function isGarbage(record: PodRecord | undefined, { urgent }: { urgent: boolean }): boolean {
  if (record === undefined) return true;
  const { phase, reason } = record.pod.status;
  return record.source === 'api' && record.worker?.phase === 'finished' && isTerminal(phase) && (urgent || reason === EVICTED);
}

export interface GcInput {
  pods: Iterable<ListedPod>;
  /** True once every source has delivered; before that no pod counts as deleted. */
  sourcesReady: boolean;
  /** See {@link isGarbage}. */
  isRemovable: (uid: string) => boolean;
}

type Dead = ListedPod['containers'][number] & { uid: string; podName: string; podNamespace: string };

/** In order of removal: oldest first within each group. */
export function containersToCollect(input: GcInput & { nowWallMs: number; policy: GcPolicy }): CollectContainer[] {
  const { policy } = input;
  const newestAllowedNs = BigInt(Math.floor(input.nowWallMs - policy.minAgeMs)) * NS_PER_MS;
  // A stamp of the future tells that the clock went back, not that the container is young: nothing would be removed until then.
  const futureNs = BigInt(Math.floor(input.nowWallMs + CLOCK_SLACK_MS)) * NS_PER_MS;
  const removed: Dead[] = [];
  /** Newest first. */
  const groups: Dead[][] = [];
  for (const pod of input.pods) {
    const names = new Map<string, Dead[]>();
    const seen = new Set<string>();
    const removable = input.sourcesReady && input.isRemovable(pod.uid);
    for (const c of sortContainers(pod.containers)) {
      // The newest instance, created and about to be started, is not dead: counting it would cost the one to be kept.
      const starting = c.state === 'created' && !seen.has(c.name) && !removable;
      seen.add(c.name);
      if (c.state === 'running' || starting || (c.createdAtNs > newestAllowedNs && c.createdAtNs <= futureNs)) continue;
      const dead = { ...c, uid: pod.uid, podName: pod.name, podNamespace: pod.namespace };
      const group = names.get(c.name);
      if (group === undefined) names.set(c.name, [dead]);
      else group.push(dead);
    }
    for (const group of names.values()) {
      if (removable) removed.push(...group.splice(0).reverse());
      else if (group.length > 0) groups.push(group);
    }
  }
  const trim = (keep: number): void => {
    for (const group of groups) removed.push(...group.splice(Math.max(0, keep)).reverse());
  };
  if (policy.maxPerPodContainer >= 0) trim(policy.maxPerPodContainer);
  const total = (): number => groups.reduce((sum, group) => sum + group.length, 0);
  if (policy.maxContainers >= 0 && total() > policy.maxContainers) {
    trim(Math.max(1, Math.floor(policy.maxContainers / Math.max(1, groups.length))));
    const excess = total() - policy.maxContainers;
    if (excess > 0) removed.push(...sortContainers(groups.flat()).reverse().slice(0, excess));
  }
  return removed.map((c) => ({
    id: c.id,
    uid: c.uid,
    name: c.name,
    podName: c.podName,
    podNamespace: c.podNamespace,
    annotations: c.annotations,
    killFirst: c.state === 'unknown',
  }));
}

/**
 * Sandboxes that are not ready and hold no container; of a pod still wanted, not the newest. `gone`: container ids that
 * were removed since the listing.
 */
export function sandboxesToCollect(input: GcInput & { gone?: ReadonlySet<string> }): { id: string; uid: string }[] {
  const plan: { id: string; uid: string }[] = [];
  for (const pod of input.pods) {
    const used = new Set(pod.containers.filter((c) => input.gone?.has(c.id) !== true).map((c) => c.sandboxId));
    const removable = input.sourcesReady && input.isRemovable(pod.uid);
    const sorted = sortSandboxes(pod.sandboxes);
    const candidates = removable ? sorted : sorted.slice(1);
    // Oldest first.
    for (const sandbox of candidates.reverse()) {
      if (!sandbox.ready && !used.has(sandbox.id)) plan.push({ id: sandbox.id, uid: pod.uid });
    }
  }
  return plan;
}

/** Names under the pod log directory that belong to removable pods. Names of another form are left alone. */
export function logDirsToRemove(input: {
  dirNames: readonly string[];
  sourcesReady: boolean;
  isRemovable: (uid: string) => boolean;
}): string[] {
  if (!input.sourcesReady) return [];
  return input.dirNames.filter((name) => {
    const uid = podUidOfLogDir(name);
    return uid !== undefined && input.isRemovable(uid);
  });
}

/**
 * Links whose target is missing, except those of containers that exist and have not exited: their log is just being
 * rotated. `stateOf`: state by container id, undefined when the runtime has none whose id begins so.
 */
export function deadLinks(input: {
  links: readonly { name: string; targetExists: boolean }[];
  stateOf: (id: string) => 'created' | 'running' | 'exited' | 'unknown' | undefined;
}): string[] {
  return input.links
    .filter(({ name, targetExists }) => {
      if (targetExists || !name.endsWith('.log')) return false;
      const id = containerIdOfLink(name);
      const state = id === undefined ? undefined : input.stateOf(id);
      return state === undefined || state === 'exited';
    })
    .map(({ name }) => name);
}
