/** Names of the worker's statechart: its actors, actions, guards and delays. Actions are total. */

import { assign } from 'xstate';
import type { ContainerStatus, Pod, PodStatus } from '../../kube/types.ts';
import { ofPresent, withStep } from '../../pod/resources/actuation.ts';
import { samePodAmounts, WHOLE_POD } from '../../pod/resources/amounts.ts';
import { resizeInProgress, resizeMessage } from '../../pod/resources/resizeEvents.ts';
import { hashNameAndImage } from '../../pod/runtime/containerHash.ts';
import { effectiveGraceSeconds, stopTimeoutSeconds } from '../../pod/runtime/killOrder.ts';
import { exitForBackoff, firstStatus, nextRestartCount, withReplaced } from '../../pod/runtime/runtimeStatus.ts';
import type { PodRuntimeStatus } from '../../pod/runtime/seen.ts';
import { probeVerdicts } from '../../services/probes/state.ts';
import { joinCauses } from '../../supervision/address.ts';
import { retryDelayMs } from '../../supervision/restartPolicy.ts';
import { unprovided, unprovidedAction } from '../../xstate/provide.ts';
import { generatePodStatus } from '../status/generate.ts';
import { terminateStatus } from '../status/manager.ts';
import { containerMachine } from './container/containerMachine.ts';
import type { EffectOutcome } from './container/containerStopMachine.ts';
import { BACKOFF_RESET_MS } from './container/crashBackoff.ts';
import type { ActOutcome } from './container/startJob.ts';
import {
  ACT_RETRY_MS,
  ACTS_IN_ROW_MAX,
  CALM_AFTER_MS,
  CALM_BASE_MS,
  CHASE_DELAYS_MS,
  childId,
  containersOf,
  decisionNow,
  facts,
  NETWORK_RETRY_MS,
  planActions,
  podIPsOf,
  REPLACED_MAX,
  type ResetInput,
  type SandboxInput,
  SEVER_AFTER_MS,
  setup,
  specOf,
  type Trouble,
  toReplace,
  type WorkerContext,
  type WorkerInput,
} from './context.ts';
import { deadlineAtMs } from './decide.ts';
import { concerns, guards, type WorkerMachineEvent } from './guards.ts';
import { resizeMachine } from './resizeMachine.ts';
import { stopMachine } from './stopMachine.ts';

const SANDBOX_CHANGED = {
  type: 'Normal',
  reason: 'SandboxChanged',
  message: 'Pod sandbox changed, it will be killed and re-created.',
} as const;

/** Id of the child that changes resources in place. */
const RESIZER = 'resize';
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

function dirtier(was: WorkerContext['dirty'], event: { type: string; listed?: boolean }): WorkerContext['dirty'] {
  return event.type === 'pod.dirty' && event.listed === true && was !== 'yes' ? 'listed' : 'yes';
}

function handlerOf(status: PodRuntimeStatus, sandboxId: string): { handler?: string } {
  const handler = status.sandboxes.find((s) => s.id === sandboxId)?.handler;
  return handler === undefined ? {} : { handler };
}

function shownOf(status: PodStatus, name: string): ContainerStatus | undefined {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status;
  return [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].find((s) => s.name === name);
}

const effects = setup({
  types: {
    context: {} as WorkerContext,
    events: {} as WorkerMachineEvent,
    input: {} as WorkerInput,
  },
  actors: {
    container: containerMachine,
    resize: resizeMachine,
    fence: unprovided<unknown, { uid: string }>(),
    inspect: unprovided<PodRuntimeStatus, { uid: string; partial?: boolean; stopping?: boolean }>(),
    prepare: unprovided<EffectOutcome, { pod: Pod }>(),
    prepareClaims: unprovided<EffectOutcome, { pod: Pod }>(),
    releaseClaims: unprovided<EffectOutcome, { pod: Pod }>(),
    runSandbox: unprovided<ActOutcome<{ id: string }>, SandboxInput>(),
    stopPod: stopMachine,
    resetContainers: unprovided<EffectOutcome, ResetInput>(),
    killContainers: stopMachine,
    cleanup: unprovided<void, { pod: Pod }>(),
  },
  actions: {
    publish: unprovidedAction<{ finished: boolean }>(),
    /** Where the pod stands, for the pod manager: `meta` of the state that the step leads to. */
    report: unprovidedAction(),
    recordEvent: unprovidedAction<{ type: 'Normal' | 'Warning'; reason: string; message: string }>(),
    severVolumes: unprovidedAction<{ pod: Pod }>(),
  },
});

/** The kubelet's. A runtime has this long at least, whatever the grace. */
const OVERDUE_SECONDS_MIN = 10;

export const workerSetup = effects.extend({
  actions: {
    /** Once per sandbox that is given up; not when the pod moved to or from the host's network (trap 35). */
    saySandboxChanged: effects.enqueueActions(({ context, enqueue }) => {
      const actions = planActions(context);
      const id = context.status?.sandboxes[0]?.id ?? '';
      if (actions?.createSandbox !== true || id === '' || id === context.changedSandboxId) return;
      enqueue.assign({ changedSandboxId: id });
      if (actions.sandboxId === '') return;
      enqueue({ type: 'recordEvent', params: SANDBOX_CHANGED });
    }),
    takePod: assign(({ context, event }) => {
      if (event.type !== 'pod.update') return {};
      const { pod } = event;
      const isGrant = !context.runtimeOnly && !samePodAmounts(pod, context.pod);
      return {
        ...{ pod, causes: joinCauses(context.causes, event.causes) },
        ...(isGrant ? { grantedGeneration: pod.metadata.generation } : {}),
      };
    }),
    takeKill: assign(({ context, event }) => {
      if (event.type !== 'pod.kill') return {};
      const graceOverride =
        event.graceOverrideSeconds === undefined
          ? context.graceOverride
          : Math.min(event.graceOverrideSeconds, context.graceOverride ?? Number.POSITIVE_INFINITY);
      return {
        killAsked: true,
        graceOverride,
        killStatus: event.status ?? context.killStatus,
        causes: joinCauses(context.causes, event.causes),
      };
    }),
    computeGrace: assign(({ context }) => ({
      graceSeconds: effectiveGraceSeconds({ pod: context.pod, current: context.graceSeconds, override: context.graceOverride }),
    })),
    markDirty: assign(({ context, event }) => ({
      dirty: concerns(context, event) ? dirtier(context.dirty, event) : context.dirty,
      ...(event.type === 'pod.dirty' && (event.objects !== undefined || event.awaited === true)
        ? { objectChanges: (context.objectChanges ?? 0) + 1 }
        : {}),
      causes: joinCauses(context.causes, 'causes' in event ? event.causes : undefined),
      ...(event.type === 'pod.dirty' && event.ended !== undefined ? { ended: new Set([...context.ended, ...event.ended]), chases: 0 } : {}),
    })),
    noteObjects: assign(({ context, event }) =>
      event.type === 'pod.dirty' && event.objects !== undefined ? { objectChanges: (context.objectChanges ?? 0) + 1 } : {},
    ),
    /** An announced end that the inspection shows, or that was looked for long enough, is not looked for again. */
    settleEnded: assign(({ context }) => {
      if (context.ended.size === 0) return {};
      const up = new Set(context.status?.containers.filter((c) => c.state === 'running').map((c) => c.id));
      const ended = context.chases < CHASE_DELAYS_MS.length ? new Set([...context.ended].filter((id) => up.has(id))) : new Set<string>();
      return { ended };
    }),
    countChase: assign(({ context }) => ({ chases: context.chases + 1 })),
    /** Acts that follow one another without a long rest in between. */
    countAct: assign(({ context }) => {
      const nowMonoMs = facts().monoMs;
      const rested = nowMonoMs - context.lastActMonoMs > CALM_AFTER_MS;
      return { actsInRow: rested ? 1 : context.actsInRow + 1, lastActMonoMs: nowMonoMs, calmed: false };
    }),
    /** Nothing was done: it is not held back for it. */
    uncountAct: assign(({ context }) => ({ actsInRow: Math.max(0, context.actsInRow - 1) })),
    forgetActs: assign({ actsInRow: 0, failuresInRow: 0 }),
    /** A changed definition is not held back for what the one before it came to. */
    beginAnew: assign(({ event }) => (event.type === 'pod.update' && event.kind === 'update' ? { actsInRow: 0, failuresInRow: 0 } : {})),
    /** A partial inspection answers for no hint; a listing that is behind it is found to be so afterwards. */
    beginInspection: assign(({ context: { acted, dirty, ended } }) => {
      const partial = acted && dirty !== 'yes' && ended.size === 0;
      return { partial, acted: false, dirty: partial ? dirty : ('no' as const) };
    }),
    noteActed: assign({ acted: true }),
    clearTrouble: assign({ trouble: null, failuresInRow: 0 }),
    takeReport: assign(({ context, event }) => {
      if (event.type !== 'container.report') return {};
      const failures = new Map(context.failures);
      const nextStarts = new Map(context.nextStarts);
      if (event.failure === null) failures.delete(event.name);
      else failures.set(event.name, event.failure);
      if (event.nextStartAtMs === null) nextStarts.delete(event.name);
      else nextStarts.set(event.name, event.nextStartAtMs);
      const hookAhead = new Set(context.hookAhead);
      if (event.hookAhead) hookAhead.add(event.name);
      else hookAhead.delete(event.name);
      return { failures, nextStarts, hookAhead };
    }),
    /** What a container that is held back waits for has come further: look whether it may start. */
    release: assign(({ context }) => (context.heldBack === 'no' ? {} : { dirty: 'yes' as const })),
    notePreStop: assign(({ context, event }) => {
      if (event.type !== 'preStop.ended') return {};
      const there = new Set(context.status?.containers.map((c) => c.id));
      return { preStopped: new Set([...context.preStopped, event.containerId].filter((id) => there.has(id))) };
    }),
    decide: assign(({ context }) => {
      const { status } = context;
      if (status === null) return {};
      const decision = decisionNow(context, status, facts());
      return { decision, apiStatus: decision.apiStatus, inForce: ofPresent(decision.resize.inForce, status) };
    }),
    /** Granted resources that are not in force; nobody is asked for them before there are some. */
    feedResize: effects.enqueueActions(({ context, enqueue }) => {
      const { decision, pod, resizes } = context;
      if (decision === null || decision.plan.kind !== 'steady') return;
      const { steps } = decision.resize;
      const input = { pod, steps, sandboxId: context.status?.sandboxes[0]?.id ?? '' };
      if (resizes) enqueue.sendTo(RESIZER, { type: 'resize.wanted', ...input });
      else if (steps.length > 0) {
        enqueue.spawnChild('resize', { id: RESIZER, input });
        enqueue.assign({ resizes: true });
      }
    }),
    noteResized: assign(({ context, event }) => {
      if (event.type !== 'resize.set') return {};
      const { step } = event;
      const from = context.status?.containers.find((c) => c.id === step.containerId);
      const gone = from === undefined && step.containerId !== WHOLE_POD;
      return { resizeError: null, ...(gone ? {} : { inForce: withStep(context.inForce, step, from) }) };
    }),
    noteResizeTrouble: effects.enqueueActions(({ context, event, enqueue }) => {
      if (event.type !== 'resize.trouble') return;
      const { message } = event;
      enqueue.assign({ resizeError: message });
      if (message === null || message === context.resizeError) return;
      const generation = resizeInProgress(context.apiStatus ?? {})?.observedGeneration;
      enqueue({
        type: 'recordEvent',
        params: {
          type: 'Warning',
          reason: 'ResizeError',
          message: resizeMessage('error', context.pod, { generation, error: message }),
        },
      });
    }),
    noteReplaced: assign(({ context }) =>
      context.status === null
        ? {}
        : { replaced: withReplaced(context.replaced, toReplace(context), { status: context.status, max: REPLACED_MAX }) },
    ),
    noteStopped: assign(({ context }) => {
      const kills = planActions(context)?.containersToKill ?? [];
      const there = new Set(context.status?.containers.map((c) => c.id));
      const ids = [...context.stoppedUnknown, ...kills.filter((k) => k.reason === 'Unknown').map((k) => k.id)];
      return { stoppedUnknown: new Set(ids.filter((id) => there.has(id))) };
    }),
    terminalStatus: assign(({ context }, params: { podIsTerminal: boolean }) => {
      const { status } = context;
      if (status === null || context.runtimeOnly) return {};
      const now = facts();
      const old = context.apiStatus ?? now.lastStatus;
      const deadline = deadlineAtMs(context.pod, old);
      const nowWallMs = now.wallMs;
      const probes = probeVerdicts(context.pod, status, now.probes);
      const apiStatus = generatePodStatus({
        pod: context.pod,
        status,
        old,
        startedContainers: probes.started,
        readyContainers: probes.ready,
        // Nothing starts any more: that a start had failed does not make a container wait.
        failures: params.podIsTerminal ? new Map() : context.failures,
        facts: now.node,
        nowWallMs,
        podIsTerminal: params.podIsTerminal,
        deviceHealth: now.deviceHealth,
        inForce: context.inForce,
        deadlineExceeded: deadline !== null && deadline <= nowWallMs,
        ...(context.killStatus === null ? {} : { override: context.killStatus }),
      });
      return params.podIsTerminal ? { apiStatus: terminateStatus(context.pod, apiStatus), stopped: true } : { apiStatus };
    }),
    /** Tells each container's child what was observed, and which of them are to start. */
    feed: effects.enqueueActions(({ context, enqueue }) => {
      const { status, decision, pod } = context;
      if (status === null || decision === null) return;
      let heldBack: WorkerContext['heldBack'] = 'no';
      let hookBefore = false;
      const states = facts().children;
      let onTheirWay = [...states.values()].filter(isOnItsWay).length;
      for (const [name, kind] of containersOf(pod)) {
        const current = firstStatus(status, name) ?? null;
        if (!context.children.has(name)) continue;
        enqueue.sendTo(childId(name), { type: 'container.observed', current, observedAtMonoMs: status.observedAtMonoMs });
        const held = kind === 'regular' && hookBefore;
        if (kind === 'regular' && context.hookAhead.has(name)) hookBefore = true;
        if (decision.plan.kind !== 'steady') continue;
        const a = decision.plan.actions;
        if (!a.initToStart.includes(name) && !a.containersToStart.includes(name) && !a.ephemeralToStart.includes(name)) continue;
        const spec = specOf(pod, name);
        if (spec === undefined) continue;
        // A container that rests after a failure takes no place: it begins in its own time.
        const state = states.get(name);
        const isNew = !isOnItsWay(state) && !rests(state);
        if (held) {
          heldBack = 'hook';
          continue;
        }
        if (isNew && onTheirWay >= STARTS_AT_ONCE) {
          if (heldBack === 'no') heldBack = 'place';
          continue;
        }
        if (isNew) onTheirWay += 1;
        // The ones after it start when its hook has ended, or when it turned out that it does not start now (trap 46).
        if (kind === 'regular' && spec.lifecycle?.postStart !== undefined && !rests(state)) {
          hookBefore = true;
        }
        enqueue.sendTo(childId(name), {
          type: 'container.start',
          job: {
            pod,
            container: spec,
            kind,
            sandboxId: a.sandboxId,
            sandboxAttempt: a.attempt,
            ...handlerOf(status, a.sandboxId),
            podIPs: pod.spec.hostNetwork === true ? podIPsOf(context) : status.ips,
            newest: current,
            newestExited: exitForBackoff(status, name, { replaced: context.replaced, healthyMs: BACKOFF_RESET_MS }),
            unstarted: status.containers.filter((c) => c.name === name && c.state === 'created').map((c) => c.id),
            restartCount: nextRestartCount(status, name, shownOf(decision.apiStatus, name)),
            terminationFiles: status.containers.flatMap((c) =>
              c.name === name && c.terminationMessageHostPath !== null ? [c.terminationMessageHostPath] : [],
            ),
            specKey: hashNameAndImage(spec),
            ...(context.objectChanges === undefined ? {} : { objectChanges: context.objectChanges }),
            causes: context.causes,
          },
        });
      }
      enqueue.assign({ heldBack });
    }),
    /** A container that the definition no longer names: its pull or its wait ends, and nothing is remembered of it. */
    dropRemoved: effects.enqueueActions(({ context, enqueue }) => {
      const wanted = new Set(containersOf(context.pod).map(([name]) => name));
      const kept = <V>(map: ReadonlyMap<string, V>) => new Map([...map].filter(([name]) => wanted.has(name)));
      const among = (names: ReadonlySet<string>) => new Set([...names].filter((name) => wanted.has(name)));
      for (const name of context.children) if (!wanted.has(name)) enqueue.stopChild(childId(name));
      enqueue.assign({
        children: among(context.children),
        failures: kept(context.failures),
        nextStarts: kept(context.nextStarts),
        hookAhead: among(context.hookAhead),
      });
    }),
    ensureChildren: assign(({ context, spawn }) => {
      const { pod, children, times, sinceWallMs } = context;
      const missing = containersOf(pod).filter(([name]) => !children.has(name));
      for (const [name, kind] of missing) spawn('container', { id: childId(name), input: { name, kind, times, sinceWallMs } });
      return { children: new Set([...children, ...missing.map(([name]) => name)]) };
    }),
    cancelChildren: effects.enqueueActions(({ context, enqueue }) => {
      for (const name of context.children) enqueue.sendTo(childId(name), { type: 'container.cancel' });
    }),
    reportSandboxGone: effects.enqueueActions(({ context, enqueue }) => {
      for (const name of context.children) enqueue.sendTo(childId(name), { type: 'container.sandboxGone' });
    }),
    /** A hook of what is stopped anyway is not waited for. */
    cancelKilled: effects.enqueueActions(({ context, enqueue }) => {
      for (const { name } of planActions(context)?.containersToKill ?? []) {
        if (context.hookAhead.has(name) && context.children.has(name)) enqueue.sendTo(childId(name), { type: 'container.cancel' });
      }
    }),
    dropChildren: effects.enqueueActions(({ context, enqueue }) => {
      for (const name of context.children) enqueue.stopChild(childId(name));
      if (context.resizes) enqueue.stopChild(RESIZER);
      enqueue.assign({ children: new Set(), hookAhead: new Set(), heldBack: 'no', resizes: false });
    }),
    trouble: assign(({ context }, trouble: Trouble) => ({ trouble, failuresInRow: context.failuresInRow + 1 })),
  },
  delays: {
    overdue: ({ context: { graceSeconds } }) => Math.max(OVERDUE_SECONDS_MIN, Math.floor(1.5 * (graceSeconds ?? 0))) * 1000,
    /** Each container is killed by then. */
    killed: ({ context: { graceSeconds } }) => stopTimeoutSeconds(graceSeconds ?? 0, 0) * 1000 + SEVER_AFTER_MS,
    wait: ({ context: { trouble, failuresInRow } }) =>
      trouble === null ? 0 : retryDelayMs({ minMs: trouble.baseMs, maxMs: ACT_RETRY_MS }, failuresInRow - 1) * (1 + 0.5 * facts().random),
    chase: ({ context }) => CHASE_DELAYS_MS[context.chases - 1] ?? 0,
    calm: ({ context }) =>
      retryDelayMs({ minMs: CALM_BASE_MS, maxMs: ACT_RETRY_MS, jitter: 0.5 }, context.actsInRow - ACTS_IN_ROW_MAX, facts().random),
    network: () => NETWORK_RETRY_MS * (1 + 0.5 * facts().random),
    /** 60 to 90 s by default, or the active deadline if that comes first. */
    resync: ({ context }) => {
      const moment = facts();
      const ms = context.times.resyncMs * (1 + 0.5 * moment.random);
      const deadline = deadlineAtMs(context.pod, context.apiStatus);
      return deadline === null ? ms : Math.max(1, Math.min(ms, deadline - moment.wallMs + 1));
    },
  },
  guards,
});
