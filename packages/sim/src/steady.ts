import type { ActorState } from '@actorlet/kubelet/actors/supervision/types.ts';
import { isUp } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { Operator } from './nemesis/workload/operator.ts';

/** Running containers of steady pods, as `ID NAME`. */
export function steadyContainers(n: SimNode, op: Operator): string[] {
  const { sandboxes, containers } = n.runtime.hollow.dump();
  const names = new Map(sandboxes.map((b) => [b.id, manifestName(b.name, n)]));
  return containers
    .filter((c) => c.state === 'CONTAINER_RUNNING' && op.wanted.get(names.get(c.sandboxId) ?? '')?.pod.fate === 'steady')
    .map((c) => `${c.id} ${c.name}`)
    .sort();
}

/** Regular containers of steady pods whose workers are settled, on a node that hears of ends: none where it does not. */
export function settledContainers(n: SimNode, op: Operator): { id: string; name: string; podUid: string }[] {
  // A runtime without events refuses the stream at once; until then it seems open.
  if (!n.tuning.hints || !streamIsOpen(n.daemon?.tree.actorAt('node/runtime/pleg')?.getSnapshot())) return [];
  const dump = n.runtime.hollow.dump();
  const ready = new Map(dump.sandboxes.filter((b) => b.ready).map((b) => [b.id, manifestName(b.name, n)]));
  return dump.containers.filter((c) => {
    const wanted = op.wanted.get(ready.get(c.sandboxId) ?? '');
    if (c.state !== 'CONTAINER_RUNNING' || wanted?.pod.fate !== 'steady' || !c.name.startsWith('c')) return false;
    // A worker that is looking just now looks again as part of the same look, which no transition would show.
    return n.daemon?.tree.stateAt(`node/pods/workers/${c.podUid}`)?.state === 'syncing.settled';
  });
}

function streamIsOpen(snapshot: unknown): boolean {
  if (snapshot === null || typeof snapshot !== 'object' || !('value' in snapshot)) return false;
  const { value } = snapshot;
  return value !== null && typeof value === 'object' && 'stream' in value && value.stream === 'open';
}

/**
 * Actors of a node; not counted is the watch of a single manifest, which begins with the file and outlives it, and what a
 * certificate or the server that uses it does just now.
 */
export function lastingActors(n: SimNode): number {
  const busy = [...BUSY].filter(([path, states]) => states.test(stateAt(n, path))).length;
  const { value } = (n.daemon?.tree.actorAt('node/pods/sources/file')?.getSnapshot() ?? {}) as { value?: { watch?: unknown } };
  const watches = n.tuning.oneManifest && value?.watch !== 'broken';
  const passing = PASSING.reduce((sum, path) => sum + below(n.daemon?.tree.actorAt(path)?.getSnapshot()), 0);
  return (n.daemon?.tree.aliveActors() ?? 0) - (watches ? 1 : 0) - busy - passing;
}
/** Children that have ended and are kept all the same, as xstate does until their parent stops them or leaves the state that made them. */
export function keptChildren(n: SimNode): string[] {
  const { tree } = n.daemon ?? {};
  return pathsOf(tree?.state()).flatMap((path) => keptBelow(path, tree?.actorAt(path)?.getSnapshot()));
}
function keptBelow(path: string, snapshot: unknown): string[] {
  const { children = {} } = (snapshot ?? {}) as { children?: Record<string, { getSnapshot(): { status: string } } | undefined> };
  return Object.entries(children).flatMap(([id, child]) => {
    const below = child?.getSnapshot();
    if (below === undefined) return [];
    return below.status === 'active' ? keptBelow(`${path}/${id}`, below) : [`${path}/${id}`];
  });
}

const PASSING = [
  // Their statecharts come and go, with plugins and with pods that are asked about.
  ...['node/allocation/devices', 'node/allocation/coordinator', 'node/allocation/claims'],
  // Sweepers have one act while they rest or sweep, and none while they gather.
  ...['node/allocation/cgroupReaper', 'node/reclaim/containerGc', 'node/reclaim/housekeeping', 'node/reclaim/logRotation'],
];
/** With the acts of all of them. */
function below(snapshot: unknown): number {
  const { children = {} } = (snapshot ?? {}) as { children?: Record<string, { getSnapshot(): unknown } | undefined> };
  return Object.values(children).reduce((sum, child) => sum + (child === undefined ? 0 : 1 + below(child.getSnapshot())), 0);
}
/** Each of these states has one act of its own under way. */
const CERTIFICATE_BUSY = /loading|storing|keying|requesting|looking|watching/;
const BUSY: ReadonlyMap<string, RegExp> = new Map([
  ['node/allocation/cgroups', /preparing|enforcing|renewing/],
  ['node/allocation/cpus', /loading|saving|confining/],
  ['node/api/clientCertificate', CERTIFICATE_BUSY],
  ['node/api/servingCertificate', CERTIFICATE_BUSY],
  ['node/edge/https', /opening|refreshing/],
  ['node/api/csiNode', /converging/],
  ['node/services/plugins', /looking/],
]);
function stateAt(n: SimNode, path: string): string {
  const { value } = (n.daemon?.tree.actorAt(path)?.getSnapshot() ?? {}) as { value?: unknown };
  return JSON.stringify(value) ?? '';
}

/** Every actor runs or sleeps. */
export function isWhole(state: ActorState | undefined): boolean {
  return state !== undefined && isUp(state) && state.children.every(isWhole);
}

/** Paths of everything that runs or sleeps, but the root. */
export function pathsOf(state: ActorState | undefined): string[] {
  if (state === undefined) return [];
  const below = state.children.flatMap(pathsOf);
  return state.path === 'node' || !isUp(state) ? below : [state.path, ...below];
}

/** A pod's name as in its manifest: the node adds its own name to those of static pods. */
export function manifestName(podName: string, node: SimNode): string {
  const suffix = `-${node.name}`;
  return podName.endsWith(suffix) ? podName.slice(0, -suffix.length) : podName;
}
