/** Reads the groups of the machine that /stats/summary tells of beside pods: the agent's, the runtime's, the system's, all pods'. */

import { SYSTEM_GROUPS, type SystemGroup } from '../../../../machines/edge/https/stats/summaryGroups.ts';
import { isoOfNanos } from '../../../../machines/figures/figure.ts';
import { type GroupMount, type GroupPlace, groupMounts, placeAt } from '../../../../machines/figures/groupPlaces.ts';
import { useFiles } from '../../../../machines/figures/groupStats.ts';
import type { Ports } from '../../../../ports/ports.ts';

/** Paths below each hierarchy; '' where there is none. Of the agent '': the group that its process is in. */
export type SystemGroupPaths = Readonly<Record<(typeof SYSTEM_GROUPS)[number], string>>;

const FILE_BYTES_MAX = 256 * 1024;

export function createSystemGroups(o: {
  fs: Pick<Ports['fs'], 'readFile' | 'stat'>;
  pressure: boolean;
  paths(): SystemGroupPaths;
}): () => Promise<SystemGroup[]> {
  let mounts: readonly GroupMount[] | undefined;
  const read = async (path: string): Promise<string | undefined> => {
    try {
      return new TextDecoder().decode(await o.fs.readFile(path, { bytesMax: FILE_BYTES_MAX }));
    } catch {
      // Not on this kernel, or there is no such group.
      return undefined;
    }
  };
  const place = async (name: SystemGroup['name'], path: string, all: readonly GroupMount[]): Promise<GroupPlace | undefined> => {
    if (path !== '') return placeAt({ path }, all);
    return name === 'kubelet' ? placeAt({ procCgroup: (await read('/proc/self/cgroup')) ?? '' }, all) : undefined;
  };
  const look = async (name: SystemGroup['name'], path: string, all: readonly GroupMount[]): Promise<SystemGroup[]> => {
    const at = await place(name, path, all);
    if (at === undefined) return [];
    const texts = new Map<string, string>();
    for (const [file, from] of useFiles(at)) {
      if (!o.pressure && file.endsWith('.pressure')) continue;
      const text = await read(from);
      if (text !== undefined) texts.set(file, text);
    }
    if (texts.size === 0) return [];
    const dir = at.dirs.memory ?? at.dirs.unified;
    const made = dir === undefined ? undefined : await o.fs.stat(dir).catch(() => undefined);
    return [{ name, startTime: made === undefined ? null : isoOfNanos(BigInt(Math.round(made.mtimeMs)) * 1_000_000n), texts }];
  };
  return async () => {
    mounts ??= groupMounts((await read('/proc/self/mountinfo')) ?? '');
    const all = mounts;
    const paths = o.paths();
    return (await Promise.all(SYSTEM_GROUPS.map((name) => look(name, paths[name], all)))).flat();
  };
}
