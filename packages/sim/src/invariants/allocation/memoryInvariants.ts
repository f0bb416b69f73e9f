/** Invariants about the memory that a node allocates from NUMA nodes. */
import type { SupervisionTree } from '@actorlet/kubelet/actors/supervision/tree.ts';
import { formatCpuSet } from '@actorlet/kubelet/machines/allocation/cpuSet.ts';
import { decodeMemoryState, MEMORY_STATE_FILE } from '@actorlet/kubelet/machines/allocation/memory/file.ts';
import { wantsMemory } from '@actorlet/kubelet/machines/allocation/memory/ledger.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import type { HollowDump } from '@actorlet/runtimes/src/hollow/index.ts';
import { numaNodesOf } from '@actorlet/world/src/host/cpus.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';

const FILE = `${ROOT_DIR}/${MEMORY_STATE_FILE}`;

/**
 * In fair weather the state file and the runtime agree: every container of a Guaranteed pod is on the NUMA nodes of its memory, and
 * nothing is held by a pod that is over.
 */
export function memoryUnsettled(node: SimNode, o: { tree: SupervisionTree; dump: HollowDump }): string[] {
  const { cpus } = node.tuning;
  if (cpus?.numa?.memory !== true) return [];
  const read = decodeMemoryState(node.disk.textOf(FILE) ?? '');
  if (!read.ok) return [`${FILE} does not say which memory is allocated: ${read.why}`];
  const { machine, entries } = read.ledger;
  const found: string[] = [];
  const records = o.tree.registry.read(podsView)?.value.records;
  for (const uid of entries.keys()) {
    const phase = records?.get(uid)?.worker?.phase;
    if (phase === undefined || phase === 'terminated' || phase === 'finished')
      found.push(`memory is still held for pod ${uid}, whose worker is ${phase ?? 'gone'}`);
  }
  if (machine.size !== numaNodesOf(cpus).length) found.push(`${FILE} has ${machine.size} NUMA nodes`);
  for (const c of o.dump.containers) {
    const pod = records?.get(c.podUid)?.pod;
    if (c.state !== 'CONTAINER_RUNNING' || pod === undefined || !wantsMemory(pod)) continue;
    const nodes = (entries.get(c.podUid)?.get(c.name) ?? []).flatMap((block) => block.nodes);
    const mems = formatCpuSet([...new Set(nodes)].sort((a, b) => a - b));
    if (mems !== '' && c.resources.cpusetMems !== mems)
      found.push(`${c.name} of pod ${pod.metadata.name} has memory of NUMA nodes ${mems}, and runs on ${c.resources.cpusetMems ?? 'all'}`);
  }
  return found;
}
