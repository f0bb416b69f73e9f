/** Invariants about a machine that goes down: for whom it is waited, and what is left of a shutdown that was cancelled. */

import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { isRefused, isWanted, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { statusesView } from '@actorlet/kubelet/machines/pods/status/messages.ts';

import { groupOf, shutdownGroups } from '@actorlet/kubelet/machines/reclaim/nodeShutdown/groups.ts';
import { NOT_ADMITTED, nodeShutdownView, TERMINATED } from '@actorlet/kubelet/machines/reclaim/nodeShutdown/messages.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { type Checker, isByShutdown, type Scene } from '../checker.ts';

const MANAGER = 'node/reclaim/nodeShutdown';
const GATES = { graceful: true, byPriority: true };

/** The lock is dropped when nothing runs any more, or the time of all that runs is over. */
function droppedTooEarly({ node, monoMs }: Scene): string | undefined {
  const registry = node.daemon?.tree.registry;
  const since = registry?.read(nodeShutdownView)?.value.startedMonoMs;
  if (node.tuning.shutdown === null || since === null || since === undefined) return undefined;
  const groups = shutdownGroups(node.tuning.shutdown, GATES);
  const records = registry?.read(podsView)?.value.records;
  for (const c of node.runtime.hollow.dump().containers) {
    const record = records?.get(c.podUid);
    // Housekeeping knows what no source wants; what was refused runs nothing by its own doing.
    if (c.state !== 'CONTAINER_RUNNING' || record === undefined || isRefused(record) || record.source === 'runtime') continue;
    // This pod is over for the API server, and so for its worker.
    if (record.worker === null) continue;
    const periodMs = (groups[groupOf(groups, record.pod)]?.periodSeconds ?? 0) * 1_000;
    if (monoMs - since < periodMs)
      return `${node.name}: the lock is dropped ${Math.round(monoMs - since)} ms after the shutdown began, and ${c.name} of pod ${record.pod.metadata.name} runs, which has ${periodMs} ms`;
  }
  return undefined;
}

/** A machine that goes down waits until pods have ended, or their time is over. */
export function shutdownsWaitForPods(): Checker {
  return { name: 'shutdowns-wait-for-pods', released: droppedTooEarly };
}

/** No pod is ended, or refused, for a shutdown of a machine that never began to go down. */
export function nobodyGoesForNoShutdown(): Checker {
  return {
    name: 'nobody-goes-for-no-shutdown',
    statuses({ node }, statuses) {
      if (node.logind.shutdowns > 0) return undefined;
      for (const [uid, { status }] of statuses)
        if (status.reason === TERMINATED || status.reason === NOT_ADMITTED)
          return `${node.name}: pod ${uid} is ${status.phase ?? '-'}, ${status.message ?? ''}, and the machine never went down`;
      return undefined;
    },
  };
}

/** In fair weather logind is watched with a lock in hand, the node admits pods, and static pods have begun again. */
export function shutdownUnsettled(node: SimNode, tree: SupervisionTree): string[] {
  if (node.tuning.shutdown === null) return [];
  const found: string[] = [];
  const { value } = (tree.actorAt(MANAGER)?.getSnapshot() ?? {}) as { value?: { logind?: unknown; pods?: unknown } };
  if (value?.logind !== 'watching' || value.pods !== 'waiting') found.push(`the node shutdown manager is ${JSON.stringify(value)}`);
  if (!node.logind.held) found.push('no lock delays a shutdown of the machine');
  if (tree.registry.read(nodeShutdownView)?.value.active === true) found.push('the node believes that its machine is going down');
  for (const record of tree.registry.read(podsView)?.value.records.values() ?? []) {
    const { pod, source } = record;
    if (!isWanted(record) || source === 'api' || source === 'runtime') continue;
    if (isByShutdown(tree.registry.read(statusesView)?.value.get(pod.metadata.uid)?.status))
      found.push(`static pod ${pod.metadata.name} was ended for a shutdown, and has not begun again`);
  }
  return found;
}
