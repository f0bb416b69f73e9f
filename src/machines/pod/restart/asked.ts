/**
 * A restart of a pod that a person asks for: which of its containers it is about, and why it is refused. Containers end as they
 * do at the end of their pod, with preStop hooks and grace, and start again in the sandbox that there is. Pure.
 */
import type { Container } from '../../kube/podTable.ts';
import type { Pod } from '../../kube/types.ts';
import { firstStatus, type ReplacedInstances } from '../runtime/runtimeStatus.ts';
import type { PodRuntimeStatus } from '../runtime/seen.ts';
import { isRestartableInit, restartPolicyOf, shouldRestart } from '../runtime/shouldRestart.ts';

/** How a person asked. It stands in the event `Killing`. */
export type AskedOver = 'the admin socket' | 'the inspection page';

/** What becomes of one container. `ends`: it runs, and ends first. `starts`: it waited, and waits no longer. `isStarting`: already. */
export interface RestartedContainer {
  name: string;
  /** The instance that another one follows; '': there was none. */
  id: string;
  how: 'ends' | 'starts' | 'isStarting';
}
interface LeftContainer {
  name: string;
  why: string;
}
/** `later`: the same may be granted in a moment. */
export type RestartAnswer =
  | { ok: true; containers: readonly RestartedContainer[]; left: readonly LeftContainer[] }
  | { ok: false; later: boolean; why: string };

/** Of one pod, what its worker answered. */
export type RestartedPod = { uid: string; namespace: string; name: string } & RestartAnswer;

/** Ids of instances that another is to follow because a person asked, each with how. An instance goes once its successor is there. */
export type AskedRestarts = ReadonlyMap<string, AskedOver>;

const NEVER = 'its restart policy is Never, so it would end and not start again';
const PASSED = 'an init container that has done its part is not run again';

/** Containers that may be meant, by the definition alone. `container` '': all of the pod. */
function meant(pod: Pod, container: string): { containers: readonly Container[]; left: readonly LeftContainer[] } | { why: string } {
  const { containers: regular, initContainers: inits = [], ephemeralContainers: ephemeral = [] } = pod.spec;
  const all = [...inits, ...regular];
  if (container !== '' && ephemeral.some((c) => c.name === container)) return { why: 'ephemeral containers never start again' };
  const chosen = container === '' ? all : all.filter((c) => c.name === container);
  if (chosen.length === 0) return { why: `it has no container ${container}, only ${all.map((c) => c.name).join(', ')}` };
  const isNever = (c: Container): boolean => !isSidecar(pod, c) && restartPolicyOf(c, pod) === 'Never';
  return {
    containers: chosen.filter((c) => !isNever(c)),
    left: chosen.filter((c) => isNever(c)).map(({ name }) => ({ name, why: NEVER })),
  };
}
function isSidecar({ spec: { initContainers = [] } }: Pod, container: Container): boolean {
  return initContainers.includes(container) && isRestartableInit(container);
}
function isInit({ spec: { initContainers = [] } }: Pod, container: Container): boolean {
  return initContainers.includes(container) && !isRestartableInit(container);
}

/** Why nothing of this pod can be restarted, by its definition; null: something may be. */
export function restartRefusal(pod: Pod, container: string): string | null {
  if (pod.metadata.deletionTimestamp) return 'it is being deleted: its containers end, and do not start again';
  const found = meant(pod, container);
  if ('why' in found) return found.why;
  return found.containers.some((c) => container !== '' || !isInit(pod, c)) ? null : saidLeft(found.left);
}
function saidLeft(left: readonly LeftContainer[]): string {
  const whys = Map.groupBy(left, ({ why }) => why);
  return [...whys].map(([why, of]) => `container ${of.map(({ name }) => name).join(', ')}: ${why}`).join('; ');
}

/** Containers that a restart may be about, by the definition alone, and those that it leaves. `container` '': of all of the pod. */
export function restartPreview(pod: Pod, container: string): { names: readonly string[]; left: readonly LeftContainer[] } {
  const found = meant(pod, container);
  if ('why' in found) return { names: [], left: [] };
  return { names: found.containers.filter((c) => container !== '' || !isInit(pod, c)).map(({ name }) => name), left: found.left };
}

/** What becomes of each container, by what the runtime was last seen to hold. */
export function restartOf(o: { pod: Pod; status: PodRuntimeStatus; container: string }): RestartAnswer {
  const { pod, status, container } = o;
  const found = meant(pod, container);
  if ('why' in found) return { ok: false, later: false, why: found.why };
  const containers: RestartedContainer[] = [];
  const left: LeftContainer[] = [...found.left];
  for (const one of found.containers) {
    const what = fateOf(one, pod, status);
    if (typeof what === 'string') left.push({ name: one.name, why: what });
    else containers.push(what);
  }
  // An init container that did its part is left without a word, unless it was named.
  const inits = new Set((pod.spec.initContainers ?? []).filter((c) => isInit(pod, c)).map((c) => c.name));
  const told = container === '' ? left.filter(({ name }) => !inits.has(name)) : left;
  if (containers.length > 0) return { ok: true, containers, left: told };
  return { ok: false, later: false, why: saidLeft(left) };
}

/** A text: why it is left as it is. */
function fateOf(container: Container, pod: Pod, status: PodRuntimeStatus): RestartedContainer | string {
  const { name } = container;
  const newest = firstStatus(status, name);
  if (newest === undefined || newest.state === 'created') {
    if (isInit(pod, container) && pod.spec.containers.some((c) => firstStatus(status, c.name) !== undefined)) return PASSED;
    return { name, id: '', how: 'isStarting' };
  }
  const { id } = newest;
  if (newest.state === 'running') return { name, id, how: 'ends' };
  // It may run: it is stopped before the next starts.
  if (newest.state === 'unknown') return { name, id, how: 'isStarting' };
  if (isInit(pod, container) && newest.exitCode === 0) return PASSED;
  if (isSidecar(pod, container) || shouldRestart({ container, pod, newest })) return { name, id, how: 'starts' };
  return `it has ended (exit code ${newest.exitCode}), and its restart policy starts it no more`;
}

/** Ids that a restart is about, with those before it. */
export function withAsked(asked: AskedRestarts, containers: readonly RestartedContainer[], over: AskedOver): AskedRestarts {
  const added = containers.filter((c) => c.how !== 'isStarting' && !asked.has(c.id)).map(({ id }) => [id, over] as const);
  return new Map([...asked, ...added]);
}

/** Restarts that a person asked for, as the worker before this one reported them. */
export function askedBefore(told: Readonly<Record<string, AskedOver>> | undefined): AskedRestarts {
  return new Map(Object.entries(told ?? {}));
}

/** Those that still have no successor. */
export function stillAsked(asked: AskedRestarts, status: PodRuntimeStatus): AskedRestarts {
  if (asked.size === 0) return asked;
  const newest = new Map(status.containers.toReversed().map(({ name, id }) => [name, id]));
  const ids = new Set(newest.values());
  return new Map([...asked].filter(([id]) => ids.has(id)));
}

/** An asked restart is no crash: no exit before it makes the next start wait, and another follows however it ended. */
export function replacedAsAsked(replaced: ReplacedInstances, asked: AskedRestarts, max: number): ReplacedInstances {
  const fresh = [...asked.keys()].filter((id) => replaced.get(id) !== null);
  if (fresh.length === 0) return replaced;
  const kept = [...replaced].filter(([id]) => !asked.has(id));
  return new Map([...kept, ...[...asked.keys()].map((id) => [id, null] as const)].slice(-Math.max(max, asked.size)));
}

/** With a mark on the instances that it is about. */
export function markAsked(status: PodRuntimeStatus, asked: AskedRestarts): PodRuntimeStatus {
  if (!status.containers.some((c) => asked.has(c.id))) return status;
  return { ...status, containers: status.containers.map((c) => (asked.has(c.id) ? { ...c, asked: true } : c)) };
}

export function askedMessage(name: string, over: AskedOver): string {
  return `Container ${name} will be restarted: a person asked for it over ${over}`;
}
