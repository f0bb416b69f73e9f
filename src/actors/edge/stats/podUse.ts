/** Reads what the groups of pods used: with what ended containers and the sandbox used, which no running container tells. */
import { placeAt } from '../../../machines/figures/groupPlaces.ts';
import { type GroupUse, groupUse } from '../../../machines/figures/groupStats.ts';
import type { Pod } from '../../../machines/kube/types.ts';
import type { Ports } from '../../../ports/ports.ts';
import { inTurns } from './groupReader.ts';
import { groupTexts } from './groupTexts.ts';

/** Pressure and swap have other readers. */
const FILES: ReadonlySet<string> = new Set([
  ...['cpu.stat', 'memory.current', 'memory.stat', 'memory.max'],
  ...['cpuacct.usage', 'memory.usage_in_bytes', 'memory.limit_in_bytes'],
]);

/** By UID. A pod whose group is not there is left out. `path`: undefined where pods have none. */
export function createPodUse(o: {
  fs: Pick<Ports['fs'], 'readFile'>;
  pods(): Iterable<Pod>;
  path(pod: Pod): string | undefined;
}): () => Promise<ReadonlyMap<string, GroupUse>> {
  const read = groupTexts(o.fs);
  return async () => {
    const mounts = await read.mounts();
    const found = new Map<string, GroupUse>();
    await inTurns([...o.pods()], async (pod) => {
      const path = o.path(pod);
      if (path === undefined) return;
      const use = groupUse(await read.of(placeAt({ path }, mounts), (file) => FILES.has(file)));
      if (use.cpuNs !== undefined || use.memory !== undefined) found.set(pod.metadata.uid, use);
    });
    return found;
  };
}
