/** Acts on the pod as a whole: what they are given, how one that failed is tried again, how fast they may follow one another. */

import { stopTimeoutSeconds } from '../../../pod/runtime/killOrder.ts';
import { withReplaced } from '../../../pod/runtime/runtimeStatus.ts';
import type { KillContainer, StartFailure } from '../../../pod/runtime/seen.ts';
import { retryDelayMs } from '../../../supervision/restartPolicy.ts';
import { messageOf } from '../../../text/errors.ts';
import { type Act, facts, planActions, podIPsOf, requiredStatus, type Trouble, type WorkerContext } from '../context.ts';
import { killTasks, podTasks, type StopInput } from '../stopMachine.ts';
import { declared, type Step } from './declared.ts';

/** Network not ready (pod lifecycle 2.1). */
const NETWORK_RETRY_MS = 1_000;
/** Back-off of a failed pod-level act: 10 s, lengthened by up to half (pod lifecycle 3.1). */
export const ACT_RETRY_MS = 10_000;
/**
 * Containers that were killed end within milliseconds, unless the kernel waits for a server. The server is then asked, for
 * 5 s: together well below the 30 s after its grace in which a pod of a dead server has to be gone.
 */
const SEVER_AFTER_MS = 5_000;
/** First retry of a failed stop; doubles to ACT_RETRY_MS, so that a stop is never slower than the reference. */
export const STOP_RETRY_MS = 500;
export const RUNTIME_RETRY_MS = 1_000;
/** First retry after a wait for volumes that was in vain: the volume manager goes on meanwhile. Doubles to ACT_RETRY_MS. */
export const VOLUMES_RETRY_MS = 1_000;
/** First retry of claims that could not be prepared or unprepared. Doubles to ACT_RETRY_MS. */
export const CLAIMS_RETRY_MS = 1_000;
/** First retry of what was refused because it is not there yet, if nobody wakes the worker. Doubles to ACT_RETRY_MS. */
export const LATER_RETRY_MS = 1_000;
/** So many acts in a row are ordinary (kill, create, kill a container); more look like a pod that cannot come to rest. */
export const ACTS_IN_ROW_MAX = 6;
const CALM_AFTER_MS = 60_000;
/** First wait of the back-off; doubles to ACT_RETRY_MS. */
const CALM_BASE_MS = 1_000;
/** Old ones are garbage collected long before this many. */
export const REPLACED_MAX = 32;

/** From an error or from a failed outcome; an outcome's own reason wins. */
export function troubleOf(reason: string, what: unknown, baseMs: number): Trouble {
  if (isFailed(what)) return { reason: what.failure.reason, message: what.failure.message, baseMs };
  return { reason, message: messageOf(what), baseMs };
}
/** Refused because something is not there yet: who refused says when it is. */
export function isLater(what: unknown): boolean {
  return isFailed(what) && what.failure.later === true;
}
function isFailed(what: unknown): what is { kind: 'failed'; failure: StartFailure } {
  return typeof what === 'object' && what !== null && 'kind' in what && what.kind === 'failed';
}
interface Failing<Failed extends string> {
  reason: string;
  baseMs: number;
  /** The state in which it waits before it is tried again. */
  failed: Failed;
}
const failing = <const Failed extends string, E>(o: Failing<Failed>, whyOf: (event: E) => unknown) => ({
  target: o.failed,
  actions: { type: 'trouble' as const, params: ({ event }: { event: E }) => troubleOf(o.reason, whyOf(event), o.baseMs) },
});
/** For an act that answers with what it found, or throws. */
export function orFail<const Failed extends string>(o: Failing<Failed>) {
  return { onError: failing(o, ({ error }: { error: unknown }) => error) };
}
/** For an act that answers with an outcome: one that failed leads to `failed`, as an error does, and every other one on to `done`. */
export function attempt<const Failed extends string, const Done extends readonly object[]>(o: Failing<Failed>, ...done: Done) {
  return { onDone: [{ guard: hasFailed, ...failing(o, outputOf) }, ...done] as const, ...orFail(o) };
}
/** The same for one whose failed outcome is an event of the pod, too: of that reason, in the words of `say`. */
export function attemptToldOf<const Failed extends string, const Done extends readonly object[]>(
  o: Failing<Failed> & { say(message: string): string },
  ...done: Done
) {
  const { target, actions } = failing(o, outputOf);
  const params = ({ event }: { event: { output: unknown } }) => ({
    type: 'Warning' as const,
    reason: o.reason,
    message: o.say(troubleOf(o.reason, event.output, o.baseMs).message),
  });
  const told = { guard: hasFailed, target, actions: [actions, { type: 'recordEvent' as const, params }] as const };
  return { onDone: [told, ...done] as const, ...orFail(o) };
}
const hasFailed = ({ event }: { event: { output: unknown } }) => isFailed(event.output);
const outputOf = ({ output }: { output: unknown }) => output;

/**
 * What the plan stops to start it anew: single containers, or all that run in a sandbox which is replaced. The kubelet stops and
 * starts in one go, so it does not ask how they ended.
 */
function toReplace(context: WorkerContext): readonly Pick<KillContainer, 'id' | 'name'>[] {
  const actions = planActions(context);
  if (actions?.createSandbox === true) return requiredStatus(context).containers.filter((c) => c.state === 'running');
  const again = new Set([...(actions?.initToStart ?? []), ...(actions?.containersToStart ?? [])]);
  return (actions?.containersToKill ?? []).filter(({ name }) => again.has(name));
}

/** Everything of the pod is to stop. `graceSeconds` null: each container's own grace. */
export function podStop(context: WorkerContext, o: { graceSeconds: number | null; forSandbox: boolean }): StopInput {
  const status = requiredStatus(context);
  const { pod, end } = context;
  const { preStopped } = end;
  return {
    ...stopBasis(context),
    tasks: podTasks({ pod, status, graceSeconds: o.graceSeconds, preStopped, forced: end.kill?.graceOverride === 0 }),
    sandboxes: { pod, status, forSandbox: o.forSandbox },
    failedReason: 'FailedKillPod',
  };
}
/** Single containers are to stop: those that the plan names. */
export function plannedStop(context: WorkerContext): StopInput {
  const { pod, end } = context;
  const { preStopped } = end;
  const kills = planActions(context)?.containersToKill ?? [];
  return {
    ...stopBasis(context),
    tasks: killTasks({ pod, kills, preStopped }),
    sandboxes: null,
    failedReason: 'KillContainerError',
  };
}
function stopBasis(context: WorkerContext): Pick<StopInput, 'pod' | 'podIPs'> {
  return { pod: context.pod, podIPs: podIPsOf(context) };
}

const SANDBOX_CHANGED = {
  type: 'Normal',
  reason: 'SandboxChanged',
  message: 'Pod sandbox changed, it will be killed and re-created.',
} as const;

function rested({ pace }: Act): boolean {
  return facts().monoMs - pace.lastMonoMs > CALM_AFTER_MS;
}
export function withTrouble({ act }: WorkerContext, trouble: Trouble): { act: Act } {
  return { act: { ...act, trouble, failuresInRow: act.failuresInRow + 1 } };
}

export const actActions = {
  clearTrouble: declared.assign(({ context: { act } }) => ({ act: { ...act, trouble: null, failuresInRow: 0 } })),
  /** Acts that follow one another without a long rest in between. */
  countAct: declared.assign(({ context: { act } }) => {
    const inRow = rested(act) ? 1 : act.pace.inRow + 1;
    return { act: { ...act, pace: { inRow, restAt: ACTS_IN_ROW_MAX, lastMonoMs: facts().monoMs } } };
  }),
  /** Nothing was done: it is not held back for it. */
  uncountAct: declared.assign(({ context: { act } }) => ({
    act: { ...act, pace: { ...act.pace, inRow: Math.max(0, act.pace.inRow - 1) } },
  })),
  /** The back-off before the next act is over. */
  letAct: declared.assign(({ context: { act } }) => ({ act: { ...act, pace: { ...act.pace, restAt: act.pace.inRow + 1 } } })),
  forgetActs: declared.assign(({ context: { act } }) => ({ act: { ...act, pace: { ...act.pace, inRow: 0 }, failuresInRow: 0 } })),
  /** A changed definition is not held back for what the one before it came to. */
  beginAnew: declared.assign(({ context: { act }, event }) =>
    event.type === 'pod.update' && event.kind === 'update' ? { act: { ...act, pace: { ...act.pace, inRow: 0 }, failuresInRow: 0 } } : {},
  ),
  /** Once per sandbox that is given up; not when the pod moved to or from the host's network (trap 35). */
  saySandboxChanged: declared.enqueueActions(({ context, enqueue }) => {
    const actions = planActions(context);
    const id = context.status?.sandboxes[0]?.id ?? '';
    if (actions?.createSandbox !== true || id === '' || id === context.act.changedSandboxId) return;
    enqueue.assign({ act: { ...context.act, changedSandboxId: id } });
    if (actions.sandboxId === '') return;
    enqueue({ type: 'recordEvent', params: SANDBOX_CHANGED });
  }),
  noteReplaced: declared.assign(({ context }) => {
    const { act, status } = context;
    return status === null
      ? {}
      : { act: { ...act, replaced: withReplaced(act.replaced, toReplace(context), { status, max: REPLACED_MAX }) } };
  }),
  noteStopped: declared.assign(({ context }) => {
    const { act, status } = context;
    const kills = planActions(context)?.containersToKill ?? [];
    const there = new Set(status?.containers.map((c) => c.id));
    const ids = [...act.stoppedUnknown, ...kills.filter((k) => k.reason === 'Unknown').map((k) => k.id)];
    return { act: { ...act, stoppedUnknown: new Set(ids.filter((id) => there.has(id))) } };
  }),
};

export const actGuards = {
  noProgress: ({ context: { decision, act } }: Step) => {
    const kind = decision?.plan.kind;
    const acts = kind === 'killPod' || kind === 'createSandbox' || kind === 'killContainers' || kind === 'resetContainers';
    return acts && !rested(act) && act.pace.inRow >= act.pace.restAt;
  },
};

export const actDelays = {
  wait: ({ context: { act } }: Step) =>
    act.trouble === null
      ? 0
      : retryDelayMs({ minMs: act.trouble.baseMs, maxMs: ACT_RETRY_MS }, act.failuresInRow - 1) * (1 + 0.5 * facts().random),
  calm: ({ context: { act } }: Step) =>
    retryDelayMs({ minMs: CALM_BASE_MS, maxMs: ACT_RETRY_MS, jitter: 0.5 }, act.pace.inRow - ACTS_IN_ROW_MAX, facts().random),
  network: () => NETWORK_RETRY_MS * (1 + 0.5 * facts().random),
  /** Each container is killed by then. */
  killed: ({ context: { end } }: Step) => stopTimeoutSeconds(end.graceSeconds ?? 0, 0) * 1000 + SEVER_AFTER_MS,
};
