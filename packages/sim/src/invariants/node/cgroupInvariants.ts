/** Invariants about the cgroups that a node keeps for its pods. */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { groupWrites } from '@actorlet/kubelet/machines/allocation/cgroups/files.ts';
import { componentOf, uidOf } from '@actorlet/kubelet/machines/allocation/cgroups/names.ts';
import { quantityToMilli } from '@actorlet/kubelet/machines/kube/quantity.ts';
import type { Pod, Quantity } from '@actorlet/kubelet/machines/kube/types.ts';
import { cpuShares } from '@actorlet/kubelet/machines/pod/resources/resources.ts';
import { type PodRecord, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { HollowDump } from '@actorlet/runtimes/src/hollow/index.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { processesIn } from '@actorlet/world/src/runtime/processes.ts';
import type { Checker } from '../checker.ts';

const MANAGER = 'node/allocation/cgroups';
const WEIGHT = 'cpu.weight';

export function groupCheckers(): Checker[] {
  return [groupsComeFirst(), groupsHoldWhatIsSaid(), nothingAtWorkIsKilled()];
}

/** No sandbox is asked for before the group that it is to be in is there with its values; without groups none is named. */
function groupsComeFirst(): Checker {
  return {
    name: 'groups-come-first',
    arrived(s, call) {
      if (call.method !== 'RunPodSandbox' || call.boot !== s.node.boots) return undefined;
      const { config } = call.req as { config?: { metadata?: { uid?: string }; linux?: { cgroupParent?: string } } };
      const parent = config?.linux?.cgroupParent;
      const who = `${s.node.name}: the sandbox of pod ${config?.metadata?.uid}`;
      if (s.node.tuning.cgroups === null)
        return parent === undefined ? undefined : `${who} is to be in ${parent}, and nobody asked for groups`;
      if (parent === undefined) return `${who} is in no group of its own`;
      const group = s.node.cgroups.groups.get(parent);
      // What somebody else takes away is no fault of the node's.
      if (group === undefined && s.node.tuning.cgroups.takenAtMs !== null) return undefined;
      return group?.has(WEIGHT) === true
        ? undefined
        : `${who} is asked for, and ${parent} ${group === undefined ? 'is not there' : 'has no values'}`;
    },
  };
}

/** What is left in groups is killed only of pods that nobody minds. */
function nothingAtWorkIsKilled(): Checker {
  const said: string[] = [];
  return {
    name: 'nothing-at-work-is-killed',
    booted({ node }) {
      node.cgroups.killed = (pids, path) => {
        const records = node.daemon?.tree.registry.read(podsView)?.value.records;
        for (const p of processesIn(node.runtime.hollow.dump(), path)) {
          const phase = records?.get(p.podUid)?.worker?.phase;
          if (pids.includes(p.pid) && (phase === 'syncing' || phase === 'terminating'))
            said.push(`${node.name}: what runs in ${path} is killed, and the worker of its pod is ${phase}`);
        }
      };
      return undefined;
    },
    beat: () => said[0],
  };
}

/** In fair weather each pod that runs has its group, with its values, and there is no other. */
export function groupsUnsettled(node: SimNode, o: { tree: SupervisionTree; uids: ReadonlySet<string>; dump: HollowDump }): string[] {
  if (node.tuning.cgroups === null) return [];
  const found: string[] = [];
  const snapshot: unknown = o.tree.actorAt(MANAGER)?.getSnapshot();
  const value = snapshot !== null && typeof snapshot === 'object' && 'value' in snapshot ? snapshot.value : undefined;
  if (value !== 'enforced' && value !== 'renewing') found.push(`the cgroups of the node are ${String(value)}`);
  const records = o.tree.registry.read(podsView)?.value.records;
  for (const [path, files] of node.cgroups.groups) {
    const uid = uidOf(componentOf(path.split('/').at(-1) ?? '', node.tuning.cgroups.systemd ? 'systemd' : 'cgroupfs'));
    if (uid === null) continue;
    if (!o.uids.has(uid)) found.push(`the cgroup ${path} is still there`);
    else if (records?.get(uid)?.worker?.phase === 'finished') found.push(`the cgroup ${path} of a pod that has ended is still there`);
    else if (processesIn(o.dump, path).length > 0) found.push(...valuesUnsettled(path, files, { node, record: records?.get(uid) }));
  }
  for (const s of o.dump.sandboxes) {
    if (s.ready && s.cgroupParent !== undefined && !node.cgroups.groups.has(s.cgroupParent))
      found.push(`sandbox ${s.id} of pod ${s.uid} has lost its cgroup ${s.cgroupParent}`);
  }
  return found;
}

/** The weight of a pod with resources as a whole is what it was granted; its containers ask for something else. */
function valuesUnsettled(
  path: string,
  files: ReadonlyMap<string, string>,
  { node, record }: { node: SimNode; record: PodRecord | undefined },
): string[] {
  const weight = files.get(WEIGHT);
  if (weight === undefined) return [`the cgroup ${path} has no values`];
  const whole = record?.pod.spec.resources?.requests?.cpu;
  if (record === undefined || whole === undefined || Number(weight) === weightOf(node, record.pod, whole)) return [];
  return [`the cgroup ${path} has weight ${weight}, and its pod was granted ${whole} cpu as a whole`];
}

/** `cpu`: of the pod as a whole, without its overhead. */
function weightOf({ cgroups }: SimNode, { spec }: Pod, cpu: Quantity): number {
  const shares = cpuShares(quantityToMilli(cpu) + quantityToMilli(spec.overhead?.cpu));
  return Number(groupWrites({ cpuShares: shares }, cgroups.layout).find((w) => w.file === WEIGHT)?.value);
}

/** No status says that a pod as a whole has more than its group has. */
function groupsHoldWhatIsSaid(): Checker {
  const said = new Map<string, Quantity>();
  /** Was so when it was said, or later. A daemon that dies while it takes some of that away leaves the next one to say it once more. */
  const held = new Map<string, Quantity>();
  return {
    name: 'groups-hold-what-is-said',
    booted() {
      said.clear();
      return undefined;
    },
    statuses({ node }, statuses) {
      // What somebody else takes away is no fault of the node's.
      if (node.tuning.cgroups === null || node.tuning.cgroups.takenAtMs !== null) return undefined;
      const records = node.daemon?.tree.registry.read(podsView)?.value.records;
      for (const [uid, { status }] of statuses) {
        const [pod, cpu] = [records?.get(uid)?.pod, status.resources?.requests?.cpu];
        if (pod?.spec.resources?.requests?.cpu === undefined || cpu === undefined) continue;
        const isNew = said.get(uid) !== cpu;
        // What was said before the pod ran becomes so when it runs.
        if (!isNew && held.get(uid) === cpu) continue;
        said.set(uid, cpu);
        const running = node.runtime.hollow.dump().containers.some((c) => c.podUid === uid && c.state === 'CONTAINER_RUNNING');
        const { cgroupParent } = node.runtime.hollow.dump().sandboxes.find((s) => s.uid === uid && s.ready) ?? {};
        const weight = node.cgroups.groups.get(cgroupParent ?? '')?.get(WEIGHT);
        if (!running || weight === undefined) continue;
        if (Number(weight) >= weightOf(node, pod, cpu)) held.set(uid, cpu);
        else if (isNew && held.get(uid) !== cpu)
          return `${node.name}: pod ${pod.metadata.name} (${uid}) is said to have ${cpu} cpu, and ${cgroupParent} has weight ${weight}`;
      }
      return undefined;
    },
  };
}
