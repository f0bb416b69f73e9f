/** Whether a pod is admitted, from facts about the node and the pods on it. Pure: the caller gathers the facts and acts on the answer. */
import type { Pod } from '../../kube/types.ts';
import type { NodePressure } from '../../nodeFacts.ts';
import { isCritical, isTerminal } from '../../pod/phase.ts';
import { type RequestOf, type Room, shortages } from '../../pod/resources/requests.ts';
import { hasRun } from '../../pod/runtime/listed.ts';
import type { RuntimePodsView } from '../../pod/runtime/seen.ts';
import { sameDesired } from '../../pod/sameDesired.ts';
import { SET_ASIDE_ANNOTATION } from '../../pod/setAside.ts';
import { pressureRefusal } from '../../reclaim/eviction/admission.ts';
import { NOT_ADMITTED, NOT_ADMITTED_MESSAGE } from '../../reclaim/nodeShutdown/messages.ts';
import { evictionOf, isRefused, isWanted, type LifeState, type PodRecord, refusalOf } from '../manager/messages.ts';
import { admit, asksForStrictGroups, type NodeAbility, type Placement, type Refusal, refusedForItself } from './admission.ts';
import { choosePreempted } from './preemption.ts';

/** What a pod is judged by. `room` and `node` are getters: a pod that was admitted before needs neither. */
export interface AdmissionFacts {
  /** The pod manager's record of its UID. */
  readonly own: PodRecord | undefined;
  /** Undefined: the runtime has not been listed yet. */
  readonly listing: RuntimePodsView | undefined;
  readonly room: Room;
  readonly node: Placement;
  /** Labels and taints of the node may have changed since they were last read. */
  readonly nodeMayBeOld: boolean;
  readonly ability: Omit<NodeAbility, 'strictGroups'>;
  /** {@link NodeAbility.strictGroups}; null: the runtime has not been asked yet. */
  readonly strictGroups: boolean | null;
  readonly pressures: readonly NodePressure[];
  readonly shutsDown: boolean;
}

export type Judgement =
  /** `allocates`: the coordinator of allocation is asked before it is admitted. */
  | { is: 'fits'; allocates: boolean }
  /** `allocates`: the coordinator is asked before, and its own refusal counts first. */
  | { is: 'refused'; refusal: Refusal; allocates: boolean }
  /** Something has to be looked at first. */
  | { is: 'later'; first: 'runtime' | 'listing' | 'node' }
  /** A critical pod that lacks only room: see {@link makeRoom}. */
  | { is: 'short' };

export function judge(pod: Pod, facts: AdmissionFacts): Judgement {
  const aside = pod.metadata.annotations?.[SET_ASIDE_ANNOTATION];
  if (aside !== undefined) return refused({ about: 'pod', reason: 'SetAside', message: aside });
  // config was restarted and sends every pod again: a refusal of this definition stands.
  if (facts.own !== undefined && stands(facts.own, pod)) return { is: 'fits', allocates: false };
  const { strictGroups, ability } = facts;
  if (facts.own !== undefined && !isRefused(facts.own) && isWanted(facts.own)) {
    // It was admitted before. A new definition of a pod with a pinned UID may bring in what this node cannot honour.
    const refusal = refusedForItself(pod, { ...ability, strictGroups: strictGroups ?? true });
    return refusal === null ? { is: 'fits', allocates: false } : refused(refusal);
  }
  if (asksForStrictGroups(pod) && strictGroups === null) return { is: 'later', first: 'runtime' };
  const refusal = refusalFor(pod, facts);
  if (refusal === null) return FITS;
  if (refusal.about === 'pod') return refused(refusal);
  // It has ended, and takes nothing.
  if (isTerminal(pod.status.phase)) return FITS;
  // A pod that runs here already keeps its place, whatever became of the node.
  const { listing } = facts;
  if (listing === undefined) return { is: 'later', first: 'listing' };
  if (hasRun(listing.pods.get(pod.metadata.uid))) return FITS;
  const going = Boolean(pod.metadata.deletionTimestamp);
  if (refusal.short !== undefined && isCritical(pod) && !going && !facts.shutsDown) return { is: 'short' };
  if (refusal.about === 'placement' && facts.nodeMayBeOld) return { is: 'later', first: 'node' };
  // The reference allocates after it looked at pressure, and before it looks at room and placement.
  return refused(refusal, refusal.about !== 'state');
}

const FITS = { is: 'fits', allocates: true } as const;

function refused(refusal: Refusal, allocates = false): Judgement {
  return { is: 'refused', refusal, allocates };
}

/** The reference asks about pressure first. */
function refusalFor(pod: Pod, { room, node, ability, strictGroups, pressures, shutsDown }: AdmissionFacts): Refusal | null {
  const judged = admit({ ...room, pod, node, ability: { ...ability, strictGroups: strictGroups ?? false } });
  if (judged?.about === 'pod') return judged;
  const pressure = pressureRefusal(pod, pressures);
  if (pressure !== null) return { ...pressure, about: 'state' };
  return judged ?? (shutsDown ? { reason: NOT_ADMITTED, message: NOT_ADMITTED_MESSAGE, about: 'state' } : null);
}

export type MadeRoom =
  | { is: 'refused'; refusal: Refusal }
  /** These are to end too; `resource`: what there is too little of. None: those on their way will be enough. */
  | { is: 'waits'; victims: readonly Pod[]; resource: string }
  /** These should have ended by now, and keep it out no longer: what the runtime cannot stop must not stop the node. */
  | { is: 'overdue'; late: readonly Pod[] };

/** Other pods make room for a critical one. `leaves`: ends without being asked; `late`: those of them whose time is over. */
export function makeRoom(
  pod: Pod,
  room: Room & { requests: RequestOf },
  { leaves, late }: { leaves(uid: string): boolean; late(): readonly Pod[] },
): MadeRoom {
  const staying = room.others.filter(({ metadata: { uid } }) => !leaves(uid));
  const short = shortages(pod, { ...room, others: staying });
  const choice = choosePreempted(pod, { pods: staying, short, requests: room.requests });
  if (!choice.ok) {
    const error = `preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: ${choice.missing}`;
    const message = `Unexpected error while attempting to recover from admission failure: ${error}`;
    return { is: 'refused', refusal: { reason: 'UnexpectedAdmissionError', message, about: 'room' } };
  }
  const waits = { is: 'waits', victims: choice.pods, resource: short[0]?.resource ?? '' } as const;
  if (choice.pods.length > 0) return waits;
  const over = late();
  const fits = () => shortages(pod, { ...room, others: room.others.filter((p) => !over.includes(p)) }).length === 0;
  return over.length > 0 && fits() ? { is: 'overdue', late: over } : waits;
}

/** Whether this pod holds room. `listing` undefined: perhaps it runs. */
export function holdsRoom(rec: PodRecord, listing: RuntimePodsView | undefined): boolean {
  if (isRefused(rec)) return false;
  const phase = rec.worker?.phase ?? (isTerminal(rec.pod.status.phase) ? 'finished' : 'waiting');
  if (phase === 'finished' || phase === 'terminated') return false;
  // It had ended, or was refused, before it came to be wound down: only what is left of it holds room.
  const over = isTerminal(rec.pod.status.phase) || (rec.renewed === true && Boolean(rec.pod.metadata.deletionTimestamp));
  if (!over) return true;
  return phase === 'terminating' && (listing === undefined || (listing.pods.get(rec.pod.metadata.uid)?.sandboxes.length ?? 0) > 0);
}

/** Its end was asked for, so it releases its room before long. */
export function isLeaving(record: PodRecord): boolean {
  return !isWanted(record) || refusalOf(record) !== null || evictionOf(record) !== null || record.worker?.phase === 'terminating';
}

/**
 * Whether a pod was refused as it is defined now. It stays so while it is defined like that, whatever room or resources there
 * are by then: a phase that is final is not left. The node's pressure is a verdict of its own, and a pod that the API server
 * shows to have failed needs none.
 */
export function stands(rec: { state: LifeState | null; pod: Pod }, pod: Pod): boolean {
  return (
    isRefused(rec) && rec.state?.is !== 'leaving' && evictionOf(rec) === null && !isTerminal(pod.status.phase) && sameDesired(rec.pod, pod)
  );
}
