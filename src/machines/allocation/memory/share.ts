/** What containers get of the memory, and what the pod resources API shows of them. Pure. */
import type { Container } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';
import { type Built, built, refused } from '../../result.ts';
import { formatCpuSet } from '../cpuSet.ts';
import type { ContainerMemory, ContainerShare, Held } from '../messages.ts';
import { memoryOf } from './ledger.ts';
import type { Block, MemoryLedger } from './machine.ts';

/** An init container that runs again, in a new sandbox, has nothing any more: it shares the NUMA nodes of its pod. */
export function memoryShare({ entries }: MemoryLedger, pod: Pod, container: Container): Built<Pick<ContainerShare, 'mems'>> {
  const held = entries.get(pod.metadata.uid);
  const runsAgain = held !== undefined && pod.spec.initContainers?.some((c) => c.name === container.name && !isRestartableInit(c));
  const blocks = held?.get(container.name) ?? (runsAgain === true ? [...held.values()].flat() : undefined);
  if (blocks === undefined)
    return memoryOf(pod, container).size === 0
      ? built({})
      : refused(`memory of its own is not allocated to container ${container.name} yet`);
  const nodes = [...new Set(blocks.flatMap((block) => block.nodes))].sort((x, y) => x - y);
  return built(nodes.length === 0 ? {} : { mems: formatCpuSet(nodes) });
}

/** Under policy None there is no view, and the API shows no memory, as in the reference. */
export function heldMemory({ machine, entries }: MemoryLedger): Held {
  return {
    of: (uid, container) => ({ memory: (entries.get(uid)?.get(container) ?? []).map(shown) }),
    allocatable: () => ({
      memory: [...machine].flatMap(([id, { tables }]) =>
        [...tables].flatMap(([resource, { allocatable }]) =>
          allocatable === 0 ? [] : [shown({ resource, size: allocatable, nodes: [id] })],
        ),
      ),
    }),
  };
}

function shown({ resource, size, nodes }: Block): ContainerMemory {
  return { memoryType: resource, size, topology: { nodes: nodes.map((ID) => ({ ID })) } };
}
