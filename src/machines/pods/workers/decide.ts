/**
 * What a pod worker does next, from its pod, the newest inspection and the node's facts: one pure step of
 * decide -> act -> observe -> decide. The order of the checks is pod lifecycle 5.1 and 5.3.
 */
import type { Pod, PodStatus } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import { deadlineAtMs, type StatusOverride, stranded, withStartTime } from '../../pod/ends/byNode.ts';
import { isTerminal, SANDBOX_READY } from '../../pod/phase.ts';
import type { ProbeLedger } from '../../pod/probes/probes.ts';
import { inProgress, planResize, type ResizePlan } from '../../pod/resources/actuation.ts';
import type { InForce } from '../../pod/resources/reported.ts';
import { type AskedRestarts, markAsked } from '../../pod/restart/asked.ts';
import { ALL_RESTARTING } from '../../pod/runtime/restartAll.ts';
import { markReplaced, type ReplacedInstances } from '../../pod/runtime/runtimeStatus.ts';
import type { PodActions, PodRuntimeStatus, StartFailure } from '../../pod/runtime/seen.ts';
import { probeVerdicts } from '../../services/probes/state.ts';
import { generatePodStatus } from '../status/generate.ts';
import type { DeviceHealthOf } from '../status/messages.ts';
import { computePodActions } from './actions/podActions.ts';

export interface DecideInput {
  pod: Pod;
  status: PodRuntimeStatus;
  old: PodStatus | undefined;
  failures: ReadonlyMap<string, StartFailure>;
  facts: NodeFacts;
  networkReady: boolean;
  networkReason: string;
  nowWallMs: number;
  /** Not the first life of its UID: what the runtime holds from an earlier one says nothing about when this one began. */
  newLife?: boolean;
  /** Containers of unknown state that were stopped with success: there is nothing more to stop. */
  stoppedUnknown?: ReadonlySet<string>;
  /** Instances that this worker stopped to replace them. Absent: none. */
  replaced?: ReplacedInstances;
  /** Instances whose restart a person asked for. Absent: none. */
  asked?: AskedRestarts;
  /** Probe results by container id. */
  probes?: ProbeLedger;
  /** Health of the devices that a container has. Absent: it has none. */
  deviceHealth?: DeviceHealthOf | undefined;
  /** Names of containers whose postStart hook has not ended. */
  hookAhead?: ReadonlySet<string>;
  /** Resources that this worker changed in place. Absent: none. */
  inForce?: InForce;
  /** Why they could not be changed at last, or null. */
  resizeError?: string | null;
  /** See {@link ResizeProgress}. */
  grantedGeneration?: number | undefined;
}

type Plan =
  /** The pod's phase is terminal, or its deadline is over: wind it down. */
  | { kind: 'terminal' }
  | { kind: 'deadline' }
  /** Stop everything; then create a sandbox if `actions.createSandbox`. */
  | { kind: 'killPod'; actions: PodActions }
  | { kind: 'network'; message: string }
  | { kind: 'createSandbox'; actions: PodActions }
  | { kind: 'killContainers'; actions: PodActions }
  /** All containers restart in the sandbox that there is: take them away. */
  | { kind: 'resetContainers'; actions: PodActions }
  /** Nothing to do to the sandbox: feed the containers. */
  | { kind: 'steady'; actions: PodActions };

export interface Decision {
  plan: Plan;
  apiStatus: PodStatus;
  resize: ResizePlan;
}

/** Of a pod that had nothing yet it tells what was wanted: its sandbox was made with that, or with what was granted since. */
function saidInForce({ phase, conditions, resources }: PodStatus, hasSandbox: boolean): PodStatus['resources'] | null {
  const had = phase === 'Running' || conditions?.some((c) => c.type === SANDBOX_READY && c.status === 'True') === true;
  if (hasSandbox) return had ? (resources ?? null) : null;
  return phase === 'Running' ? resources : undefined;
}

/** What was granted and is not in force yet. `told`: as a status says it. */
export function resizeOf(
  { pod, facts, inForce = new Map(), ...input }: Pick<DecideInput, 'pod' | 'facts' | 'inForce' | 'resizeError' | 'grantedGeneration'>,
  { status, old, hasSandbox }: { status: PodRuntimeStatus; old: PodStatus; hasSandbox: boolean },
): { resize: ResizePlan; told: Pick<Parameters<typeof generatePodStatus>[0], 'resizing'> } {
  const said = saidInForce(old, hasSandbox);
  const resize = planResize({ pod, status, inForce, facts, said });
  const was = said === null && pod.spec.resources !== undefined ? undefined : old.resources;
  const resizing = { error: input.resizeError ?? null, generation: input.grantedGeneration, was };
  return { resize, told: inProgress(resize) ? { resizing } : {} };
}

export function decide(input: DecideInput): Decision {
  const { pod, facts } = input;
  const status = markAsked(markReplaced(input.status, input.replaced ?? new Map()), input.asked ?? new Map());
  const held = input.newLife === true ? { ...status, sandboxes: [] } : status;
  // After a restart of the daemon only the API server remembers when the pod began (trap 56).
  const before = input.old ?? (pod.status.startTime === undefined ? undefined : pod.status);
  const old = withStartTime(before, held, input.nowWallMs);
  const deadline = deadlineAtMs(pod, old);
  const over = deadline !== null && deadline <= input.nowWallMs;
  const probes = probeVerdicts(pod, status, input.probes ?? new Map());
  const { resize, told } = resizeOf(input, { status, old, hasSandbox: held.sandboxes.some((s) => s.ready) });
  const generate = (deadlineExceeded: boolean, override?: StatusOverride): PodStatus =>
    generatePodStatus({
      pod,
      status,
      old,
      failures: input.failures,
      facts,
      nowWallMs: input.nowWallMs,
      podIsTerminal: false,
      deadlineExceeded,
      startedContainers: probes.started,
      readyContainers: probes.ready,
      hookAhead: input.hookAhead ?? new Set(),
      inForce: resize.inForce,
      deviceHealth: input.deviceHealth,
      ...told,
      ...(override === undefined ? {} : { override }),
    });
  const plain = generate(false);
  // What had ended by itself in time stays what it was, also when nobody remembers having said so.
  const inTime = isTerminal(plain.phase) && status.containers.every((c) => c.finishedAtMs === null || c.finishedAtMs <= (deadline ?? 0));
  const deadlineExceeded = over && !inTime && !isTerminal(old.phase);
  const apiStatus = deadlineExceeded ? generate(true) : plain;
  const done = (plan: Plan): Decision => ({ plan, apiStatus, resize });
  if (deadlineExceeded) return done({ kind: 'deadline' });
  if (apiStatus.phase === 'Failed' || apiStatus.phase === 'Succeeded') return done({ kind: 'terminal' });

  const restartingAll = apiStatus.conditions?.some((c) => c.type === ALL_RESTARTING && c.status === 'True') === true;
  const computed = computePodActions({
    pod,
    status,
    liveness: probes.liveness,
    startup: probes.startup,
    hookAhead: input.hookAhead ?? new Set(),
    resizeRestarts: resize.restart,
    ...(input.asked === undefined ? {} : { asked: input.asked }),
    restartingAll,
  });
  // What an ended sandbox left is taken away once there is another.
  if (restartingAll && !computed.createSandbox) return done({ kind: 'resetContainers', actions: computed });
  const kills = computed.containersToKill.filter((k) => k.reason !== 'Unknown' || input.stoppedUnknown?.has(k.id) !== true);
  const actions: PodActions = { ...computed, containersToKill: kills };
  const anythingUp = status.containers.some((c) => c.state === 'running') || status.sandboxes.some((s) => s.ready);
  if (actions.killPod && anythingUp) return done({ kind: 'killPod', actions });
  // Nothing runs, nothing is to start and nothing may be made again: the reference waits for ever here.
  if (actions.killPod && !actions.createSandbox)
    return { ...done({ kind: 'terminal' }), apiStatus: generate(false, stranded(pod, status)) };
  if (actions.createSandbox) {
    if (!input.networkReady && pod.spec.hostNetwork !== true) return done({ kind: 'network', message: input.networkReason });
    return done({ kind: 'createSandbox', actions });
  }
  if (!actions.killPod && actions.containersToKill.length > 0) return done({ kind: 'killContainers', actions });
  return done({ kind: 'steady', actions });
}
