/** What is decided of what was seen: the plan, and the status that is said of the pod. */

import type { PodStatus } from '../../../kube/types.ts';
import { deadlineAtMs } from '../../../pod/ends/byNode.ts';
import { ofPresent } from '../../../pod/resources/actuation.ts';
import { stillAsked } from '../../../pod/restart/asked.ts';
import { probeVerdicts } from '../../../services/probes/state.ts';
import { generatePodStatus } from '../../status/generate.ts';
import { acceptedAs, terminateStatus } from '../../status/manager.ts';
import { facts, type WorkerContext, type WorkerFacts } from '../context.ts';
import { type Decision, decide, resizeOf } from '../decide.ts';
import { declared, type Step } from './declared.ts';

/** What is to be done, and said, of what was seen last, by what is known at this moment. */
export function decisionNow(context: WorkerContext, status: NonNullable<WorkerContext['status']>, now: WorkerFacts): Decision {
  return decide({
    pod: context.pod,
    status,
    old: context.apiStatus ?? now.lastStatus,
    failures: context.starts.failures,
    facts: now.node,
    networkReady: now.network.ready,
    networkReason: now.network.reason,
    nowWallMs: now.wallMs,
    stoppedUnknown: context.act.stoppedUnknown,
    replaced: context.act.replaced,
    asked: context.restart.asked,
    probes: now.probes,
    deviceHealth: now.deviceHealth,
    hookAhead: context.starts.hookAhead,
    newLife: context.newLife,
    inForce: context.resize.inForce,
    resizeError: context.resize.error,
    grantedGeneration: context.resize.grantedGeneration,
  });
}

/** What a worker keeps of what it said, while it sleeps. */
export function statusAsAccepted({ apiStatus }: WorkerContext, accepted: PodStatus | undefined): PodStatus | undefined {
  return acceptedAs(apiStatus, accepted);
}

/** Once the pod goes. `podIsTerminal`: nothing of it runs any more. */
export function statusAtEnd(context: WorkerContext, podIsTerminal: boolean): Partial<WorkerContext> {
  const { pod, status, end, resize } = context;
  if (status === null || context.runtimeOnly) return {};
  const now = facts();
  const old = context.apiStatus ?? now.lastStatus;
  const deadline = deadlineAtMs(pod, old);
  const nowWallMs = now.wallMs;
  const probes = probeVerdicts(pod, status, now.probes);
  const killStatus = end.kill?.status ?? null;
  // A change that nobody carries out any more is not said to be in force.
  const { told } = resizeOf(
    { pod, facts: now.node, inForce: resize.inForce, resizeError: resize.error, grantedGeneration: resize.grantedGeneration },
    { status, old: old ?? pod.status, hasSandbox: status.sandboxes.some((s) => s.ready) },
  );
  const apiStatus = generatePodStatus({
    pod,
    status,
    old,
    startedContainers: probes.started,
    readyContainers: probes.ready,
    // Nothing starts any more: that a start had failed does not make a container wait.
    failures: podIsTerminal ? new Map() : context.starts.failures,
    facts: now.node,
    nowWallMs,
    podIsTerminal,
    deviceHealth: now.deviceHealth,
    inForce: resize.inForce,
    ...told,
    deadlineExceeded: deadline !== null && deadline <= nowWallMs,
    ...(killStatus === null ? {} : { override: killStatus }),
  });
  return podIsTerminal ? { apiStatus: terminateStatus(pod, apiStatus), end: { ...end, stopped: true } } : { apiStatus };
}

export const decideActions = {
  decide: declared.assign(({ context }) => {
    const { status, resize } = context;
    if (status === null) return {};
    const restart = { ...context.restart, asked: stillAsked(context.restart.asked, status) };
    const decision = decisionNow({ ...context, restart }, status, facts());
    return { restart, decision, apiStatus: decision.apiStatus, resize: { ...resize, inForce: ofPresent(decision.resize.inForce, status) } };
  }),
};

export const planGuards = {
  planIs: ({ context }: Step, { kind }: { kind: Decision['plan']['kind'] }) => context.decision?.plan.kind === kind,
  somethingUp: ({ context: { status } }: Step) =>
    status === null || status.containers.some((c) => c.state === 'running') || status.sandboxes.some((s) => s.ready),
  containersUp: ({ context: { status } }: Step) => status?.containers.some((c) => c.state === 'running') === true,
};
