/** Pods that wait to be admitted, while the pod manager handles one event: each is judged beside the pods that hold room by then. */

import type { AllocationAnswer } from '../../allocation/messages.ts';
import type { Draft } from '../../data/sharedMap.ts';
import type { Pod } from '../../kube/types.ts';
import { fullName, sameName } from '../../pod/names.ts';
import { isTerminal } from '../../pod/phase.ts';
import { type RequestOf, type Room, rememberedRequest } from '../../pod/resources/requests.ts';
import { hasRun } from '../../pod/runtime/listed.ts';
import type { Cause } from '../../supervision/address.ts';
import type { Eviction, PodOpEvent } from '../manager/messages.ts';
import type { Facts, Out, Rec } from '../manager/records.ts';
import { isTooSoon, type Refusals, withRefusal } from '../manager/refusalPace.ts';
import type { ResizeDraft } from '../resize/draft.ts';
import { type Refusal, UNSUPPORTED } from './admission.ts';
import { type Judgement, judge, type MadeRoom, makeRoom } from './judge.ts';
import { type Asked, type Candidate, keepsRoom, type Wait } from './messages.ts';
import { DEFAULT_GRACE_SECONDS, lateOf, PREEMPTED_MESSAGE, PREEMPTING, PREEMPTING_MESSAGE, seenLeaving } from './preemption.ts';
import type { RoomCount } from './room.ts';

/** A pod that the labels or taints of the node keep away waits no longer than this for a fresher look at them. */
const PLACEMENT_WAIT_MS = 30_000;
/** After the answer that other pods have it. */
const ASK_AGAIN_MS = 400;
/** The same, for a pod that runs on meanwhile. */
const UNALLOCATED_AGAIN_MS = 10_000;
/** Before pods that run here are admitted again nothing is cleaned up: a plugin that never answers must not stop that. */
const READMIT_MAX_MS = 30_000;

/** What is asked of the pod manager's ledger. */
export interface AdmissionHost {
  readonly facts: Facts;
  readonly out: Out[];
  readonly records: ReadonlyMap<string, Rec>;
  readonly waiting: Draft<string, Candidate>;
  readonly room: RoomCount;
  readonly resizes: ResizeDraft;
  /** When the pod manager had read what was granted before. An older listing may lack what the workers before it had just started. */
  readonly beganMonoMs: number;
  refusals: Refusals;
  /** Never given twice. */
  newLife(): number;
  why(prior: readonly Cause[] | undefined, what: string): readonly Cause[];
  evict(rec: Rec, o: { eviction: Eviction; causes: readonly Cause[]; hurry: boolean }): void;
}

/** What becomes of a candidate; null: it waits. `pod`: with what it is granted. */
type Decision = { is: 'admitted'; pod: Pod } | { is: 'refused'; refusal: Refusal } | null;

export class Candidates {
  private readonly host: AdmissionHost;
  /** Pods whose room no other pod gets; null until it is asked for. */
  private keepers: Map<string, Pod> | null = null;

  constructor(host: AdmissionHost) {
    this.host = host;
  }

  /** Candidates are judged in another order than they came in: each counts again once it is judged. */
  countAnew(isCounted: (candidate: Candidate) => boolean): void {
    this.keepers = new Map();
    for (const c of this.host.waiting.values()) if (isCounted(c)) this.keep(c, this.keepers);
  }
  wait(candidate: Candidate): void {
    const { uid } = candidate.pod.metadata;
    if (this.host.waiting.get(uid) !== candidate) this.host.waiting.set(uid, candidate);
    this.keepers?.delete(uid);
    if (this.keepers !== null) this.keep(candidate, this.keepers);
  }
  /** The pod is not wanted any more, or not admitted. */
  release({ pod, asked }: Candidate): void {
    const { uid } = pod.metadata;
    this.host.waiting.delete(uid);
    this.keepers?.delete(uid);
    if (asked !== null) this.host.out.push({ to: 'release', uid });
  }

  /** What a source names anew is judged anew, and what it names no longer does not wait any more. */
  named({ source, pods, complete }: PodOpEvent): void {
    if (this.host.waiting.size === 0) return;
    const wanted = complete === undefined ? null : new Set(complete);
    const named = new Set(pods.map((p) => p.metadata.uid));
    for (const c of [...this.host.waiting.values()]) if (c.source === source && wanted?.has(c.pod.metadata.uid) === false) this.release(c);
    this.countAnew((c) => !named.has(c.pod.metadata.uid));
  }

  admit(candidate: Candidate): Decision {
    const { uid } = candidate.pod.metadata;
    const c = { ...candidate };
    const verdict = this.host.facts.inName(uid, () => this.verdict(c, this.judgement(c)));
    const { wait, asked, leaving } = candidate;
    if (verdict === 'unallocated') {
      const isLook = wait === verdict && this.host.waiting.get(uid) === candidate;
      this.wait(isLook && c.asked === asked ? candidate : { ...c, op: 'UPDATE', wait: verdict });
      return isLook ? null : { is: 'admitted', pod: this.host.resizes.take(c.pod) };
    }
    if (typeof verdict === 'string') {
      const isSame = verdict === wait && c.asked === asked && c.leaving === leaving && this.host.waiting.get(uid) === candidate;
      this.wait(isSame ? candidate : { ...c, wait: verdict });
      return null;
    }
    if (verdict === null) {
      this.release({ ...c, asked: null });
      return { is: 'admitted', pod: this.host.resizes.take(c.pod) };
    }
    if (this.staysPending(c, verdict)) {
      this.keepPending(candidate, c, verdict);
      return null;
    }
    if (this.isTooSoon(c)) {
      this.wait(
        wait === 'paced' && this.host.waiting.get(uid) === candidate ? candidate : { ...c, wait: 'paced', refusal: verdict.message },
      );
      return null;
    }
    this.release(c);
    this.host.refusals = withRefusal(this.host.refusals, c.pod, this.host.facts.monoMs);
    return { is: 'refused', refusal: verdict };
  }

  /**
   * A controller replaces a pod that fails by another one at once, and again without end. The kubelet keeps a pod Pending that wants
   * what it does not have, a volume without a plugin say. What another agent started here runs on as it is.
   */
  private staysPending({ pod, source }: Candidate, { reason }: Refusal): boolean {
    const { metadata, status } = pod;
    const isOwned = metadata.ownerReferences?.some((owner) => owner.controller === true) === true;
    const isNew = !this.host.records.has(metadata.uid) && !isTerminal(status.phase) && !metadata.deletionTimestamp;
    return reason === UNSUPPORTED && source === 'api' && isNew && (isOwned || this.runsHere(pod));
  }
  /** A new pod of the API alone: what runs here or ran is told at once. */
  private isTooSoon({ pod, source, sinceMonoMs }: Candidate): boolean {
    const { listing, monoMs } = this.host.facts;
    const isNew = source === 'api' && !this.host.records.has(pod.metadata.uid) && !hasRun(listing?.pods.get(pod.metadata.uid));
    return isNew && isTooSoon(this.host.refusals, pod, { sinceMonoMs, monoMs });
  }
  /** By the runtime's listing, and before there is one by what the API server was told last. */
  private runsHere({ metadata, status }: Pod): boolean {
    const { listing } = this.host.facts;
    return listing === undefined ? status.phase === 'Running' : hasRun(listing.pods.get(metadata.uid));
  }
  private keepPending(candidate: Candidate, c: Candidate, { message, reason }: Refusal): void {
    if (candidate.wait === 'held' && candidate.refusal === message && this.host.waiting.get(c.pod.metadata.uid) === candidate) return;
    this.wait({ ...c, wait: 'held', refusal: message });
    const end = this.runsHere(c.pod) ? 'the pod ran here already, and runs on as it is' : 'the pod is not started';
    this.host.out.push({ to: 'held', pod: c.pod, reason, message: `${message}; ${end}` });
  }

  /** Changes what `c` was asked about, and for which pods it waits. Null: it is admitted. */
  private verdict(c: Candidate, judged: Judgement): Refusal | Wait | null {
    const { pod } = c;
    switch (judged.is) {
      case 'refused':
        return judged.allocates ? this.unfit(c, judged.refusal) : judged.refusal;
      case 'fits':
        return judged.allocates || c.wait === 'unallocated' ? this.allocating(c) : null;
      case 'later':
        if (judged.first === 'node')
          this.host.out.push({ to: 'readNode', why: `pod ${fullName(pod)} does not match the node as it was last read` });
        return 'later';
      case 'short': {
        const made = this.madeRoom(c);
        // Nobody is refused for room that cannot be made for it.
        if (made.is === 'refused') return this.unfit(c, made.refusal);
        // A provider that refuses the pod refuses it whatever room there is: no other pod ends for it.
        return this.allocating(c) ?? this.makeRoom(c, made);
      }
    }
  }

  private judgement({ pod, sinceMonoMs }: Candidate): Judgement {
    const { listing, offer, monoMs, placementAtMonoMs, strictGroups, pressures, shutsDown } = this.host.facts;
    const [room, node] = [() => this.roomFor(pod), () => this.host.facts.placement];
    return judge(pod, {
      own: this.host.records.get(pod.metadata.uid),
      get room() {
        return room();
      },
      get node() {
        return node();
      },
      // A label that the scheduler went by may be younger than the last look at the node.
      nodeMayBeOld: offer.cluster && placementAtMonoMs < sinceMonoMs && monoMs - sinceMonoMs < PLACEMENT_WAIT_MS,
      ability: offer.ability,
      ...{ listing, strictGroups, pressures, shutsDown },
    });
  }

  private roomFor(pod: Pod): Room & { requests: RequestOf } {
    const { podsMax, allocatable } = this.host.facts.offer;
    return { others: this.others(pod), podsMax, allocatable, requests: rememberedRequest };
  }

  /** Which pods hold room beside this one. */
  others(pod: Pod): Pod[] {
    const others = new Map<string, Pod>();
    for (const [uid, known] of this.host.room.holders().pods) if (!sameName(known, pod)) others.set(uid, this.host.resizes.counted(known));
    if (this.keepers === null) this.countAnew(() => true);
    for (const [uid, form] of this.keepers ?? []) others.set(uid, form);
    others.delete(pod.metadata.uid);
    return [...others.values()];
  }
  private keep(candidate: Candidate, keepers: Map<string, Pod>): void {
    if (keepsRoom(candidate)) keepers.set(candidate.pod.metadata.uid, this.host.resizes.form(candidate.pod));
  }

  /** Nothing ends by asking. */
  private madeRoom(c: Candidate): MadeRoom {
    const { monoMs } = this.host.facts;
    const room = this.roomFor(c.pod);
    const { leaving } = this.host.room.holders();
    return makeRoom(c.pod, room, {
      leaves: (uid) => leaving.has(uid),
      late: () => {
        const going = room.others.filter(({ metadata: { uid } }) => leaving.has(uid));
        c.leaving = seenLeaving(c.leaving, going, monoMs);
        return lateOf(c.leaving, going, monoMs);
      },
    });
  }

  /** Null: there is room, once those that are late have ended. */
  private makeRoom({ pod }: Candidate, made: Exclude<MadeRoom, { is: 'refused' }>): 'room' | null {
    if (made.is === 'overdue') {
      const message = 'letting a critical pod in: others that make room for it did not end in time';
      this.host.out.push({ to: 'log', level: 'warn', pod, message, more: { late: made.late.map(fullName) } });
      return null;
    }
    for (const victim of made.victims) this.preempt(victim, pod, made.resource);
    return 'room';
  }

  private preempt(victim: Pod, pod: Pod, resource: string): void {
    const rec = this.host.records.get(victim.metadata.uid);
    // A pod without a worker was only just admitted: it ends as soon as it has one.
    if (rec === undefined || rec.worker === null) return;
    this.host.out.push({ to: 'preempted', pod: victim, for: pod, resource });
    const graceSeconds = victim.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
    const causes = this.host.why(undefined, `preempted for ${fullName(pod)}, which lacks ${resource}`);
    const eviction = { reason: PREEMPTING, message: PREEMPTING_MESSAGE, graceSeconds, disruption: PREEMPTED_MESSAGE };
    this.host.evict(rec, { eviction, causes, hurry: false });
  }

  /**
   * Asks about a pod that does not fit, as the reference does. What a provider refuses counts first. Nobody waits here for what others
   * release.
   */
  private unfit(c: Candidate, refusal: Refusal): Refusal | Wait {
    // It would hold what it is granted until it is refused.
    if (this.isTooSoon(c)) return refusal;
    const told = this.allocating(c);
    if (told === null || c.asked?.answer?.kind === 'later') return refusal;
    return told === 'allocating' ? 'unfit' : told;
  }

  /**
   * Allocates to a pod that fits. Null: it has all that it is to have alone, or is to have nothing, since it ends or has ended; or it
   * runs here already, which is not ended for it.
   */
  private allocating(c: Candidate): Refusal | Wait | null {
    const { pod } = c;
    const form = this.host.resizes.form(pod);
    if (isTerminal(pod.status.phase) || pod.metadata.deletionTimestamp) return null;
    if (!this.host.facts.offer.allocates(form)) {
      // It was counted before others made room for it.
      if (c.wait !== 'room') this.host.out.push({ to: 'unallocated' });
      return null;
    }
    const { listing } = this.host.facts;
    if (listing === undefined) return 'later';
    if (listing.atMonoMs <= this.host.beganMonoMs) {
      this.host.out.push({ to: 'relist', why: 'admission has to know what runs here' });
      return 'later';
    }
    // What was let in stays in, also while nothing of it is there.
    const runs = c.wait === 'unallocated' || hasRun(listing.pods.get(pod.metadata.uid));
    const answer = this.answered(c, form) ?? (runs ? this.overdue(c.asked) : null);
    if (answer === null && c.wait === 'unallocated') return 'unallocated';
    if (answer === null) return runs ? 'readmitting' : 'allocating';
    if (answer.kind === 'granted') return null;
    const why = answer.kind === 'later' ? answer.why : answer.message;
    if (runs) {
      if (c.wait !== 'unallocated')
        this.host.out.push({ to: 'log', level: 'warn', pod, message: `a pod that runs here already goes on as it is: ${why}` });
      return 'unallocated';
    }
    return answer.kind === 'later' ? 'allocating' : { reason: answer.reason, message: answer.message, about: 'room' };
  }

  /** Null: not known yet. Another answer than `granted` that is no refusal of the pod is asked for again at a look after some time. */
  private answered(c: Candidate, form: Pod): AllocationAnswer | null {
    const { monoMs } = this.host.facts;
    const known = c.asked;
    const runsOn = c.wait === 'unallocated';
    const isOpen = known?.answer?.kind === 'later' || (runsOn && known?.answer?.kind === 'refused');
    const isOld = known !== null && isOpen && monoMs - known.atMonoMs >= (runsOn ? UNALLOCATED_AGAIN_MS : ASK_AGAIN_MS);
    if (known?.pod === c.pod && !isOld) return known.answer;
    c.asked = { id: this.host.newLife(), pod: c.pod, answer: null, atMonoMs: monoMs, why: known?.why ?? '' };
    this.host.out.push({ to: 'allocate', pod: form, id: c.asked.id });
    return null;
  }

  private overdue(asked: Asked | null): AllocationAnswer | null {
    const isOver = asked !== null && this.host.facts.monoMs - asked.atMonoMs >= READMIT_MAX_MS;
    return isOver ? { kind: 'later', why: 'there is no answer yet' } : null;
  }
}
