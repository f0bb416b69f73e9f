/** The API status of a pod, from its definition, the runtime and what was said before: the only place where one is made. */

import type { Pod, PodCondition, PodPhase, PodStatus } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import { isTerminal } from '../../pod/phase.ts';
import type { InForce } from '../../pod/resources/actuation.ts';
import { qosClass } from '../../pod/resources/qos.ts';
import { type ShownResources, shownResources } from '../../pod/resources/shown.ts';
import { ALL_RESTARTING, isCleared, restartsAll } from '../../pod/runtime/restartAll.ts';
import type { PodRuntimeStatus, StartFailures } from '../../pod/runtime/seen.ts';
import { onePerFamily, podAddresses } from '../../text/addresses.ts';
import { rfc3339 } from '../../text/go/goTime.ts';
import { checkSandbox } from '../workers/podActions.ts';
import { isOwnedCondition, ownConditions, type ResizeProgress, stampTransitions } from './conditions.ts';
import { containerStatuses } from './containers.ts';
import type { DeviceHealthOf } from './messages.ts';
import { initialization, podPhase } from './phase.ts';

export interface StatusOverride {
  phase: PodPhase;
  reason: string;
  message: string;
  /** Why the node ends this pod: becomes condition DisruptionTarget with reason TerminationByKubelet. */
  disruption?: string;
}

export interface GenerateStatusInput {
  pod: Pod;
  status: PodRuntimeStatus;
  /** Last status of this UID that the status manager accepted; absent: `pod.status`. */
  old?: PodStatus | undefined;
  /** By container name. */
  failures: StartFailures;
  facts: NodeFacts;
  nowWallMs: number;
  /** Everything was stopped and nothing starts again. */
  podIsTerminal: boolean;
  deadlineExceeded?: boolean;
  /** Eviction, preemption, shutdown. */
  override?: StatusOverride;
  startedContainers?: ReadonlyMap<string, boolean>;
  readyContainers?: ReadonlyMap<string, boolean>;
  /** Names of containers whose postStart hook has not ended: they are shown as waiting. */
  hookAhead?: ReadonlySet<string>;
  /** Resources that were changed in place; absent: none. */
  inForce?: InForce | undefined;
  /** Health of the devices that a container has. Absent: it has none. */
  deviceHealth?: DeviceHealthOf | undefined;
  /** What was granted is not in force yet; with why, where that failed. */
  resizing?: ResizeProgress | undefined;
}

export const DEADLINE_OVERRIDE: StatusOverride = {
  phase: 'Failed',
  reason: 'DeadlineExceeded',
  message: 'Pod was active on the node longer than the specified deadline',
};

export function generatePodStatus(input: GenerateStatusInput): PodStatus {
  const { pod, facts } = input;
  // A status that says no phase (a bare start time) does not hide what the API last showed.
  const old = input.old?.phase === undefined ? { ...pod.status, ...input.old } : input.old;
  const restarting = restartsAll(pod, input.status, old);
  const lists = containerStatuses({
    ...{ pod, restarting, old },
    status: input.status,
    failures: input.failures,
    runtimeName: facts.runtimeName,
    recursiveReadOnly: facts.recursiveReadOnly,
    startedContainers: input.startedContainers,
    readyContainers: input.readyContainers,
    hookAhead: input.hookAhead,
    inForce: input.inForce,
    deviceHealth: input.deviceHealth,
  });
  const counted = [...lists.init, ...lists.regular];
  const progress = { podIsTerminal: input.podIsTerminal, ...initialization(pod, input.status) };
  const verdict = phaseVerdict(input, old, podPhase(pod, counted, progress));
  const foreign = foreignConditions(input, old);
  const own = ownConditions({
    pod,
    statuses: counted,
    phase: verdict.phase,
    sandboxReady: !checkSandbox(pod, input.status).changed,
    foreign,
    resizing: input.resizing,
    restartingAll: restarting && !isCleared(pod, input.status),
    old,
  });
  const generation = pod.metadata.generation;
  const conditions = stampTransitions([...foreign, ...own], old, input.nowWallMs).map((c) =>
    generation === undefined || !isOwnedCondition(c.type) || c.type === ALL_RESTARTING
      ? c
      : { ...c, observedGeneration: c.observedGeneration ?? generation },
  );
  const podIPs = addressesOf(input, old);
  const hostIPs = hostAddresses(facts, old);
  return {
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    phase: verdict.phase,
    conditions,
    ...(verdict.reason === undefined ? {} : { reason: verdict.reason }),
    ...(verdict.message === undefined ? {} : { message: verdict.message }),
    ...(hostIPs[0] === undefined ? {} : { hostIP: hostIPs[0], hostIPs: hostIPs.map((ip) => ({ ip })) }),
    ...(podIPs[0] === undefined ? {} : { podIP: podIPs[0], podIPs: podIPs.map((ip) => ({ ip })) }),
    startTime: old.startTime ?? pod.status.startTime ?? rfc3339(input.nowWallMs),
    ...(lists.init.length === 0 ? {} : { initContainerStatuses: lists.init }),
    containerStatuses: lists.regular,
    ...(lists.ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: lists.ephemeral }),
    qosClass: qosClass(pod),
    ...wholeOf(input, old),
  };
}

/** While nobody knows them (a node in a cloud whose object was not read yet), those that were shown. */
function hostAddresses(facts: NodeFacts, { hostIP, hostIPs }: PodStatus): string[] {
  if (facts.hostIPs.length > 0) return onePerFamily(facts.hostIPs);
  return hostIPs?.map(({ ip }) => ip) ?? (hostIP ? [hostIP] : []);
}

/** While a change is carried out, what was in force before it. */
function wholeOf({ pod, resizing }: GenerateStatusInput, old: PodStatus): ShownResources {
  const shown = shownResources(pod);
  return resizing === undefined || old.resources === undefined ? shown : { ...shown, resources: old.resources };
}

/**
 * Terminal phases, once said by the API or by this node, stay (trap 26). Reason and message live as long as the phase
 * they came with. A request from inside the node (deadline, eviction) names its own, unless the pod had ended otherwise.
 */
function phaseVerdict(
  input: GenerateStatusInput,
  old: PodStatus,
  computed: PodPhase,
): { phase: PodPhase; reason?: string; message?: string } {
  const api = input.pod.status;
  let phase = computed;
  if (isTerminal(api.phase)) phase = api.phase;
  else if (isTerminal(old.phase)) phase = old.phase;
  const sticky = isTerminal(api.phase) || isTerminal(old.phase);
  const asked = input.override ?? (input.deadlineExceeded === true ? DEADLINE_OVERRIDE : undefined);
  if (asked !== undefined && !sticky) {
    return { phase: asked.phase, reason: asked.reason, message: asked.message };
  }
  // An end that the API server tells of (what an earlier daemon said of it came late) is told with its reason.
  if (isTerminal(api.phase) && !isTerminal(old.phase))
    return { phase, ...(api.reason ? { reason: api.reason } : {}), ...(api.message ? { message: api.message } : {}) };
  if (phase !== old.phase) return { phase };
  const reason = old.reason || api.reason;
  const message = old.message || api.message;
  return { phase, ...(reason ? { reason } : {}), ...(message ? { message } : {}) };
}

/** Conditions of other writers as the API last showed them. That this node ends the pod stays once it was said. */
function foreignConditions(input: GenerateStatusInput, old: PodStatus): PodCondition[] {
  const shown = (input.pod.status.conditions ?? []).filter((c) => !isOwnedCondition(c.type));
  const disruption = input.override?.disruption;
  const target: PodCondition | undefined =
    disruption !== undefined
      ? { type: 'DisruptionTarget', status: 'True', reason: ENDED_HERE, message: disruption }
      : old.conditions?.find((c) => c.type === 'DisruptionTarget' && c.reason === ENDED_HERE);
  return target === undefined ? shown : [...shown.filter((c) => c.type !== 'DisruptionTarget'), target];
}
const ENDED_HERE = 'TerminationByKubelet';

/**
 * Addresses of the sandbox, one of each family, that of --node-ip first. A pod without a ready sandbox keeps those it had, or those
 * that the API shows of a sandbox that nobody here saw ready. Host network: the node's own, which may be others than before its restart.
 */
function addressesOf(input: GenerateStatusInput, old: PodStatus): string[] {
  const { pod, status } = input;
  const shown = status.sandboxes.length > 0 ? shownAddresses(pod.status) : [];
  const before = shownAddresses(old).length > 0 ? shownAddresses(old) : shown;
  const { hostIPs } = input.facts;
  if (pod.spec.hostNetwork === true) return hostIPs.length > 0 ? onePerFamily(hostIPs) : before;
  const seen = status.ips.length > 0 || status.sandboxes.some((s) => s.ready) ? status.ips : before;
  return podAddresses(seen, input.facts);
}

function shownAddresses({ podIP, podIPs }: PodStatus): string[] {
  return podIPs?.map(({ ip }) => ip) ?? (podIP === undefined ? [] : [podIP]);
}
