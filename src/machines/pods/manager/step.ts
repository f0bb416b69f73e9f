/**
 * The pod manager's ledger of pods, as a pure step function: one operation in, new records and messages out.
 * It orders the updates of one UID and holds a pod back while its predecessor of the same full name is still being
 * wound down (pod lifecycle 3.3, trap 2), or while its own UID is (trap 58).
 */

import type { Pod } from '../../kube/types.ts';
import { fullName, isLeaving } from '../../pod/names.ts';
import { isTerminal } from '../../pod/phase.ts';
import { podFromListed } from '../../pod/runtime/killOrder.ts';
import type { ListedPod, SourceName } from '../../pod/runtime/seen.ts';
import { sameDesired } from '../../pod/sameDesired.ts';
import { LEFT_ALONE_ANNOTATION } from '../../pod/setAside.ts';
import { EVICTED } from '../../reclaim/eviction/messages.ts';
import { type Cause, causesAbout, joinCauses } from '../../supervision/address.ts';
import { messageOf } from '../../text/errors.ts';
import type { WorkerSummary } from '../workers/messages.ts';
import { Admitting } from './admitting.ts';
import type { Candidate, PodManagerEvent, PodOpEvent } from './messages.ts';
import {
  began,
  type Facts,
  failing,
  inState,
  keepsRoom,
  live,
  mayBePutRight,
  newRecord,
  nextOf,
  type PodLedger,
  type Rec,
  type Refused,
  type Step,
  type Successor,
  stands,
  verdictOf,
  withNext,
} from './records.ts';

/** What the pod manager takes: a message, or a look at what waits. */
export type StepEvent = PodManagerEvent | { type: 'look' };

/** An event about one pod that cannot be handled is dropped: it must not end the pod manager. */
export function step(ledger: PodLedger, event: StepEvent, facts: Facts): Step {
  try {
    return taken(ledger, event, facts);
  } catch (thrown) {
    const rec = 'uid' in event ? ledger.records.get(event.uid) : undefined;
    if (rec === undefined) throw thrown;
    const edit = new Edit(ledger, facts);
    edit.out.push({ to: 'leftAlone', pod: rec.pod, error: messageOf(thrown) });
    return edit.finish();
  }
}

function taken(ledger: PodLedger, event: StepEvent, facts: Facts): Step {
  const edit = new Edit(ledger, facts);
  switch (event.type) {
    case 'pods.op':
      return edit.op(event);
    case 'look':
      return edit.look();
    case 'pods.allocated':
      return edit.allocated(event);
    case 'worker.state':
      return edit.workerState(event.uid, event.life, event.state);
    // What follows from the view of an earlier pod manager was in the mailbox when it ended: this one does not know yet
    // who is wanted, and its workers are others.
    case 'pods.orphan':
      return event.epoch === ledger.epoch ? edit.orphan(event.listed, event.causes) : edit.finish();
    case 'pods.quarantined':
      return event.epoch === ledger.epoch ? edit.quarantined(event.uid, event.error) : edit.finish();
    case 'pods.evict':
      return edit.evict(event);
    case 'pods.dirty': {
      const rec = ledger.records.get(event.uid);
      if (rec !== undefined && live(rec)) {
        const { uid, why, ended, listed = false } = event;
        const causes = event.causes ?? edit.why(undefined, why);
        edit.out.push({ to: 'worker', event: { type: 'pod.dirty', uid, why, causes, listed, ...(ended === undefined ? {} : { ended }) } });
      }
      return edit.finish();
    }
    default:
      throw new Error(`pod manager: no such event ${JSON.stringify(event satisfies never)}`);
  }
}

class Edit extends Admitting {
  op(event: PodOpEvent): Step {
    const { op, source, causes, part = 'whole' } = event;
    // Left in the mailbox by a podConfig that ended together with the pod manager before this one: it names a part of the pods
    // only, and would pass for all that the source has. The one that follows begins with its first word.
    const begins = event.first === true && (part === 'whole' || part === 'begin');
    if (!this.seen.has(source) && !this.begun.has(source) && !begins) return this.finish();
    // The new pod of that name waits until they have ended.
    for (const listed of event.predecessors ?? []) {
      const what = `source ${source} holds another definition of ${listed.namespace}/${listed.name} by now`;
      this.foundOrphan(listed, this.why(causes, what));
    }
    for (const pod of op === 'ADD' ? this.additions(event) : event.pods) this.guarded(pod, source, () => this.take(pod, event));
    const over = part === 'whole' || part === 'end';
    if (!this.seen.has(source)) {
      this.begun = new Set([...this.begun, source]);
      if (over) this.seen = new Set([...this.seen, source]);
      this.changed = true;
    }
    if (event.complete !== undefined) this.removeMissing(source, new Set(event.complete), causes);
    // After those that are missing from its first word: their workers may be gone too.
    if (event.first === true && over) this.resumeRemoved(source);
    return this.judged();
  }

  private take(pod: Pod, { op: asked, source, ...event }: PodOpEvent): void {
    const { uid } = pod.metadata;
    const causes = causesAbout(event.causes, fullName(pod));
    const waiting = this.candidates.get(uid);
    const leftAlone = pod.metadata.annotations?.[LEFT_ALONE_ANNOTATION];
    if (asked !== 'REMOVE' && leftAlone !== undefined) {
      this.leave(pod, source, leftAlone);
      return;
    }
    const op = this.wasLeftAlone(pod, asked) ? 'ADD' : asked;
    if (op === 'DELETE') this.resizes.giveUp(uid);
    if (op === 'REMOVE') {
      if (waiting !== undefined) this.release(waiting);
      this.resizes.forget(uid);
      this.remove(uid, this.why(causes, `${fullName(pod)} is gone from source ${source}`));
    } else if (op !== 'ADD' && waiting !== undefined) {
      // Not judged yet: the newest definition will be.
      this.wait({ ...waiting, pod });
    } else {
      const { asked = null, leaving = new Map() } = waiting ?? {};
      const candidate: Candidate = { pod, op, source, causes, sinceMonoMs: this.facts.monoMs, wait: 'later', asked, leaving };
      if (op === 'ADD' || op === 'UPDATE') this.admit(candidate);
      else this.letIn(this.resizes.form(pod), candidate);
    }
  }

  /** Another definition of it may be handled: it begins anew, with what runs of it. */
  private wasLeftAlone(pod: Pod, op: PodOpEvent['op']): boolean {
    const rec = this.records.get(pod.metadata.uid);
    if (rec?.state.is !== 'quarantined' || rec.state.verdict !== null || op === 'REMOVE' || sameDesired(rec.pod, pod)) return false;
    this.drop(rec);
    return true;
  }

  protected override letIn(pod: Pod, { op, source, causes }: Candidate): void {
    const rec = this.records.get(pod.metadata.uid);
    if (op === 'ADD' || rec === undefined) this.add(pod, source, causes);
    else if (op === 'RECONCILE') this.reconcile(rec, pod);
    else this.update(rec, pod, { causes: this.why(causes, `${op} from source ${source}`), kind: 'update' });
  }

  /** At all that waits. Those whose room is kept come first: the others get what they leave. */
  look(): Step {
    this.countAnew(() => false);
    for (const c of [...this.candidates.values()].sort((a, b) => Number(keepsRoom(b)) - Number(keepsRoom(a))))
      this.guarded(c.pod, c.source, () => this.admit(c));
    if (this.ledger.resizes.waiting.size > 0) {
      for (const pod of this.resizes.retry()) {
        const rec = this.records.get(pod.metadata.uid);
        const causes = this.why(undefined, 'a change of its resources was looked at again');
        if (rec !== undefined) this.update(rec, pod, { causes, kind: 'update' });
      }
    }
    return this.judged();
  }

  allocated({ uid, id, answer }: Extract<PodManagerEvent, { type: 'pods.allocated' }>): Step {
    const c = this.candidates.get(uid);
    if (c?.asked?.id !== id) return this.finish();
    const why = answer.kind === 'later' ? answer.why : '';
    if (why !== '' && why !== c.asked.why) {
      this.out.push({ to: 'log', level: 'info', pod: c.pod, message: 'a pod is not admitted yet; it is looked at again', more: { why } });
    }
    this.wait({ ...c, asked: { ...c.asked, answer, atMonoMs: this.facts.monoMs, why } });
    return this.look();
  }

  private judged(): Step {
    if (!this.ledger.ready && this.isReady()) {
      this.killRemoved();
      this.out.push({ to: 'housekeep', why: 'every source has delivered, and what it named was judged' });
    }
    return this.finish();
  }

  /**
   * Only the status is another: what somebody else said about a readiness gate may make the pod Ready (pod lifecycle 7.8),
   * and a phase that is final (a write of an earlier daemon that came late, say) ends what runs.
   */
  private reconcile(rec: Rec, { metadata: { uid }, status }: Pod): void {
    const pod = { ...rec.pod, status };
    this.put(uid, { ...rec, pod });
    const concerns = (pod.spec.readinessGates?.length ?? 0) > 0 || (isTerminal(status.phase) && !isTerminal(rec.pod.status.phase));
    if (live(rec) && rec.state.is !== 'leaving' && concerns)
      this.out.push({ to: 'worker', event: { type: 'pod.update', uid, life: rec.life, kind: 'sync', pod, causes: rec.causes } });
  }

  private add(pod: Pod, source: SourceName, causes: readonly Cause[] | undefined): void {
    const uid = pod.metadata.uid;
    const why = this.why(causes, `${fullName(pod)} was added by source ${source}`);
    const rec = this.records.get(uid);
    if (rec === undefined) {
      this.put(uid, newRecord({ pod, source, seenAtMs: this.facts.wallMs, life: this.newLife(), renewed: false, causes: why }));
      this.sayFieldsLeft(pod, source);
      this.startIfFree(uid);
      return;
    }
    if (stands(rec, pod)) {
      this.put(uid, { ...withNext(rec, null), pod });
      return;
    }
    if (mayBePutRight(rec)) {
      this.renew(rec, pod, why);
      return;
    }
    if (rec.state.is !== 'leaving') {
      // podConfig was restarted and says everything again. Perhaps the workers were too: `create` makes one that is missing.
      this.update(rec, pod, { causes: why, kind: 'create' });
      return;
    }
    if (!this.isTold(rec.state)) {
      // Named again before its worker was told to wind it down: it goes on.
      this.update({ ...inState(rec, { is: 'running', listed: null }), source }, pod, { causes: why, kind: 'create' });
      return;
    }
    // Found as an orphan before its source delivered, or the same UID again while winding down.
    this.put(uid, { ...withNext(rec, { pod, refusal: null }), source });
  }

  /** What was refused has been put right: a new life, as soon as nothing is left of the present one. */
  private renew(rec: Rec, pod: Pod, causes: readonly Cause[]): void {
    const joined = { ...rec, causes: joinCauses(rec.causes, causes) };
    const next = { pod, refusal: null };
    if (live(rec)) this.put(pod.metadata.uid, withNext(joined, next));
    else this.revive(joined, next);
  }

  private update(rec: Rec, pod: Pod, { causes, kind }: { causes: readonly Cause[]; kind: 'create' | 'update' }): void {
    const uid = pod.metadata.uid;
    if (rec.state.is === 'leaving') {
      if (rec.state.next !== null) this.put(uid, withNext(rec, { pod, refusal: null }));
      return;
    }
    if (mayBePutRight(rec)) {
      this.renew(rec, pod, causes);
      return;
    }
    // A pod without a worker keeps its causes when its source only repeats it.
    const now = { ...rec, pod, causes: kind === 'create' && !began(rec) ? rec.causes : joinCauses(rec.causes, causes) };
    this.put(uid, now);
    // A deleted pod waits for no other.
    if (rec.state.is === 'waiting' && isLeaving(pod)) this.startIfFree(uid);
    if (live(rec)) {
      this.out.push({ to: 'worker', event: { type: 'pod.update', uid, life: rec.life, kind, pod, causes } });
    }
  }

  private remove(uid: string, causes: readonly Cause[]): void {
    const rec = this.records.get(uid);
    if (rec === undefined) return;
    if (rec.state.is === 'leaving') {
      if (rec.state.next !== null) this.put(uid, withNext(rec, null));
      return;
    }
    if (!live(rec)) {
      this.drop(rec);
      this.out.push({ to: 'gc', why: `pod ${fullName(rec.pod)} was removed` });
      this.startWaiters(fullName(rec.pod));
      return;
    }
    const state = { is: 'leaving', verdict: verdictOf(rec), listed: rec.state.listed, next: null } as const;
    const gone = { ...inState(rec, state), causes: joinCauses(rec.causes, causes) };
    this.put(uid, gone);
    if (this.isReady()) this.kill(gone);
  }

  /** Removals seen before every source had delivered were only noted (pod lifecycle 1.8). */
  private killRemoved(): void {
    for (const rec of this.records.values()) if (rec.state.is === 'leaving') this.kill(rec);
  }

  /**
   * Pods of that source that are being wound down, and orphans, have nobody who would name them again if the workers
   * were restarted: each is handed over once more. A worker that is there takes it as an update that changes nothing.
   */
  private resumeRemoved(source: SourceName): void {
    for (const uid of this.ledger.records.keys()) {
      const rec = this.records.get(uid);
      if (rec === undefined || !live(rec) || (rec.state.is !== 'leaving' && rec.state.listed === null)) continue;
      if (rec.source === source || rec.source === 'runtime') this.create(rec);
    }
  }

  private removeMissing(source: SourceName, complete: ReadonlySet<string>, causes: readonly Cause[] | undefined): void {
    for (const [uid, rec] of this.ledger.records) {
      // One that is on its way out may be waiting to come back: no longer, where its source forgot it meanwhile. A podConfig that
      // was restarted since never heard of it and removes nothing.
      if (rec.source !== source || complete.has(uid) || (rec.removed && nextOf(rec) === null)) continue;
      const own = causesAbout(causes, fullName(rec.pod));
      this.remove(uid, this.why(own, `${fullName(rec.pod)} is not in the complete set of source ${source}`));
    }
  }

  protected override refuse({ pod, source, causes }: Candidate, { reason, message }: Refused): void {
    const uid = pod.metadata.uid;
    const rec = this.records.get(uid);
    this.out.push({ to: 'refused', pod, reason, message });
    if (rec !== undefined && rec.eviction !== null && rec.state.is !== 'leaving') {
      this.put(uid, { ...rec, pod });
    } else if (rec !== undefined && live(rec) && (rec.state.is === 'leaving' || rec.rejected)) {
      // The source of a pod sends REMOVE when it is no longer wanted, also for a former orphan.
      this.put(uid, { ...withNext(rec, { pod, refusal: { reason, message } }), source });
    } else if (rec !== undefined && live(rec)) {
      // An update asks for what this node cannot honour: the pod fails, as it would have when it was new.
      const status = { phase: 'Failed' as const, reason, message: `Pod was rejected: ${message}` };
      this.put(uid, failing(rec, { kind: 'refused', refusal: { reason, message: status.message } }));
      const why = this.why(causes, `refused: ${message}`);
      this.out.push({ to: 'worker', event: { type: 'pod.kill', uid, life: rec.life, status, causes: why } });
    } else this.reject(pod, { reason, message, source, causes }, rec);
  }

  private reject(pod: Pod, o: Refused & { source?: SourceName; causes?: readonly Cause[] | undefined }, rec: Rec | undefined): void {
    const { reason, message } = o;
    const source = rec?.source === undefined || rec.source === 'runtime' ? (o.source ?? 'file') : rec.source;
    const causes = this.why(o.causes, `refused: ${message}`);
    const life = { life: this.newLife(), renewed: rec !== undefined, seenAtMs: rec?.seenAtMs ?? this.facts.wallMs };
    const verdict = { kind: 'rejected', reason, eviction: reason === EVICTED ? { reason, message, graceSeconds: 0 } : null } as const;
    this.put(pod.metadata.uid, newRecord({ pod, source, causes, ...life }, { is: 'refused', verdict }));
    this.out.push({ to: 'rejected', pod, life: this.lives, reason, message });
  }

  workerState(uid: string, life: number, state: WorkerSummary): Step {
    const rec = this.records.get(uid);
    if (rec === undefined || rec.life !== life || !(live(rec) || rec.state.is === 'quarantined')) return this.finish();
    this.put(uid, { ...rec, worker: state });
    if (state.phase !== 'finished') return this.finish();
    const next = nextOf(rec);
    if (next !== null) this.revive(rec, next);
    else if (rec.state.is === 'leaving') {
      this.drop(rec);
      // Of a pod that has a record nothing is removed.
      this.out.push({ to: 'gc', why: `pod ${fullName(rec.pod)} has ended` });
    } else this.put(uid, { ...inState(rec, { is: 'ended', verdict: verdictOf(rec) }), worker: state });
    this.startWaiters(fullName(rec.pod));
    return this.finish();
  }

  private revive(rec: Rec, next: Successor): void {
    const { uid } = rec.pod.metadata;
    // A new life begins without the ended one's terminal phase.
    this.out.push({ to: 'forget', uid, life: rec.life });
    if (next.refusal !== null) {
      this.reject(next.pod, { ...next.refusal, causes: rec.causes }, rec);
      return;
    }
    const { source, seenAtMs, causes } = rec;
    this.put(uid, newRecord({ pod: next.pod, source, seenAtMs, life: this.newLife(), renewed: true, causes }));
    this.sayFieldsLeft(next.pod, source);
    this.startIfFree(uid);
  }

  orphan(listed: ListedPod, causes: readonly Cause[] | undefined): Step {
    this.foundOrphan(listed, causes);
    return this.finish();
  }

  private foundOrphan(listed: ListedPod, causes: readonly Cause[] | undefined): void {
    const known = this.records.get(listed.uid);
    const pod = podFromListed(listed);
    if (known === undefined) {
      const why = this.why(causes, `the runtime holds ${fullName(pod)} and no source wants it`);
      const life = { life: this.newLife(), renewed: false, seenAtMs: this.facts.wallMs };
      const rec = newRecord({ pod, source: 'runtime', causes: why, ...life }, { is: 'leaving', verdict: null, listed, next: null });
      this.put(listed.uid, rec);
      this.create(rec);
      return;
    }
    if (known.state.is !== 'ended' && (live(known) || !known.rejected)) return;
    // Refused at the start of the node, but it ran here before; or a sandbox that was asked for came after its pod had
    // ended: what is left of it is stopped, and what was said of it stands.
    const what = known.rejected ? 'which this node refused' : 'which has ended';
    const why = this.why(known.causes, `the runtime still holds ${fullName(pod)}, ${what}`);
    const verdict = verdictOf(known);
    const left = inState(known, verdict === null ? { is: 'running', listed } : { is: 'failing', verdict, listed, next: null });
    this.put(listed.uid, { ...left, worker: null, causes: why });
    this.create({ ...left, pod, causes: why });
  }

  quarantined(uid: string, error: string): Step {
    const rec = this.records.get(uid);
    if (rec === undefined || !live(rec)) return this.finish();
    const next = nextOf(rec);
    if (next !== null) this.revive(rec, next);
    else if (rec.state.is === 'leaving') this.drop(rec);
    else this.put(uid, inState(rec, { is: 'quarantined', verdict: verdictOf(rec), error }));
    this.startWaiters(fullName(rec.pod));
    return this.finish();
  }
}
