/** Containers: each has a child. What may start is decided here, once for each look. */

import type { ContainerStatus, PodStatus } from '../../../kube/types.ts';
import { hashNameAndImage } from '../../../pod/runtime/containerHash.ts';
import { exitForBackoff, firstStatus, nextRestartCount } from '../../../pod/runtime/runtimeStatus.ts';
import type { PodActions, PodRuntimeStatus } from '../../../pod/runtime/seen.ts';
import { toStart } from '../actions/podActions.ts';
import { BACKOFF_RESET_MS } from '../container/crashBackoff.ts';
import type { ContainerKind, StartJob } from '../container/startJob.ts';
import { childId, containersOf, facts, planActions, podIPsOf, type Starts, specOf, type WorkerContext } from '../context.ts';
import { declared, type Step } from './declared.ts';
import { RESIZER } from './resize.ts';

/** A container in one of these is not on its way: nobody waits for its hook. */
const RESTS_FAILED: ReadonlySet<string> = new Set(['backingOff', 'failed']);
/**
 * Containers of one pod that are on their way at once; the reference starts one after the other. Each step of each takes a turn of
 * the event loop, so a pod beside one with 400 containers would wait for all of them.
 */
const STARTS_AT_ONCE = 8;
const ON_ITS_WAY: ReadonlySet<string> = new Set(['pulling', 'creating', 'starting']);
const rests = (state: string | undefined): boolean => RESTS_FAILED.has(state ?? '');
const isOnItsWay = (state: string | undefined): boolean => ON_ITS_WAY.has(state ?? '');

function handlerOf(status: PodRuntimeStatus, sandboxId: string): { handler?: string } {
  const handler = status.sandboxes.find((s) => s.id === sandboxId)?.handler;
  return handler === undefined ? {} : { handler };
}

function shownOf(status: PodStatus, name: string): ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].find((s) => s.name === name);
}

/** Which of the containers that the plan starts begin now; the others wait for a place, or for a postStart hook before them. */
function whoStarts({ pod, starts, decision }: WorkerContext): { now: ReadonlySet<string>; heldBack: Starts['heldBack'] } {
  const now = new Set<string>();
  const plan = decision?.plan;
  if (plan?.kind !== 'steady' && plan?.kind !== 'killContainers') return { now, heldBack: 'no' };
  const wanted = toStart(plan.actions);
  const states = facts().children;
  let heldBack: Starts['heldBack'] = 'no';
  let hookBefore = false;
  let onTheirWay = [...states.values()].filter(isOnItsWay).length;
  for (const [name, kind] of containersOf(pod)) {
    if (!starts.children.has(name)) continue;
    const held = kind === 'regular' && hookBefore;
    if (kind === 'regular' && starts.hookAhead.has(name)) hookBefore = true;
    if (!wanted.has(name)) continue;
    const state = states.get(name);
    if (plan.kind === 'killContainers') {
      // Nothing begins while others are stopped. What is being pulled will be what is defined now.
      if (state === 'pulling') now.add(name);
      continue;
    }
    if (held) {
      heldBack = 'hook';
      continue;
    }
    // A container that rests after a failure takes no place: it begins in its own time.
    const isNew = !isOnItsWay(state) && !rests(state);
    if (isNew && onTheirWay >= STARTS_AT_ONCE) {
      if (heldBack === 'no') heldBack = 'place';
      continue;
    }
    if (isNew) onTheirWay += 1;
    // The ones after it start when its hook has ended, or when it turned out that it does not start now (trap 46).
    if (kind === 'regular' && specOf(pod, name)?.lifecycle?.postStart !== undefined && !rests(state)) hookBefore = true;
    now.add(name);
  }
  return { now, heldBack };
}

/** All that the start of one container needs. */
function jobOf(context: WorkerContext, seen: { status: PodRuntimeStatus; apiStatus: PodStatus; actions: PodActions }, of: Named): StartJob {
  const { pod, act, look, restart } = context;
  const { status, apiStatus, actions } = seen;
  const { name, kind, container } = of;
  const timesAsked = restart.times.get(name);
  return {
    pod,
    container,
    kind,
    sandboxId: actions.sandboxId,
    sandboxAttempt: actions.attempt,
    ...handlerOf(status, actions.sandboxId),
    podIPs: pod.spec.hostNetwork === true ? podIPsOf(context) : status.ips,
    newest: firstStatus(status, name) ?? null,
    newestExited: exitForBackoff(status, name, { replaced: act.replaced, healthyMs: BACKOFF_RESET_MS }),
    unstarted: status.containers.filter((c) => c.name === name && c.state === 'created').map((c) => c.id),
    restartCount: nextRestartCount(status, name, shownOf(apiStatus, name)),
    terminationFiles: status.containers.flatMap((c) =>
      c.name === name && c.terminationMessageHostPath !== null ? [c.terminationMessageHostPath] : [],
    ),
    specKey: hashNameAndImage(container),
    ...(look.objectChanges === undefined ? {} : { objectChanges: look.objectChanges }),
    ...(timesAsked === undefined ? {} : { timesAsked }),
    causes: context.causes,
  };
}
interface Named {
  name: string;
  kind: ContainerKind;
  container: StartJob['container'];
}

export const startActions = {
  ensureChildren: declared.assign(({ context, spawn }) => {
    const { pod, starts, times } = context;
    const { children, sinceWallMs } = starts;
    const missing = containersOf(pod).filter(([name]) => !children.has(name));
    for (const [name, kind] of missing) {
      const kept = context.kept?.get(name);
      spawn('container', { id: childId(name), input: { name, kind, times, sinceWallMs, ...(kept === undefined ? {} : { kept }) } });
    }
    return { starts: { ...starts, children: new Set([...children, ...missing.map(([name]) => name)]) } };
  }),
  /** A container that the definition no longer names: its pull or its wait ends, and nothing is remembered of it. */
  dropRemoved: declared.enqueueActions(({ context: { pod, starts, restart }, enqueue }) => {
    const wanted = new Set(containersOf(pod).map(([name]) => name));
    const kept = <V>(map: ReadonlyMap<string, V>) => new Map([...map].filter(([name]) => wanted.has(name)));
    const among = (names: ReadonlySet<string>) => new Set([...names].filter((name) => wanted.has(name)));
    for (const name of starts.children) if (!wanted.has(name)) enqueue.stopChild(childId(name));
    const { failures, nextStarts, children, hookAhead } = starts;
    enqueue.assign({
      starts: {
        ...{ ...starts, children: among(children), hookAhead: among(hookAhead) },
        ...{ failures: kept(failures), nextStarts: kept(nextStarts) },
      },
      restart: { ...restart, times: kept(restart.times) },
    });
  }),
  dropChildren: declared.enqueueActions(({ context: { starts, resize }, enqueue }) => {
    for (const name of starts.children) enqueue.stopChild(childId(name));
    if (resize.child) enqueue.stopChild(RESIZER);
    enqueue.assign({
      starts: { ...starts, children: new Set(), hookAhead: new Set(), heldBack: 'no' },
      resize: { ...resize, child: false },
    });
  }),
  /** Tells each container's child what was observed, and which of them are to start. */
  feed: declared.enqueueActions(({ context, enqueue }) => {
    const { status, decision, pod, starts } = context;
    if (status === null || decision === null) return;
    const { now, heldBack } = whoStarts(context);
    const actions = planActions(context);
    for (const [name, kind] of containersOf(pod)) {
      if (!starts.children.has(name)) continue;
      const current = firstStatus(status, name) ?? null;
      enqueue.sendTo(childId(name), { type: 'container.observed', current, observedAtMonoMs: status.observedAtMonoMs });
      const container = specOf(pod, name);
      if (!now.has(name) || actions === null || container === undefined) continue;
      const job = jobOf(context, { status, apiStatus: decision.apiStatus, actions }, { name, kind, container });
      enqueue.sendTo(childId(name), { type: 'container.start', job });
    }
    enqueue.assign({ starts: { ...starts, heldBack } });
  }),
  /** To the children of one that slept. */
  showSeen: declared.enqueueActions(({ context, enqueue }) => {
    const { status, starts } = context;
    enqueue.assign({ kept: undefined });
    if (status === null) return;
    const { observedAtMonoMs } = status;
    for (const name of starts.children) {
      enqueue.sendTo(childId(name), { type: 'container.observed', current: firstStatus(status, name) ?? null, observedAtMonoMs });
    }
  }),
  takeReport: declared.assign(({ context: { starts }, event }) => {
    if (event.type !== 'container.report') return {};
    const failures = new Map(starts.failures);
    const nextStarts = new Map(starts.nextStarts);
    if (event.failure === null) failures.delete(event.name);
    else failures.set(event.name, event.failure);
    if (event.nextStartAtMs === null) nextStarts.delete(event.name);
    else nextStarts.set(event.name, event.nextStartAtMs);
    const hookAhead = new Set(starts.hookAhead);
    if (event.hookAhead) hookAhead.add(event.name);
    else hookAhead.delete(event.name);
    return { starts: { ...starts, failures, nextStarts, hookAhead } };
  }),
  /** What a container that is held back waits for has come further: look whether it may start. */
  release: declared.assign(({ context: { starts, look } }) =>
    starts.heldBack === 'no' ? {} : { look: { ...look, hint: 'yes' as const } },
  ),
  cancelChildren: declared.enqueueActions(({ context: { starts }, enqueue }) => {
    for (const name of starts.children) enqueue.sendTo(childId(name), { type: 'container.cancel' });
  }),
  reportSandboxGone: declared.enqueueActions(({ context: { starts }, enqueue }) => {
    for (const name of starts.children) enqueue.sendTo(childId(name), { type: 'container.sandboxGone' });
  }),
  /** A hook of what is stopped anyway is not waited for. */
  cancelKilled: declared.enqueueActions(({ context, enqueue }) => {
    const { hookAhead, children } = context.starts;
    for (const { name } of planActions(context)?.containersToKill ?? []) {
      if (hookAhead.has(name) && children.has(name)) enqueue.sendTo(childId(name), { type: 'container.cancel' });
    }
  }),
};

export const startGuards = {
  heldBack: ({ context: { starts }, event }: Step) =>
    starts.heldBack === 'hook' || (starts.heldBack === 'place' && event.type === 'container.report' && event.failure !== null),
};
