/** From which NUMA nodes containers could have their memory. Pure. */
import type { Pod } from '../../kube/types.ts';
import type { ResourceHints } from '../messages.ts';
import { lastingOf, podTotal } from '../podContainers.ts';
import { memoryHints } from './choose.ts';
import { memoryOf, reusableFor, wantsMemory } from './ledger.ts';
import type { Block, MemoryLedger, Wanted } from './machine.ts';

/** `container` null: of the pod as a whole. None: it shares, or no node has enough, which the allocation then says. */
export function memoryHintsOf(ledger: MemoryLedger, pod: Pod, container: string | null): ResourceHints[] {
  if (!wantsMemory(pod)) return [];
  const wanted = container === null ? podMemory(pod) : containerMemory(pod, container);
  const held = ledger.entries.get(pod.metadata.uid);
  const own =
    container === null
      ? lastingOf(pod)
          .map((c) => held?.get(c.container.name))
          .find((blocks) => blocks !== undefined)
      : held?.get(container);
  if (own !== undefined) return heldHints(own, wanted);
  const hints = memoryHints(ledger.machine, { wanted, again: reusableFor(ledger, pod, container) });
  return hints.length === 0 ? [] : [...wanted.keys()].map((resource) => ({ resource, hints }));
}

function containerMemory(pod: Pod, name: string): Wanted {
  const found = lastingOf(pod).find(({ container }) => container.name === name);
  return found === undefined ? new Map() : memoryOf(pod, found.container);
}

/** Resources that its app containers have. */
function podMemory(pod: Pod): Wanted {
  const all = lastingOf(pod).map((c) => ({ ...c, memory: memoryOf(pod, c.container) }));
  const resources = new Set(all.flatMap(({ init, memory }) => (init ? [] : [...memory.keys()])));
  return new Map([...resources].map((resource) => [resource, podTotal(all.map((c) => ({ ...c, n: c.memory.get(resource) ?? 0 })))]));
}

/** It has them from there. What is not as it is asked for now has no preference. */
function heldHints(blocks: readonly Block[], wanted: Wanted): ResourceHints[] {
  if (blocks.length !== wanted.size || blocks.some((b) => wanted.get(b.resource) !== b.size)) return [];
  return blocks.map(({ resource, nodes }) => ({ resource, hints: [{ nodes, preferred: true }] }));
}
