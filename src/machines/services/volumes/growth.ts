/**
 * Growth of a claim's volume (KEP-556, KEP-1790): what the node does about it, and what it writes into the claim's status.
 * A controller gives the volume its new size; the node makes the file system use it and says so. Pure.
 */

import { compareQuantity, scaledCeil } from '../../kube/quantity.ts';
import { isRecord } from '../../shape/conform.ts';
import { listOf, partOf, recordOf, textOf, textsOf } from '../../shape/lenient.ts';

/** What the API says of the size of a claim and of its volume. Sizes are quantities, '' where there is none. */
export interface ClaimSizes {
  claim: { namespace: string; name: string; uid: string; resourceVersion: string };
  /** Name and capacity of the PersistentVolume. */
  volume: string;
  capacity: string;
  /** `spec.resources.requests.storage`: what the user wants. */
  requested: string;
  /** `status.capacity.storage`: what the user was given. */
  current: string;
  /** `status.allocatedResources.storage`: what the controller has made. */
  allocated: string;
  /** `status.allocatedResourceStatuses.storage`, '' when nothing is under way. */
  step: string;
  /** The controller is of a version that keeps `allocatedResources`. */
  recovers: boolean;
  /** Other nodes may use the volume at the same time, and each has to grow what it has of it. */
  everywhere: boolean;
  conditions: readonly { type: string; status: string }[];
  /** Keys of `status.allocatedResourceStatuses`. */
  steps: readonly string[];
}

const NOT_REQUIRED = 'volume.kubernetes.io/node-expansion-not-required';
const PENDING = 'NodeResizePending';
const IN_PROGRESS = 'NodeResizeInProgress';
const INFEASIBLE = 'NodeResizeInfeasible';
const ERROR_CONDITION = 'NodeResizeError';
/** Conditions that are about growth; all go when it has ended. */
const RESIZE_CONDITIONS: readonly string[] = ['FileSystemResizePending', 'Resizing', 'ControllerResizeError', ERROR_CONDITION];

/** A quantity may be a number in hand-written objects. */
const sizeOf = (value: unknown): string => (typeof value === 'number' ? String(value) : textOf(value));

/** `pv` null: only the claim is known. */
export function claimSizes(pvc: unknown, pv: unknown): ClaimSizes {
  const metadata = partOf(pvc, 'metadata');
  const spec = partOf(pvc, 'spec');
  const status = partOf(pvc, 'status');
  const steps = partOf(status, 'allocatedResourceStatuses');
  const step = textOf(steps.storage);
  return {
    claim: {
      namespace: textOf(metadata.namespace),
      name: textOf(metadata.name),
      uid: textOf(metadata.uid),
      resourceVersion: textOf(metadata.resourceVersion),
    },
    volume: textOf(spec.volumeName),
    capacity: sizeOf(partOf(partOf(pv, 'spec'), 'capacity').storage),
    requested: sizeOf(partOf(partOf(spec, 'resources'), 'requests').storage),
    current: sizeOf(partOf(status, 'capacity').storage),
    allocated: sizeOf(partOf(status, 'allocatedResources').storage),
    step,
    recovers: step !== '' || isRecord(status.allocatedResources),
    everywhere: textsOf(spec.accessModes).includes('ReadWriteMany') && partOf(metadata, 'annotations')[NOT_REQUIRED] === undefined,
    conditions: listOf(status.conditions).map((c) => ({ type: textOf(recordOf(c).type), status: textOf(recordOf(c).status) })),
    steps: Object.keys(steps),
  };
}

/** `a` is a size, and larger than `b`. */
export const isMore = (a: string, b: string): boolean => a !== '' && compareQuantity(a, b) > 0;

/** A controller is at work, or has done its part: the claim is worth another look soon. */
export function isGrowing(s: ClaimSizes): boolean {
  if (s.step.endsWith('Infeasible')) return false;
  return isMore(s.requested, s.current) || isMore(s.capacity, s.current) || s.step !== '';
}

/** `report`: the status of the claim says what becomes of it; else another node has said so already. */
export type GrowthPlan =
  | { kind: 'nothing' }
  /** No call is needed for it to have that size. */
  | { kind: 'has'; size: string }
  | { kind: 'grow'; size: string; report: boolean; recovers: boolean; infeasible: boolean };

/** What the node knows beyond the API. */
export interface GrowthKnown {
  /** The size that the file system on this node was made to use last; null: as the claim's status says. */
  size: string | null;
  /** The driver has refused to grow it, and nothing is under way. */
  refused: boolean;
}

export function growthPlan(s: ClaimSizes, known: GrowthKnown): GrowthPlan {
  const size = known.size ?? s.current;
  if (size === '' || !isMore(s.capacity, size)) return { kind: 'nothing' };
  if (!s.recovers) {
    return { kind: 'grow', size: s.capacity, report: isMore(s.capacity, s.current), recovers: false, infeasible: false };
  }
  const done = s.step === '' && compareQuantity(s.current, s.allocated) >= 0;
  if (done) {
    return s.everywhere && isMore(s.allocated, size)
      ? { kind: 'grow', size: s.allocated, report: false, recovers: true, infeasible: false }
      : { kind: 'has', size: s.allocated };
  }
  if (s.step !== PENDING && s.step !== IN_PROGRESS) return { kind: 'nothing' };
  // The user has asked for another size since: the controller may go there, which it does not while this one is open.
  const infeasible = known.refused && compareQuantity(s.requested, s.allocated) !== 0;
  return { kind: 'grow', size: s.allocated, report: true, recovers: true, infeasible };
}

/** The largest number that a driver can be told. */
const BYTES_MAX = 2n ** 63n - 1n;

/** A whole number as text. */
export function requiredBytes(size: string): string {
  const bytes = scaledCeil(size, 0) ?? 0n;
  return String(bytes > BYTES_MAX ? BYTES_MAX : bytes);
}

interface ClaimPatch {
  metadata?: { resourceVersion: string };
  status: Record<string, unknown>;
}

/** The claim's status before the driver is asked. Null: the claim says so already. */
export function inProgressPatch(s: ClaimSizes): ClaimPatch | null {
  if (s.step === IN_PROGRESS) return null;
  return { metadata: { resourceVersion: s.claim.resourceVersion }, status: { allocatedResourceStatuses: { storage: IN_PROGRESS } } };
}

export function finishedPatch(s: ClaimSizes, size: string): ClaimPatch {
  const gone = s.conditions.filter((c) => RESIZE_CONDITIONS.includes(c.type)).map(({ type }) => ({ $patch: 'delete', type }));
  const others = s.steps.some((key) => key !== 'storage');
  return {
    metadata: { resourceVersion: s.claim.resourceVersion },
    status: {
      capacity: { storage: size },
      ...(s.steps.length === 0 ? {} : { allocatedResourceStatuses: others ? { storage: null } : null }),
      ...(gone.length === 0 ? {} : { conditions: gone }),
    },
  };
}

/** The claim's status after a failure. Null: nothing of it is news. `infeasible`: the node tries this size no more. */
export function failedPatch(s: ClaimSizes, o: { message: string; infeasible: boolean; now: string }): ClaimPatch | null {
  const said = s.conditions.some((c) => c.type === ERROR_CONDITION && c.status === 'True');
  if (said && !o.infeasible) return null;
  const message = `failed to expand pvc with ${o.message}`;
  const condition = { type: ERROR_CONDITION, status: 'True', lastProbeTime: null, lastTransitionTime: o.now, message };
  return {
    status: {
      ...(o.infeasible ? { allocatedResourceStatuses: { storage: INFEASIBLE } } : {}),
      ...(said ? {} : { conditions: [condition] }),
    },
  };
}

/**
 * Why a volume did not grow. `unsupported`: its driver never does it. `inUse`: not while it is published. `infeasible`: it
 * cannot have that size. `final`: it failed. `open`: what became of it is not known.
 */
export type GrowthFailureKind = 'unsupported' | 'inUse' | 'infeasible' | 'final' | 'open';

/** gRPC codes FailedPrecondition; InvalidArgument, NotFound, OutOfRange. */
const IN_USE_CODE = 9;
const INFEASIBLE_CODES: readonly number[] = [3, 5, 11];

/** `final`: nothing is under way any more. */
export function failureOfCode(code: number, final: boolean): GrowthFailureKind {
  if (code === IN_USE_CODE) return 'inUse';
  if (INFEASIBLE_CODES.includes(code)) return 'infeasible';
  return final ? 'final' : 'open';
}
