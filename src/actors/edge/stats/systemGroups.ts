/** Reads the groups of the machine that /stats/summary tells of beside pods: the agent's, the runtime's, the system's, all pods'. */

import { SYSTEM_GROUPS, type SystemGroup } from '../../../machines/edge/stats/summaryGroups.ts';
import { isoOfNanos } from '../../../machines/figures/figure.ts';
import { type GroupMount, type GroupPlace, placeAt } from '../../../machines/figures/groupPlaces.ts';
import type { Ports } from '../../../ports/ports.ts';
import { groupTexts } from './groupTexts.ts';

/** Paths below each hierarchy; '' where there is none. Of the agent '': the group that its process is in. */
export type SystemGroupPaths = Readonly<Record<(typeof SYSTEM_GROUPS)[number], string>>;

export function createSystemGroups(o: {
  fs: Pick<Ports['fs'], 'readFile' | 'stat'>;
  pressure: boolean;
  paths(): SystemGroupPaths;
}): () => Promise<SystemGroup[]> {
  const read = groupTexts(o.fs);
  const place = async (name: SystemGroup['name'], path: string, all: readonly GroupMount[]): Promise<GroupPlace | undefined> => {
    if (path !== '') return placeAt({ path }, all);
    return name === 'kubelet' ? placeAt({ procCgroup: (await read.text('/proc/self/cgroup')) ?? '' }, all) : undefined;
  };
  const look = async (name: SystemGroup['name'], path: string, all: readonly GroupMount[]): Promise<SystemGroup[]> => {
    const at = await place(name, path, all);
    if (at === undefined) return [];
    const texts = await read.of(at, (file) => o.pressure || !file.endsWith('.pressure'));
    if (texts.size === 0) return [];
    const dir = at.dirs.memory ?? at.dirs.unified;
    const made = dir === undefined ? undefined : await o.fs.stat(dir).catch(() => undefined);
    return [{ name, startTime: made === undefined ? null : isoOfNanos(BigInt(Math.round(made.mtimeMs)) * 1_000_000n), texts }];
  };
  return async () => {
    const all = await read.mounts();
    const paths = o.paths();
    return (await Promise.all(SYSTEM_GROUPS.map((name) => look(name, paths[name], all)))).flat();
  };
}
