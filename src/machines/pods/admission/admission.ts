/**
 * Hard admission of one pod on this node (pod lifecycle 2.6): what the pod asks for, then what the node can hold, in
 * the order of the reference. The first refusal counts. Pure.
 */

import { nodeMismatch } from '../../kube/nodeSelector.ts';
import type { Pod, Taint } from '../../kube/types.ts';
import { beyondBounds } from '../../pod/bounds.ts';
import { isCritical, isOfApi } from '../../pod/phase.ts';
import { unclaimed } from '../../pod/resources/claims.ts';
import { type RequestOf, shortages } from '../../pod/resources/requests.ts';
import { enumerated } from '../../text/errorList.ts';
import { wantsAppArmor } from './ability/appArmor.ts';
import { missingFeatures, missingFeaturesText } from './ability/declaredFeatures.ts';
import { forbiddenSysctl, type SysctlPatterns } from './ability/sysctls.ts';
import { takenPort } from './hostPorts.ts';
import { podFields } from './supported.ts';
import { taintText, untolerated } from './taints.ts';

export interface Refusal {
  reason: string;
  message: string;
  /**
   * The node as it is now is in the way, not the pod: its `room` (a pod that runs here already keeps its place), its `state`
   * (pressure, shutdown), or its `placement`, labels and taints, which may have changed since they were last read.
   */
  about: 'pod' | 'room' | 'state' | 'placement';
  /** Nothing is in the way but that too little of this resource is left: others may have to make room for a critical pod. */
  short?: string;
}

/** What pods may select or must tolerate of the node. */
export interface Placement {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
}

export interface AdmissionInput {
  pod: Pod;
  /** Pods that hold room: not terminal, and not the predecessor of the same full name. */
  others: readonly Pod[];
  podsMax: number;
  allocatable: Readonly<Record<string, string>>;
  node: Placement;
  /** Default: worked out anew. */
  requests?: RequestOf | undefined;
  ability: NodeAbility;
}

/** What this node, its kernel and its runtime can do. */
export interface NodeAbility {
  readonly sysctls: SysctlPatterns;
  /** The runtime gives a container exactly the groups that the pod lists, where it is asked to. */
  readonly strictGroups: boolean;
  /** A cgroup of the node's own holds each pod as a whole. Default false. */
  readonly podGroups?: boolean;
  /** Extended resources are allocated: whether there are any is found out at allocation. Default false. */
  readonly extendedResources?: boolean;
  /** The kernel enforces profiles of AppArmor. Default true. */
  readonly appArmor?: boolean;
  /** Features that the node declares. Absent: pods are not asked what they need (gate NodeDeclaredFeatures is off). */
  readonly declaredFeatures?: readonly string[] | undefined;
}

/** What this node offers. */
export interface Offer {
  podsMax: number;
  allocatable: Readonly<Record<string, string>>;
  ability: Omit<NodeAbility, 'strictGroups'>;
  /** There is an API server, where labels and taints may have changed. */
  cluster: boolean;
  /** Something is allocated to this pod before it is admitted. */
  allocates(pod: Pod): boolean;
  /** Resources that are not changed in place, since a Guaranteed pod has them alone. */
  fixed: readonly string[];
}

/** All that this node runs on. */
const NODE_OS = 'linux';
const OS_LABEL = 'kubernetes.io/os';

export function admit(input: AdmissionInput): Refusal | null {
  return refusedForItself(input.pod, input.ability) ?? unfit(input);
}

/** What this node can never do. */
export function refusedForItself(pod: Pod, ability: NodeAbility): Refusal | null {
  const about = 'pod';
  const beyond = beyondBounds(pod);
  if (beyond.length > 0) return { reason: 'PodOutOfBounds', message: enumerated(beyond), about };
  const sysctl = forbiddenSysctl(pod, ability.sysctls);
  if (sysctl !== null) return { reason: 'SysctlForbidden', message: sysctl, about };
  if ((pod.metadata.labels?.[OS_LABEL] ?? NODE_OS) !== NODE_OS) {
    const message = "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label";
    return { reason: 'PodOSSelectorNodeLabelDoesNotMatch', message, about };
  }
  if ((pod.spec.os?.name ?? NODE_OS) !== NODE_OS) {
    return { reason: 'PodOSNotSupported', message: "Failed to admit pod as the OS field doesn't match node OS", about };
  }
  if (asksForStrictGroups(pod) && !ability.strictGroups) {
    const message = 'SupplementalGroupsPolicy=Strict is not supported in this node';
    return { reason: 'SupplementalGroupsPolicyNotSupported', message, about };
  }
  // What runs already was given its profile, or never will be.
  if (ability.appArmor === false && (pod.status.phase ?? 'Pending') === 'Pending' && wantsAppArmor(pod)) {
    return { reason: 'AppArmor', message: 'Cannot enforce AppArmor: AppArmor is not enabled on the host', about };
  }
  const lacking = ability.declaredFeatures === undefined ? [] : missingFeatures(pod, ability.declaredFeatures);
  if (lacking.length > 0) return { reason: 'PodFeatureUnsupported', message: missingFeaturesText(lacking), about };
  const { podGroups = false, extendedResources = false } = ability;
  // A pod that waits is judged again and again.
  let known = JUDGED_FIELDS.get(pod);
  if (known === undefined || known.podGroups !== podGroups || known.extendedResources !== extendedResources) {
    known = { podGroups, extendedResources, refusal: unsupported(pod, { podGroups, extendedResources }) };
    JUDGED_FIELDS.set(pod, known);
  }
  return known.refusal;
}

const JUDGED_FIELDS = new WeakMap<Pod, { podGroups: boolean; extendedResources: boolean; refusal: Refusal | null }>();

/** Reason of a pod that sets what this node must refuse. */
export const UNSUPPORTED = 'UnsupportedField';

/** What it sets that this node does not have. `extendedResources`: except for these. */
export function unsupported(pod: Pod, o: { podGroups: boolean; extendedResources: boolean }): Refusal | null {
  const { refused: fields } = podFields(unclaimed(pod), { api: isOfApi(pod), ...o });
  if (fields.length === 0) return null;
  const message = `this node cannot honour ${fields.length === 1 ? 'the field' : 'the fields'} ${fields.join(', ')}`;
  return { reason: UNSUPPORTED, message, about: 'pod' };
}

/** Whether the runtime can keep this is to be asked before the pod is judged. */
export function asksForStrictGroups(pod: Pod): boolean {
  return pod.spec.securityContext?.supplementalGroupsPolicy === 'Strict';
}

/** The predicates of the reference, with what exactly is in the way. */
function unfit(input: AdmissionInput): Refusal | null {
  const [short] = shortages(unclaimed(input.pod), input);
  if (short === undefined) return misplaced(input);
  // Room can be made for a critical pod; what else is in its way is what keeps it from running.
  const other = isCritical(input.pod) ? misplaced(input) : null;
  if (other !== null) return other;
  const { resource, requested, used, capacity } = short;
  const message = `Node didn't have enough resource: ${resource}, requested: ${requested}, used: ${used}, capacity: ${capacity}`;
  return { reason: `OutOf${resource}`, message, about: 'room', short: resource };
}

/** What is in the way although there may be room. */
function misplaced({ pod, others, node }: AdmissionInput): Refusal | null {
  const mismatch = nodeMismatch(pod.spec, node);
  if (mismatch !== null) {
    const message = `Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector (${mismatch})`;
    return { reason: 'NodeAffinity', message, about: 'placement' };
  }
  if (pod.spec.nodeName && pod.spec.nodeName !== node.name) {
    const detail = `${pod.spec.nodeName}, this is ${node.name}`;
    const message = `Predicate NodeName failed: node(s) didn't match the requested node name (${detail})`;
    return { reason: 'NodeName', message, about: 'pod' };
  }
  const port = takenPort(pod, others);
  if (port !== null) {
    const message = `Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports (${port})`;
    return { reason: 'NodePorts', message, about: 'room' };
  }
  // Only what would also drive out a running pod counts: whether to schedule here was decided elsewhere.
  const taint = isOfApi(pod) ? untolerated(node.taints, pod.spec.tolerations ?? [], 'NoExecute') : null;
  if (taint !== null) {
    const message = `Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate (${taintText(taint)})`;
    return { reason: 'TaintToleration', message, about: 'placement' };
  }
  return null;
}
