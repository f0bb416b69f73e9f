/** Whether OCI images can run here: for `npm start`, which says so, and for `actorlet --check`. */
import { type Cgroups, dropParent, findCgroups } from './cgroups.ts';
import { tryPlace } from './place.ts';
import { findPrograms, lackText, type Search } from './programs.ts';

export interface Verdict extends Search {
  /** Null where they can run; else why not and what to do. */
  problem: string | null;
  /** Whether limits of containers can be applied. */
  cgroups: Cgroups;
}

export async function probeOci(path: string): Promise<Verdict> {
  const search = {
    ...(await findPrograms(path)),
    cgroups: findCgroups(`actorlet-check-${process.pid}`, { root: process.geteuid?.() === 0 }),
  };
  if (search.cgroups.parent !== null) dropParent(search.cgroups.parent);
  if (search.programs === null) return { ...search, problem: lackText(search.missing) };
  try {
    await tryPlace(search.programs);
    return { ...search, problem: null };
  } catch (error) {
    return { ...search, problem: (error as Error).message };
  }
}

/** One line. */
export async function probe(path: string, say: (line: string) => void): Promise<boolean> {
  const { problem, found, noNetwork } = await probeOci(path);
  if (problem !== null) say(problem);
  else
    say(
      `${found.map((p) => p.name).join(', ')}${noNetwork === null ? '' : `; pods have no way out of their network: ${noNetwork.what}. ${noNetwork.todo}`}`,
    );
  return problem === null;
}
