/** The processes of a runtime that only pretends to have some: of each sandbox that is up one, of each running container another. */
import type { HollowDump } from '@actorlet/runtimes/src/hollow/index.ts';

/** The first pid; those of init and the daemon are below it. */
const FIRST_PID = 1_000;

export interface SimProcess {
  pid: number;
  podUid: string;
  /** '' for the sandbox's own. */
  containerId: string;
}

/** Numbers are theirs for as long as they live: an id has eight digits at its end that count. */
function pidOf(id: string): number {
  return FIRST_PID + Number.parseInt(id.slice(-8), 16);
}

/** In that cgroup, where the pod's sandbox was asked to be. */
export function processesIn({ sandboxes, containers }: Pick<HollowDump, 'sandboxes' | 'containers'>, group: string): SimProcess[] {
  return sandboxes
    .filter((s) => s.cgroupParent === group)
    .flatMap((s) => [
      ...(s.ready ? [{ pid: pidOf(s.id), podUid: s.uid, containerId: '' }] : []),
      ...containers
        .filter((c) => c.sandboxId === s.id && c.state === 'CONTAINER_RUNNING')
        .map((c) => ({ pid: pidOf(c.id), podUid: s.uid, containerId: c.id })),
    ]);
}
