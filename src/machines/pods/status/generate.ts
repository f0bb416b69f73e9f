/** The API status of a pod, from its definition, the runtime and what was said before: the only place where one is made. */

import { shareData } from '../../data/sharedData.ts';
import type { Pod, PodStatus } from '../../kube/types.ts';
import type { NodeFacts } from '../../nodeFacts.ts';
import { DEADLINE_OVERRIDE, type StatusOverride } from '../../pod/ends/byNode.ts';
import { shownResources } from '../../pod/resources/podLevel.ts';
import { qosClass } from '../../pod/resources/qos.ts';
import type { InForce } from '../../pod/resources/reported.ts';
import { ALL_RESTARTING, isCleared, restartsAll } from '../../pod/runtime/restartAll.ts';
import { checkSandbox } from '../../pod/runtime/runtimeStatus.ts';
import type { PodRuntimeStatus, StartFailures } from '../../pod/runtime/seen.ts';
import { rfc3339 } from '../../text/go/goTime.ts';
import { hostAddresses, podAddressesOf } from './addresses.ts';
import { foreignConditions, isOwnedCondition, ownConditions, type ResizeProgress, stampTransitions } from './conditions.ts';
import { containerStatuses } from './containers.ts';
import type { DeviceHealthOf } from './messages.ts';
import { initialization, phaseVerdict, podPhase } from './phase.ts';

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
  /** What was granted is not in force yet; with why, where that failed, and with what was in force. */
  resizing?: ResizeProgress | undefined;
}

export function generatePodStatus(input: GenerateStatusInput): PodStatus {
  const { pod, facts } = input;
  // A status that says no phase (a bare start time) does not hide what the API last showed.
  const old = input.old?.phase === undefined ? { ...pod.status, ...input.old } : input.old;
  const restarting = restartsAll(pod, input.status, old);
  const sandboxReady = !checkSandbox(pod, input.status).changed;
  const lists = containerStatuses({
    ...input,
    old,
    restarting,
    runtimeName: facts.runtimeName,
    recursiveReadOnly: facts.recursiveReadOnly,
  });
  const counted = [...lists.init, ...lists.regular];
  const progress = { podIsTerminal: input.podIsTerminal, ...initialization(pod, input.status) };
  const asked = input.override ?? (input.deadlineExceeded === true ? DEADLINE_OVERRIDE : undefined);
  const verdict = phaseVerdict(pod, { old, computed: podPhase(pod, counted, progress), asked });
  const foreign = foreignConditions(pod, old, input.override?.disruption);
  const own = ownConditions({
    pod,
    statuses: counted,
    phase: verdict.phase,
    sandboxReady,
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
  const hostIPs = hostAddresses(facts, old);
  const podIPs = podAddressesOf({ pod, status: input.status, facts }, old);
  const { resources: granted, ...shown } = shownResources(pod);
  // While a change is carried out, what was in force before it. Nothing where nobody knows that.
  const resources = input.resizing === undefined ? granted : input.resizing.was;
  // Thousands of pods keep theirs, most of which says the same each time.
  return shareData(old, {
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
    ...shown,
    ...(resources === undefined ? {} : { resources }),
  });
}
