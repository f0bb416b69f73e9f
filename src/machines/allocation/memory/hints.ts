/** From which NUMA nodes containers could have their memory. Pure. */
import type { Pod } from '../../kube/types.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';
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
  if (container === null && held !== undefined && lastingOf(pod).some((c) => held.has(c.container.name))) return podHeldHints(pod, held);
  const own = container === null ? undefined : held?.get(container);
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

/**
 * It has them from where all of its containers have theirs, whose shares come to what the pod asks for
 * (kubernetes/kubernetes#141070). What init containers held, others may have now.
 */
function podHeldHints(pod: Pod, held: ReadonlyMap<string, readonly Block[]>): ResourceHints[] {
  const nodes = new Map<string, Set<number>>();
  for (const { container, init } of lastingOf(pod)) {
    if (init && !isRestartableInit(container)) continue;
    const wanted = memoryOf(pod, container);
    const blocks = held.get(container.name) ?? [];
    if (blocks.length !== wanted.size || blocks.some((b) => wanted.get(b.resource) !== b.size)) return [];
    for (const { resource, nodes: of } of blocks) nodes.set(resource, new Set([...(nodes.get(resource) ?? []), ...of]));
  }
  return [...nodes].map(([resource, of]) => ({ resource, hints: [{ nodes: [...of].sort((a, b) => a - b), preferred: true }] }));
}
