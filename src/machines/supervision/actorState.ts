import { nearestName } from '../text/nearest.ts';

export interface ActorView {
  path: string;
  type: 'actor' | 'supervisor' | 'dynamic';
  /** Supervision state: starting, running, asleep, restarting, stopping, stopped, failed, parked, quarantined. */
  lifecycle: string;
  /** The statechart's state value, e.g. `syncing.pulling`; '' for actors that are no machine. */
  state: string;
  /** From `meta.reason` of the innermost active state, else `ctx.note`. */
  reason: string;
  message: string;
  /** Milliseconds in the present state (statechart) or lifecycle. */
  ageMs: number;
  /** Milliseconds that it has slept, where it sleeps: `state` and what is said of it are those that it goes on with. */
  asleepMs?: number;
  incarnation: number;
  restarts: number;
  mailbox?: { depth: number; depthMax: number; oldestAgeMs: number; coalesced: number; dropped: number; suspended: boolean };
  lastError?: string;
  children: readonly ActorView[];
}

/** It runs, or would at once if anything came: what is shown of it holds. */
export function isUp({ lifecycle }: Pick<ActorView, 'lifecycle'>): boolean {
  return lifecycle === 'running' || lifecycle === 'asleep';
}

export function findActor(root: ActorView, path: string): ActorView | undefined {
  if (root.path === path) return root;
  for (const child of root.children) {
    if (child.path === path) return child;
    if (path.startsWith(`${child.path}/`)) {
      const found = findActor(child, path);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Every path of the tree, parents first. */
export function allPaths(root: ActorView): string[] {
  return [root.path, ...root.children.flatMap(allPaths)];
}

/**
 * Actors that a person may mean by a path that is no actor's: the last part is the start of a UID, or a pod's name, as
 * `actorctl tree` shows it.
 */
export function actorsMeant(paths: readonly string[], path: string, uidOf: (pod: string) => string | null): string[] {
  const slash = path.lastIndexOf('/');
  const last = path.slice(slash + 1);
  const above = path.slice(0, slash + 1);
  const uid = uidOf(last);
  const ofPod = paths.filter((p) => p === `${above}${uid}`);
  if (uid !== null && ofPod.length > 0) return ofPod;
  return last.length < UID_PREFIX_CHARS_MIN ? [] : paths.filter((p) => p.startsWith(path) && p.lastIndexOf('/') === slash);
}
/** The start of a UID that is shorter is not taken for one. */
export const UID_PREFIX_CHARS_MIN = 6;

/** `no actor X on this node`, with the path that was probably meant. */
export function noSuchActor(root: ActorView, path: string): string {
  const paths = allPaths(root);
  const own = path.startsWith(`${root.path}/`) ? path.slice(root.path.length + 1) : path;
  const near = path.length > PATH_CHARS_MAX ? undefined : (paths.find((p) => p.endsWith(`/${own}`)) ?? nearestName(path, paths));
  return `no actor ${path.slice(0, PATH_CHARS_MAX)} on this node${near === undefined ? '; actorctl tree lists them' : ` (did you mean ${near}?)`}.`;
}
/** No path of an actor is longer; for more no near one is looked for. */
const PATH_CHARS_MAX = 256;
