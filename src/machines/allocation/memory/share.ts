/** What containers get of the memory, and what the pod resources API shows of them. Pure. */
import type { Container } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { type Built, built, refused } from '../../result.ts';
import { formatCpuSet } from '../cpuSet.ts';
import type { ContainerMemory, ContainerShare, Held } from '../messages.ts';
import { memoryOf } from './ledger.ts';
import type { Block, MemoryLedger } from './machine.ts';

export function memoryShare({ entries }: MemoryLedger, pod: Pod, container: Container): Built<Pick<ContainerShare, 'mems'>> {
  const blocks = entries.get(pod.metadata.uid)?.get(container.name);
  if (blocks === undefined)
    return memoryOf(pod, container).size === 0
      ? built({})
      : refused(`memory of its own is not allocated to container ${container.name} yet`);
  const nodes = [...new Set(blocks.flatMap((block) => block.nodes))].sort((a, b) => a - b);
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
