/** What a fault is aimed at on this node just now. Pure. */

import type { PodsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { workersAddr } from '@actorlet/kubelet/machines/pods/workers/messages.ts';
import { type ActorView, findActor } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import type { Matcher } from '@actorlet/shown/src/match.ts';
import { describeFault } from '../describe.ts';
import { impossibleHere } from '../live.ts';
import { injectorAddr } from '../messages.ts';
import type { ScenarioFault } from '../types.ts';
import type { FaultOf } from './activeFaults.ts';

export interface Surroundings {
  state: ActorView;
  pods: PodsView | undefined;
  match: Matcher;
  nodeName: string;
  httpSource: boolean;
  apiServer: boolean;
  looksAtMemory: boolean;
}

function isPattern(text: string): boolean {
  return /[*?]/.test(text);
}

function leaves(root: ActorView): ActorView[] {
  return root.children.flatMap((c) => (c.type === 'actor' ? [c] : leaves(c)));
}

/** Static pods carry the node's name; people leave it off. */
function podFits(f: ScenarioFault, pod: { name: string; namespace: string }, s: Surroundings): boolean {
  const suffix = `-${s.nodeName}`;
  const names = pod.name.endsWith(suffix) ? [pod.name, pod.name.slice(0, -suffix.length)] : [pod.name];
  return s.match.any(f.select.namespaces, pod.namespace) && names.some((n) => s.match.any(f.select.pods, n));
}

function asksForPods(f: ScenarioFault): boolean {
  return (f.select.pods?.length ?? 0) > 0 || (f.select.namespaces?.length ?? 0) > 0;
}

function podUids(f: ScenarioFault, s: Surroundings): string[] {
  return [...(s.pods?.records ?? [])].filter(([, r]) => podFits(f, r.pod.metadata, s)).map(([uid]) => uid);
}

/**
 * Paths of the actors that a kill is aimed at. A path written out may name anything below the root; a pattern stands for
 * single actors, never for a supervisor or for the injector itself.
 */
export function killTargets(f: FaultOf<'actor.kill'>, s: Surroundings): string[] {
  const wanted = f.select.actors ?? [];
  const exact = wanted.filter((p) => !isPattern(p) && p !== s.state.path && findActor(s.state, p) !== undefined);
  const patterns = wanted.filter(isPattern);
  const byPattern = leaves(s.state)
    .map((a) => a.path)
    .filter((path) => path !== injectorAddr.path && (wanted.length === 0 || (patterns.length > 0 && s.match.any(patterns, path))));
  const all = [...new Set([...exact, ...byPattern])];
  if (!asksForPods(f)) return all;
  const workers = new Set(podUids(f, s).map((uid) => `${workersAddr.path}/${uid}`));
  return all.filter((path) => workers.has(path));
}

export interface AimProblem {
  fault: ScenarioFault;
  /** It can hit nothing; else it may still find something later. */
  hopeless: boolean;
  message: string;
}

/** Faults that would hit nothing as things are. */
export function aimProblems(faults: readonly ScenarioFault[], s: Surroundings): AimProblem[] {
  return faults.flatMap((fault) => {
    const impossible = impossibleHere(fault, s);
    if (impossible !== null) return [{ fault, hopeless: true, message: impossible }];
    const message = missing(fault, s);
    if (message === null) return [];
    const now = fault.kind === 'actor.kill' && fault.atMs === 0 && fault.after === undefined;
    return [{ fault, hopeless: now, message }];
  });
}

function missing(fault: ScenarioFault, s: Surroundings): string | null {
  if (fault.kind === 'actor.kill') {
    return killTargets(fault, s).length > 0 ? null : `is aimed at nothing: ${describeFault(fault)} fits no actor of this node now`;
  }
  if (fault.kind === 'mailbox') {
    const lost = (fault.select.actors ?? []).filter((p) => !isPattern(p) && findActor(s.state, p) === undefined);
    if (lost.length > 0 && lost.length === fault.select.actors?.length)
      return `is aimed at nothing yet: there is no actor ${lost.join(', ')}`;
  }
  if (fault.kind === 'cri' && asksForPods(fault) && podUids(fault, s).length === 0) {
    return 'is aimed at nothing yet: no pod of this node fits its namespaces and pods';
  }
  return null;
}
