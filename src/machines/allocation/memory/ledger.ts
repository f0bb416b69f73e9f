/** Which memory of which NUMA nodes containers have alone: how it is allocated and released, as the reference does (KEP-1769). Pure. */
import { HUGE_PAGES_PREFIX } from '../../kube/names.ts';
import type { Container } from '../../kube/podTable.ts';
import { quantityToInteger } from '../../kube/quantity.ts';
import type { Pod } from '../../kube/types.ts';
import { hasPodLevel } from '../../pod/resources/podLevel.ts';
import { qosClass } from '../../pod/resources/qos.ts';
import { isRestartableInit } from '../../pod/runtime/shouldRestart.ts';
import type { Grant } from '../ledgerRules.ts';
import type { Affinities, Affinity } from '../messages.ts';
import { lastingOf } from '../podContainers.ts';
import { chooseNodes } from './choose.ts';
import { type Block, type Machine, type MemoryLedger, type MemoryPlace, moved, sameNodes, type Wanted } from './machine.ts';

/** What of a grant is counted. */
export interface MemoryCounts {
  /** Containers that were to have memory of their own, up to the one that was refused. */
  asked: number;
}

/** Memory and huge pages that the container is to have alone, in bytes. Empty: it shares. */
export function memoryOf(pod: Pod, container: Container): Wanted {
  if (hasPodLevel(pod) || qosClass(pod) !== 'Guaranteed') return new Map();
  const requests = Object.entries(container.resources?.requests ?? {});
  return new Map(
    requests
      .filter(([name]) => name === 'memory' || name.startsWith(HUGE_PAGES_PREFIX))
      .map(([name, amount]): [string, number] => [name, quantityToInteger(amount)])
      .sort(([a], [b]) => (a === 'memory' ? -1 : b === 'memory' ? 1 : a < b ? -1 : 1)),
  );
}

export function wantsMemory(pod: Pod): boolean {
  return !hasPodLevel(pod) && qosClass(pod) === 'Guaranteed';
}

/**
 * Memory for every container that is to have some; all or none. What init containers have is used again by those after them: it
 * is counted with the latter from then on. Init containers that are over, since a later one was created, get none any more.
 */
export function grantMemory(
  ledger: MemoryLedger,
  pod: Pod,
  o: { affinity?: Affinities; started: ReadonlySet<string> },
): Grant<MemoryLedger, MemoryCounts> {
  const counts = { asked: 0 };
  if (!wantsMemory(pod)) return { ok: true, ledger, counts };
  const over = endedInits(pod, o.started);
  let now = ledger;
  for (const { container } of lastingOf(pod)) {
    const { name } = container;
    if (over.has(name) || o.affinity?.has(name) === false || now.entries.get(pod.metadata.uid)?.has(name) === true) continue;
    counts.asked += 1;
    const got = grantOne(now, { pod, container, affinity: o.affinity?.get(name) ?? { nodes: null, preferred: false } });
    if (!got.ok) {
      const message = `Allocate failed due to [memorymanager] ${got.why}, which is unexpected`;
      return { ok: false, counts, refusal: { reason: 'UnexpectedAdmissionError', message } };
    }
    now = got.ledger;
  }
  return { ok: true, ledger: now, counts };
}

interface One {
  pod: Pod;
  container: Container;
  affinity: Affinity;
}

function grantOne(
  { machine, entries }: MemoryLedger,
  { pod, container, affinity }: One,
): { ok: true; ledger: MemoryLedger } | { ok: false; why: string } {
  const { uid } = pod.metadata;
  const wanted = memoryOf(pod, container);
  const again = (nodes: readonly number[], resource: string): number =>
    sumOf(reusableBlocks(entries.get(uid), pod, container.name), { nodes, resource });
  const choice = chooseNodes(machine, { wanted, again, affinity });
  if (!choice.ok) return choice;
  const { nodes } = choice;
  const blocks = [...wanted].map(([resource, size]): Block => ({ resource, size, nodes }));
  let now: Machine = machine;
  for (const block of blocks) now = moved(now, { ...block, size: Math.max(0, block.size - again(nodes, block.resource)) }, 1);
  const containers = new Map(entries.get(uid) ?? []);
  for (const block of blocks) takeAgain(containers, { pod, before: container.name, block });
  containers.set(container.name, blocks);
  return { ok: true, ledger: { machine: now, entries: new Map(entries).set(uid, containers) } };
}

/** Blocks of init containers before this one that end before the next one starts. */
function reusableBlocks(containers: ReadonlyMap<string, readonly Block[]> | undefined, pod: Pod, before: string): readonly Block[] {
  return endingBefore(pod, before).flatMap((name) => containers?.get(name) ?? []);
}
function endingBefore(pod: Pod, name: string): string[] {
  const inits = pod.spec.initContainers ?? [];
  const at = inits.findIndex((c) => c.name === name);
  return inits
    .slice(0, at === -1 ? inits.length : at)
    .filter((c) => !isRestartableInit(c))
    .map((c) => c.name);
}
function sumOf(blocks: readonly Block[], { nodes, resource }: Pick<Block, 'nodes' | 'resource'>): number {
  return blocks.reduce((sum, b) => (b.resource === resource && sameNodes(b.nodes, nodes) ? sum + b.size : sum), 0);
}

/** What a later container uses again is no longer counted with the init container. */
function takeAgain(containers: Map<string, readonly Block[]>, { pod, before, block }: { pod: Pod; before: string; block: Block }): void {
  let left = block.size;
  for (const name of endingBefore(pod, before)) {
    const blocks = containers.get(name);
    if (blocks === undefined || left === 0) continue;
    containers.set(
      name,
      blocks.map((b) => {
        if (b.resource !== block.resource || !sameNodes(b.nodes, block.nodes)) return b;
        const size = Math.max(0, b.size - left);
        left -= b.size - size;
        return { ...b, size };
      }),
    );
  }
}

/** From the hints' point of view: what this container, or the pod as a whole, may use again. */
export function reusableFor({ entries }: MemoryLedger, pod: Pod, container: string | null) {
  const blocks = container === null ? [] : reusableBlocks(entries.get(pod.metadata.uid), pod, container);
  return (nodes: readonly number[], resource: string): number => sumOf(blocks, { nodes, resource });
}

/** Init containers that have ended, since a later container was created. */
function endedInits(pod: Pod, started: ReadonlySet<string>): ReadonlySet<string> {
  const names = lastingOf(pod).map(({ container }) => container.name);
  const last = names.findLast((name) => started.has(name));
  return new Set(last === undefined ? [] : endingBefore(pod, last));
}

/** Memory of these pods is free again. The same ledger where they had none. */
export function releaseMemory(ledger: MemoryLedger, uids: Iterable<string>): MemoryLedger {
  let now = ledger;
  for (const uid of uids) now = without(now, uid, () => true);
  return now;
}

/** Containers that the definition no longer names, and init containers that have ended. */
export function releaseUnnamedMemory(ledger: MemoryLedger, pod: Pod, started: ReadonlySet<string>): MemoryLedger {
  const named = new Set(wantsMemory(pod) ? lastingOf(pod).map(({ container }) => container.name) : []);
  const over = endedInits(pod, started);
  return without(ledger, pod.metadata.uid, (name) => !named.has(name) || over.has(name));
}

function without(ledger: MemoryLedger, uid: string, goes: (container: string) => boolean): MemoryLedger {
  const containers = [...(ledger.entries.get(uid) ?? [])];
  const gone = containers.filter(([name]) => goes(name));
  if (gone.length === 0) return ledger;
  let { machine } = ledger;
  for (const block of gone.flatMap(([, blocks]) => blocks)) machine = moved(machine, block, -1);
  const left = containers.filter(([name]) => !goes(name));
  const entries = new Map(ledger.entries);
  if (left.length === 0) entries.delete(uid);
  else entries.set(uid, new Map(left));
  return { machine, entries };
}

export function firstMemory({ nodes }: MemoryPlace): MemoryLedger {
  return { machine: nodes, entries: new Map() };
}

/** Both came from the same steps, or hold nothing else. */
export function sameMemory(a: MemoryLedger, b: MemoryLedger): boolean {
  if (a === b) return true;
  if (a.entries.size !== b.entries.size) return false;
  const text = (containers: ReadonlyMap<string, readonly Block[]> | undefined) => JSON.stringify([...(containers ?? [])]);
  return [...a.entries].every(([uid, containers]) => {
    const other = b.entries.get(uid);
    return containers === other || (other !== undefined && text(containers) === text(other));
  });
}
