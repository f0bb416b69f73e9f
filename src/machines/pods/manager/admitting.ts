/** Admission within one step of the pod manager: candidates are judged beside the pods that hold room by then. */

import { wantsExclusive } from '../../allocation/cpus/policy.ts';
import { asksForDevices } from '../../allocation/devices/allocate.ts';
import type { AllocationAnswer } from '../../allocation/messages.ts';
import type { Pod } from '../../kube/types.ts';
import { byCreation, fullName, sameName } from '../../pod/names.ts';
import { isTerminal } from '../../pod/phase.ts';
import { type RequestOf, type Room, rememberedRequest } from '../../pod/resources/requests.ts';
import { hasRun } from '../../pod/runtime/listed.ts';
import { type Cause, joinCauses } from '../../supervision/address.ts';
import { type Refusal, UNSUPPORTED } from '../admission/admission.ts';
import { holdsRoom, isLeaving, type Judgement, judge, makeRoom } from '../admission/judge.ts';
import { DEFAULT_GRACE_SECONDS, lateOf, PREEMPTING, PREEMPTING_MESSAGE, seenLeaving } from '../admission/preemption.ts';
import { ResizeDraft } from '../resize/draft.ts';
import { LedgerDraft } from './draft.ts';
import { type Asked, type Candidate, type Eviction, evictedStatus, type PodManagerEvent, type PodOpEvent, type Wait } from './messages.ts';
import { type AllocatorName, type Facts, failing, type Holders, keepsRoom, type LifeState, live, type Rec, type Step } from './records.ts';

/** A pod that the labels or taints of the node keep away waits no longer than this for a fresher look at them. */
const PLACEMENT_WAIT_MS = 30_000;
/** After the answer that other pods have it. */
const ASK_AGAIN_MS = 400;
/** Before pods that run here are admitted again nothing is cleaned up: a plugin that never answers must not stop that. */
const READMIT_MAX_MS = 30_000;

type Counted = { listing: Facts['listing']; pods: Map<string, Pod>; leaving: Set<string> };

export abstract class Admitting extends LedgerDraft {
  /** In place of those of the ledger; null while these are right. */
  private counted: Counted | null = null;
  /** Candidates whose room no other pod gets; null until it is asked for. */
  private keepers: Map<string, Pod> | null = null;
  private resizeDraft: ResizeDraft | null = null;

  protected abstract letIn(pod: Pod, candidate: Candidate): void;
  protected abstract refuse(candidate: Candidate, refusal: Refusal): void;

  override finish(): Step {
    const { resizeDraft } = this;
    const resizes =
      resizeDraft === null ? this.ledger.resizes : resizeDraft.finish((uid) => this.records.has(uid) || this.candidates.has(uid));
    const step = super.finish();
    return { ...step, ledger: { ...step.ledger, resizes, holders: this.counted ?? this.ledger.holders } };
  }
  protected get resizes(): ResizeDraft {
    this.resizeDraft ??= new ResizeDraft(this.ledger.resizes, {
      facts: this.facts,
      out: this.out,
      record: (uid) => this.records.get(uid),
      heard: () => this.isReady(),
      others: (pod) => this.others(pod),
    });
    return this.resizeDraft;
  }

  protected override put(uid: string, rec: Rec): void {
    super.put(uid, rec);
    this.recount(uid, rec);
  }
  protected override drop(rec: Rec): void {
    super.drop(rec);
    this.recount(rec.pod.metadata.uid, null);
  }

  /** Candidates are judged in another order than they came in: each counts again once it is judged. */
  protected countAnew(isCounted: (candidate: Candidate) => boolean): void {
    this.keepers = new Map();
    for (const c of this.candidates.values()) if (isCounted(c)) this.keep(c, this.keepers);
  }
  protected wait(candidate: Candidate): void {
    const { uid } = candidate.pod.metadata;
    if (this.candidates.get(uid) !== candidate) this.candidates.set(uid, candidate);
    this.keepers?.delete(uid);
    if (this.keepers !== null) this.keep(candidate, this.keepers);
  }
  /** It is not wanted any more, or not admitted. */
  protected release({ pod, asked }: Candidate): void {
    const { uid } = pod.metadata;
    this.candidates.delete(uid);
    this.keepers?.delete(uid);
    if (asked !== null) this.out.push({ to: 'release', uid });
  }

  /** The oldest first. What the source names anew is judged anew, and what it names no longer does not wait any more. */
  protected additions({ source, pods, complete }: PodOpEvent): Pod[] {
    if (this.candidates.size > 0) {
      const wanted = complete === undefined ? null : new Set(complete);
      const named = new Set(pods.map((p) => p.metadata.uid));
      for (const c of [...this.candidates.values()]) if (c.source === source && wanted?.has(c.pod.metadata.uid) === false) this.release(c);
      this.countAnew((c) => !named.has(c.pod.metadata.uid));
    }
    return [...pods].sort(byCreation);
  }

  protected admit(candidate: Candidate): void {
    const { uid } = candidate.pod.metadata;
    const c = { ...candidate };
    const verdict = this.facts.inName(uid, () => this.verdict(c, this.judgement(c)));
    const { wait, asked, leaving } = candidate;
    if (typeof verdict === 'string') {
      const isSame = verdict === wait && c.asked === asked && c.leaving === leaving && this.candidates.get(uid) === candidate;
      this.wait(isSame ? candidate : { ...c, wait: verdict });
      return;
    }
    if (verdict === null) {
      this.release({ ...c, asked: null });
      this.letIn(this.resizes.take(c.pod), c);
    } else if (this.staysPending(c, verdict)) {
      this.keepPending(candidate, c, verdict);
    } else {
      this.release(c);
      this.refuse(c, verdict);
    }
  }

  /**
   * A controller replaces a pod that fails by another one at once, and again without end. The kubelet keeps a pod Pending that wants
   * what it does not have, a volume without a plugin say. What another agent started here runs on as it is.
   */
  private staysPending({ pod, source }: Candidate, { reason }: Refusal): boolean {
    const { metadata, status } = pod;
    const isOwned = metadata.ownerReferences?.some((owner) => owner.controller === true) === true;
    const isNew = !this.records.has(metadata.uid) && !isTerminal(status.phase) && !metadata.deletionTimestamp;
    return reason === UNSUPPORTED && source === 'api' && isNew && (isOwned || this.runsHere(pod));
  }
  /** By the runtime's listing, and before there is one by what the API server was told last. */
  private runsHere({ metadata, status }: Pod): boolean {
    const { listing } = this.facts;
    return listing === undefined ? status.phase === 'Running' : hasRun(listing.pods.get(metadata.uid));
  }
  private keepPending(candidate: Candidate, c: Candidate, { message, reason }: Refusal): void {
    if (candidate.wait === 'held' && candidate.refusal === message && this.candidates.get(c.pod.metadata.uid) === candidate) return;
    this.wait({ ...c, wait: 'held', refusal: message });
    const end = this.runsHere(c.pod) ? 'the pod ran here already, and runs on as it is' : 'the pod is not started';
    this.out.push({ to: 'held', pod: c.pod, reason, message: `${message}; ${end}` });
  }

  /** Changes what `c` was asked about, and for which pods it waits. Null: it is admitted. */
  private verdict(c: Candidate, judged: Judgement): Refusal | Wait | null {
    const { pod } = c;
    switch (judged.is) {
      case 'refused':
        return judged.refusal;
      case 'fits':
        return judged.allocates ? this.allocating(c) : null;
      case 'later':
        if (judged.first === 'node')
          this.out.push({ to: 'readNode', why: `pod ${fullName(pod)} does not match the node as it was last read` });
        return 'later';
      case 'short':
        // There is room once those that are late have ended.
        return this.makeRoom(c) ?? this.allocating(c);
    }
  }

  private judgement({ pod, sinceMonoMs }: Candidate): Judgement {
    const { listing, offer, monoMs, placementAtMonoMs, strictGroups, pressures, shutsDown } = this.facts;
    const [room, node] = [() => this.roomFor(pod), () => this.facts.placement];
    return judge(pod, {
      own: this.records.get(pod.metadata.uid),
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
    const { podsMax, allocatable } = this.facts.offer;
    return { others: this.others(pod), podsMax, allocatable, requests: rememberedRequest };
  }

  /** Which pods hold room beside this one. */
  private others(pod: Pod): Pod[] {
    const others = new Map<string, Pod>();
    for (const [uid, known] of this.holders().pods) if (!sameName(known, pod)) others.set(uid, this.resizes.counted(known));
    if (this.keepers === null) this.countAnew(() => true);
    for (const [uid, form] of this.keepers ?? []) others.set(uid, form);
    others.delete(pod.metadata.uid);
    return [...others.values()];
  }
  private keep(candidate: Candidate, keepers: Map<string, Pod>): void {
    if (keepsRoom(candidate)) keepers.set(candidate.pod.metadata.uid, this.resizes.form(candidate.pod));
  }

  private holders(): Holders {
    const { listing } = this.facts;
    const known = this.counted ?? this.ledger.holders;
    if (known !== null && known.listing === listing) return known;
    const counted = { listing, pods: new Map(), leaving: new Set<string>() };
    for (const [uid, rec] of this.records) count(uid, rec, counted);
    this.counted = counted;
    return counted;
  }
  private recount(uid: string, rec: Rec | null): void {
    const { holders } = this.ledger;
    const known = this.counted ?? holders;
    // What a worker says of itself changes nothing here, and is most of what comes.
    if (known === null || isCounted(uid, rec, known)) return;
    this.counted ??= { listing: holders?.listing, pods: new Map(holders?.pods), leaving: new Set(holders?.leaving) };
    count(uid, rec, this.counted);
  }

  /** Null: there is room, once those that are late have ended. */
  private makeRoom(c: Candidate): Refusal | 'room' | null {
    const { pod } = c;
    const { monoMs } = this.facts;
    const room = this.roomFor(pod);
    const { leaving } = this.holders();
    const made = makeRoom(pod, room, {
      leaves: (uid) => leaving.has(uid),
      late: () => {
        const going = room.others.filter(({ metadata: { uid } }) => leaving.has(uid));
        c.leaving = seenLeaving(c.leaving, going, monoMs);
        return lateOf(c.leaving, going, monoMs);
      },
    });
    if (made.is === 'refused') return made.refusal;
    if (made.is === 'overdue') {
      const message = 'letting a critical pod in: others that make room for it did not end in time';
      this.out.push({ to: 'log', level: 'warn', pod, message, more: { late: made.late.map(fullName) } });
      return null;
    }
    for (const victim of made.victims) this.preempt(victim, pod, made.resource);
    return 'room';
  }

  private preempt(victim: Pod, pod: Pod, resource: string): void {
    const rec = this.records.get(victim.metadata.uid);
    // One without a worker was only just admitted: it ends as soon as it has one.
    if (rec === undefined || rec.worker === null) return;
    this.out.push({ to: 'preempted', pod: victim, for: pod, resource });
    const graceSeconds = victim.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
    const why = this.why(undefined, `preempted for ${fullName(pod)}, which lacks ${resource}`);
    this.endFor(rec, { reason: PREEMPTING, message: PREEMPTING_MESSAGE, graceSeconds }, why);
  }

  /** It fails and does not come back. One that is on its way out for another reason keeps its end. One without a worker is ignored. */
  evict({ uid, eviction, hurry, causes }: Extract<PodManagerEvent, { type: 'pods.evict' }>): Step {
    const rec = this.records.get(uid);
    if (rec === undefined || !live(rec) || rec.rejected) return this.finish();
    if (rec.state.is === 'running') this.endFor(rec, eviction, causes);
    // Before every source has delivered, a removal may turn out to be none.
    else if (hurry === true && (rec.state.is === 'failing' || this.isTold(rec.state))) {
      const { graceSeconds: graceOverrideSeconds } = eviction;
      this.out.push({ to: 'worker', event: { type: 'pod.kill', uid, life: rec.life, graceOverrideSeconds, ...causesOf(causes) } });
    }
    return this.finish();
  }

  /** Of one that no source names: whether its worker knows that it is to end. */
  protected isTold({ listed, verdict }: Extract<LifeState, { is: 'leaving' }>): boolean {
    return listed !== null || verdict !== null || this.isReady();
  }

  protected endFor(rec: Rec, eviction: Eviction, causes: readonly Cause[] | undefined): void {
    if (!live(rec) || rec.state.is !== 'running') return;
    const { uid } = rec.pod.metadata;
    this.put(uid, { ...failing(rec, { kind: 'evicted', eviction }), causes: joinCauses(rec.causes, causes) });
    const [status, graceOverrideSeconds] = [evictedStatus(eviction), eviction.graceSeconds];
    this.out.push({
      to: 'worker',
      event: { type: 'pod.kill', uid, life: rec.life, status, graceOverrideSeconds, ...causesOf(causes) },
    });
  }

  /**
   * Of a pod that fits. Null: it has all that it is to have alone, or is to have nothing, since it ends or has ended; or it
   * runs here already, which is not ended for it.
   */
  private allocating(c: Candidate): Refusal | Wait | null {
    const { pod } = c;
    const form = this.resizes.form(pod);
    const by = this.allocatorsOf(form);
    if (isTerminal(pod.status.phase) || pod.metadata.deletionTimestamp || by.length === 0) return null;
    const { listing } = this.facts;
    if (listing === undefined) return 'later';
    if (listing.atMonoMs <= this.ledger.beganMonoMs) {
      this.out.push({ to: 'relist', why: 'admission has to know what runs here' });
      return 'later';
    }
    const runs = hasRun(listing.pods.get(pod.metadata.uid));
    const answer = this.answered(c, { form, by }) ?? (runs ? this.overdue(c.asked) : null);
    if (answer === null) return runs ? 'readmitting' : 'allocating';
    if (answer.kind === 'granted') return null;
    const why = answer.kind === 'later' ? answer.why : answer.message;
    if (runs) {
      this.out.push({ to: 'log', level: 'warn', pod, message: `a pod that runs here already goes on as it is: ${why}` });
      return null;
    }
    return answer.kind === 'later' ? 'allocating' : { reason: answer.reason, message: answer.message, about: 'room' };
  }

  /** Devices, then CPUs, as in the reference. */
  private allocatorsOf(form: Pod): AllocatorName[] {
    const { devices, cpus } = this.facts.offer.allocators;
    return [...(devices && asksForDevices(form) ? ['devices' as const] : []), ...(cpus && wantsExclusive(form) ? ['cpus' as const] : [])];
  }

  /** Null: not known yet. `later` is asked again at a look after some time. */
  private answered(c: Candidate, { form, by }: { form: Pod; by: readonly AllocatorName[] }): AllocationAnswer | null {
    const { monoMs } = this.facts;
    const known = c.asked;
    const isOld = known?.answer?.kind === 'later' && monoMs - known.atMonoMs >= ASK_AGAIN_MS;
    if (known?.pod === c.pod && !isOld) return known.answer;
    c.asked = { id: this.newLife(), pod: c.pod, answer: null, atMonoMs: monoMs, why: known?.why ?? '' };
    this.out.push({ to: 'allocate', pod: form, id: c.asked.id, by });
    return null;
  }

  private overdue(asked: Asked | null): AllocationAnswer | null {
    const isOver = asked !== null && this.facts.monoMs - asked.atMonoMs >= READMIT_MAX_MS;
    return isOver ? { kind: 'later', why: 'there is no answer yet' } : null;
  }
}

function causesOf(causes: readonly Cause[] | undefined): { causes?: readonly Cause[] } {
  return causes === undefined ? {} : { causes };
}

function isCounted(uid: string, rec: Rec | null, { listing, pods, leaving }: Holders): boolean {
  const holds = rec !== null && holdsRoom(rec, listing);
  return pods.get(uid) === (holds ? rec.pod : undefined) && leaving.has(uid) === (holds && isLeaving(rec));
}

function count(uid: string, rec: Rec | null, { listing, pods, leaving }: Counted): void {
  const holds = rec !== null && holdsRoom(rec, listing);
  // One that is there keeps its place in the order.
  if (holds) pods.set(uid, rec.pod);
  else pods.delete(uid);
  if (holds && isLeaving(rec)) leaving.add(uid);
  else leaving.delete(uid);
}
