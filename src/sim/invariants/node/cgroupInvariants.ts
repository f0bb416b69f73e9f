/** Invariants about the cgroups that a node keeps for its pods. */

import type { SupervisionTree } from '../../../actors/supervision/tree.ts';
import { componentOf, uidOf } from '../../../machines/allocation/cgroups/names.ts';
import { podsView } from '../../../machines/pods/manager/messages.ts';

import type { HollowDump } from '../../../sandbox/hollow/index.ts';
import type { SimNode } from '../../world/node/types.ts';
import { processesIn } from '../../world/runtime/processes.ts';
import type { Checker } from '../checker.ts';

const MANAGER = 'node/allocation/cgroups';
const WEIGHT = 'cpu.weight';

/** No sandbox is asked for before the group that it is to be in is there with its values; without groups none is named. */
export function groupsComeFirst(): Checker {
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
export function nothingAtWorkIsKilled(): Checker {
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
    else if (processesIn(o.dump, path).length > 0 && !files.has(WEIGHT)) found.push(`the cgroup ${path} has no values`);
  }
  for (const s of o.dump.sandboxes) {
    if (s.ready && s.cgroupParent !== undefined && !node.cgroups.groups.has(s.cgroupParent))
      found.push(`sandbox ${s.id} of pod ${s.uid} has lost its cgroup ${s.cgroupParent}`);
  }
  return found;
}
