/**
 * The pod manager's ledger of pods, as a pure step function: one operation in, new records and messages out.
 * It orders the updates of one UID and holds a pod back while its predecessor of the same full name is still being
 * wound down (pod lifecycle 3.3, trap 2), or while its own UID is (trap 58).
 */

import type { Pod } from '../../k8s.ts';
import type { ListedPod, PodManagerEvent, WorkerSummary } from '../../protocol.ts';
import { EVICTED } from '../../reclaim/eviction/rank.ts';
import { type Draft, SharedMap } from '../../sharedMap.ts';
import { because, type Cause, joinCauses } from '../../supervision/address.ts';
import { podFromListed } from '../killOrder.ts';
import { isTerminal } from '../status/generate.ts';
import type { SourceName } from '../types.ts';
import {
  evictedStatus,
  fullName,
  isLeaving,
  live,
  type Now,
  newRecord,
  type Out,
  type PodLedger,
  predecessor,
  type Rec,
  type Refused,
  type Step,
  sourcesReady,
  stands,
} from './records.ts';

export function step(ledger: PodLedger, event: PodManagerEvent, now: Now): Step {
  const edit = new Edit(ledger, now);
  switch (event.type) {
    case 'pods.op':
      return edit.op(event);
    case 'pods.rejected':
      return edit.rejected(event);
    case 'worker.state':
      return edit.workerState(event.uid, event.incarnation, event.state);
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
        const causes = event.causes ?? [{ ...now, what: why }];
        edit.out.push({ to: 'worker', event: { type: 'pod.dirty', uid, why, causes, listed, ...(ended === undefined ? {} : { ended }) } });
      }
      return edit.finish();
    }
    default:
      return unreachable(event);
  }
}

function unreachable(event: never): never {
  throw new Error(`pod manager: no such event ${JSON.stringify(event)}`);
}

function sameMembers(a: ReadonlySet<string>, b: readonly string[]): boolean {
  return a.size === b.length && b.every((uid) => a.has(uid));
}

function causesOf(causes: readonly Cause[] | undefined): { causes?: readonly Cause[] } {
  return causes === undefined ? {} : { causes };
}

class Edit {
  readonly ledger: PodLedger;
  readonly now: Now;
  readonly records: Draft<string, Rec>;
  lives: number;
  seen: ReadonlySet<SourceName>;
  undecided: ReadonlySet<string>;
  judge: number;
  changed = false;
  readonly out: Out[] = [];

  constructor(ledger: PodLedger, now: Now) {
    this.ledger = ledger;
    this.now = now;
    this.records = SharedMap.draft(ledger.records);
    this.lives = ledger.lives;
    this.seen = ledger.seen;
    this.undecided = ledger.undecided;
    this.judge = ledger.judge;
  }

  finish(): Step {
    const { lives, seen, undecided, judge } = this;
    const changes = () => ({ records: this.records.finish(), lives, seen, undecided, judge, ready: this.isReady() });
    const ledger = this.changed ? { ...this.ledger, ...changes() } : this.ledger;
    return { ledger, out: this.out, changed: this.changed };
  }
  private isReady(): boolean {
    return sourcesReady({ ...this.ledger, seen: this.seen, undecided: this.undecided });
  }
  private put(uid: string, rec: Rec): void {
    this.records.set(uid, rec);
    this.changed = true;
  }
  private newLife(): number {
    this.lives += 1;
    return this.lives;
  }
  private drop(rec: Rec): void {
    const { uid } = rec.pod.metadata;
    this.records.delete(uid);
    this.changed = true;
    this.out.push({ to: 'forget', uid, life: rec.life });
  }
  private why(prior: readonly Cause[] | undefined, what: string): readonly Cause[] {
    return because(prior, { ...this.now, what });
  }

  op(event: Extract<PodManagerEvent, { type: 'pods.op' }>): Step {
    const { op, source, pods, causes, undecided } = event;
    // What an earlier one had not judged by then nobody speaks of until its source is heard anew.
    if (undecided !== undefined && undecided.by !== this.judge) {
      this.judge = undecided.by;
      this.changed = true;
      if (!sourcesReady(this.ledger)) this.seen = new Set();
    }
    // Left in the mailbox by a mux that ended together with the pod manager before this one: it names a part of the pods
    // only, and would pass for all that the source has. The mux that follows begins with its first word.
    if (!this.seen.has(source) && event.first !== true) return this.finish();
    // The new pod of that name waits until they have ended.
    for (const listed of event.predecessors ?? []) {
      const what = `source ${source} holds another definition of ${listed.namespace}/${listed.name} by now`;
      this.foundOrphan(listed, this.why(causes, what));
    }
    for (const pod of pods) {
      const uid = pod.metadata.uid;
      const rec = this.records.get(uid);
      if (op === 'ADD') this.add(pod, source, causes);
      else if (op === 'REMOVE') this.remove(uid, this.why(causes, `${fullName(pod)} is gone from source ${source}`));
      else if (rec === undefined) this.add(pod, source, causes);
      else if (op === 'RECONCILE') this.reconcile(rec, pod);
      else this.update(rec, pod, { causes: this.why(causes, `${op} from source ${source}`), kind: 'update' });
    }
    if (!this.seen.has(source)) {
      this.seen = new Set([...this.seen, source]);
      this.changed = true;
    }
    if (undecided !== undefined && !sameMembers(this.undecided, undecided.uids)) {
      this.undecided = new Set(undecided.uids);
      this.changed = true;
    }
    if (event.first === true) this.resumeRemoved(source);
    if (event.complete !== undefined) this.removeMissing(source, new Set(event.complete), causes);
    if (!sourcesReady(this.ledger) && this.isReady()) {
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
    if (live(rec) && !rec.removed && concerns)
      this.out.push({ to: 'worker', event: { type: 'pod.update', uid, incarnation: rec.life, kind: 'sync', pod, causes: rec.causes } });
  }

  private add(pod: Pod, source: SourceName, causes: readonly Cause[] | undefined): void {
    const uid = pod.metadata.uid;
    const why = this.why(causes, `${fullName(pod)} was added by source ${source}`);
    const rec = this.records.get(uid);
    if (rec === undefined) {
      this.put(uid, newRecord({ pod, source, seenAtMs: this.now.atMs, life: this.newLife(), causes: why }));
      this.startIfFree(uid);
      return;
    }
    if (stands(rec, pod)) {
      this.put(uid, { ...rec, pod, next: null, nextRefusal: null });
      return;
    }
    if (rec.eviction === null && (rec.rejected || rec.refusal !== null)) {
      this.renew(rec, pod, why);
      return;
    }
    if (!rec.removed) {
      // The mux was restarted and says everything again. Perhaps the workers were too: `create` makes one that is missing.
      if (rec.started) this.update(rec, pod, { causes: why, kind: 'create' });
      else this.replaceWaiting(rec, pod, rec.causes);
      return;
    }
    if (!this.isTold(rec)) {
      // Named again before its worker was told to wind it down: it goes on.
      this.update({ ...rec, removed: false, source }, pod, { causes: why, kind: 'create' });
      return;
    }
    // Found as an orphan before its source delivered, or the same UID again while winding down.
    this.put(uid, { ...rec, next: pod, nextRefusal: null, source });
    if (!live(rec)) this.revive(uid);
  }

  /** What was refused has been put right: a new life, as soon as nothing is left of the present one. */
  private renew(rec: Rec, pod: Pod, causes: readonly Cause[]): void {
    const uid = rec.pod.metadata.uid;
    this.put(uid, { ...rec, next: pod, nextRefusal: null, causes: joinCauses(rec.causes, causes) });
    if (!live(rec)) this.revive(uid);
  }

  private update(rec: Rec, pod: Pod, { causes, kind }: { causes: readonly Cause[]; kind: 'create' | 'update' }): void {
    const uid = pod.metadata.uid;
    if (rec.removed) {
      if (rec.next !== null) this.put(uid, { ...rec, next: pod, nextRefusal: null });
      return;
    }
    if (rec.eviction === null && (rec.rejected || rec.refusal !== null)) {
      this.renew(rec, pod, causes);
      return;
    }
    if (!rec.started) {
      this.replaceWaiting(rec, pod, joinCauses(rec.causes, causes));
      return;
    }
    this.put(uid, { ...rec, pod, causes: joinCauses(rec.causes, causes) });
    if (live(rec)) {
      this.out.push({ to: 'worker', event: { type: 'pod.update', uid, incarnation: rec.life, kind, pod, causes } });
    }
  }

  /** Of a pod that has no worker in its present life; it goes on waiting, unless all that is left for it is to go. */
  private replaceWaiting(rec: Rec, pod: Pod, causes: readonly Cause[]): void {
    const { uid } = pod.metadata;
    this.put(uid, { ...rec, pod, causes });
    if (isLeaving(pod)) this.startIfFree(uid);
  }

  private remove(uid: string, causes: readonly Cause[]): void {
    const rec = this.records.get(uid);
    if (rec === undefined) return;
    if (rec.removed) {
      if (rec.next !== null) this.put(uid, { ...rec, next: null, nextRefusal: null });
      return;
    }
    if (!live(rec)) {
      this.drop(rec);
      this.out.push({ to: 'gc', why: `pod ${fullName(rec.pod)} was removed` });
      this.startWaiters(fullName(rec.pod));
      return;
    }
    const gone: Rec = { ...rec, removed: true, next: null, nextRefusal: null, causes: joinCauses(rec.causes, causes) };
    this.put(uid, gone);
    if (this.isReady()) this.kill(gone);
  }

  private kill(rec: Rec): void {
    const uid = rec.pod.metadata.uid;
    this.out.push({ to: 'worker', event: { type: 'pod.kill', uid, incarnation: rec.life, causes: rec.causes } });
  }

  /** Of one that was removed: whether its worker knows. */
  private isTold(rec: Rec): boolean {
    return rec.listed !== null || rec.eviction !== null || rec.refusal !== null || this.isReady();
  }

  /** Removals seen before every source had delivered were only noted (pod lifecycle 1.8). */
  private killRemoved(): void {
    for (const rec of this.records.values()) if (rec.removed && live(rec)) this.kill(rec);
  }

  /**
   * Pods of that source that are being wound down, and orphans, have nobody who would name them again if the workers
   * were restarted: each is handed over once more. A worker that is there takes it as an update that changes nothing.
   */
  private resumeRemoved(source: SourceName): void {
    for (const rec of this.ledger.records.values()) {
      if (!(rec.removed || rec.listed !== null) || !live(rec) || (rec.source !== source && rec.source !== 'runtime')) continue;
      this.create(rec);
    }
  }

  private removeMissing(source: SourceName, complete: ReadonlySet<string>, causes: readonly Cause[] | undefined): void {
    for (const [uid, rec] of this.ledger.records) {
      // One that is on its way out may be waiting to come back: no longer, where its source forgot it meanwhile. A mux that
      // was restarted since never heard of it and removes nothing.
      if (rec.source !== source || complete.has(uid) || (rec.removed && rec.next === null)) continue;
      this.remove(uid, this.why(causes, `${fullName(rec.pod)} is not in the complete set of source ${source}`));
    }
  }

  /** It fails and does not come back. One that is on its way out for another reason keeps its end. One without a worker is ignored. */
  evict({ uid, eviction, hurry, causes }: Extract<PodManagerEvent, { type: 'pods.evict' }>): Step {
    const rec = this.records.get(uid);
    if (rec === undefined || !live(rec) || rec.rejected) return this.finish();
    const { graceSeconds: graceOverrideSeconds } = eviction;
    if (rec.removed || rec.refusal !== null || rec.eviction !== null) {
      // Before every source has delivered, a removal may turn out to be none.
      if (hurry === true && (!rec.removed || this.isTold(rec)))
        this.out.push({ to: 'worker', event: { type: 'pod.kill', uid, incarnation: rec.life, graceOverrideSeconds, ...causesOf(causes) } });
      return this.finish();
    }
    this.put(uid, { ...rec, eviction, causes: joinCauses(rec.causes, causes) });
    const status = evictedStatus(eviction);
    this.out.push({
      to: 'worker',
      event: { type: 'pod.kill', uid, incarnation: rec.life, status, graceOverrideSeconds, ...causesOf(causes) },
    });
    return this.finish();
  }

  rejected(event: Extract<PodManagerEvent, { type: 'pods.rejected' }>): Step {
    const { pod, reason, message } = event;
    const uid = pod.metadata.uid;
    const rec = this.records.get(uid);
    if (rec !== undefined && rec.eviction !== null && !rec.removed) {
      this.put(uid, { ...rec, pod });
      return this.finish();
    }
    if (rec !== undefined && live(rec) && (rec.removed || rec.rejected)) {
      // The source of a pod sends REMOVE when it is no longer wanted, also for a former orphan.
      this.put(uid, { ...rec, next: pod, nextRefusal: { reason, message }, source: event.source ?? rec.source });
      return this.finish();
    }
    if (rec !== undefined && live(rec)) {
      // An update asks for what this node cannot honour: the pod fails, as it would have when it was new.
      const status = { phase: 'Failed' as const, reason, message: `Pod was rejected: ${message}` };
      this.put(uid, { ...rec, refusal: { reason, message: status.message }, next: null, nextRefusal: null });
      this.out.push({ to: 'worker', event: { type: 'pod.kill', uid, incarnation: rec.life, status, ...causesOf(event.causes) } });
      return this.finish();
    }
    this.reject(pod, event, rec);
    return this.finish();
  }

  private reject(pod: Pod, event: Refused & { source?: SourceName; causes?: readonly Cause[] }, rec: Rec | undefined): void {
    const { reason, message } = event;
    const source = rec?.source === undefined || rec.source === 'runtime' ? (event.source ?? 'file') : rec.source;
    const causes = this.why(event.causes, `admission refused it: ${reason}`);
    this.put(pod.metadata.uid, {
      ...newRecord({ pod, source, seenAtMs: rec?.seenAtMs ?? this.now.atMs, life: this.newLife(), causes }),
      rejected: true,
      renewed: rec !== undefined,
      eviction: reason === EVICTED ? { reason, message, graceSeconds: 0 } : null,
    });
    this.out.push({ to: 'rejected', pod, life: this.lives, reason, message });
  }

  workerState(uid: string, life: number, state: WorkerSummary): Step {
    const rec = this.records.get(uid);
    if (rec === undefined || rec.life !== life || !rec.started) return this.finish();
    this.put(uid, { ...rec, worker: state });
    if (state.phase !== 'finished') return this.finish();
    this.out.push({ to: 'gc', why: `pod ${fullName(rec.pod)} has ended` });
    if (rec.next !== null) this.revive(uid);
    else if (rec.removed) this.drop(rec);
    this.startWaiters(fullName(rec.pod));
    return this.finish();
  }

  private revive(uid: string): void {
    const rec = this.records.get(uid);
    if (rec?.next === null || rec?.next === undefined) return;
    // A new life begins without the ended one's terminal phase.
    this.out.push({ to: 'forget', uid, life: rec.life });
    if (rec.nextRefusal !== null) {
      this.reject(rec.next, { ...rec.nextRefusal, causes: rec.causes }, rec);
      return;
    }
    const { next: pod, source, seenAtMs, causes } = rec;
    this.put(uid, { ...newRecord({ pod, source, seenAtMs, life: this.newLife(), causes }), renewed: true });
    this.startIfFree(uid);
  }

  orphan(listed: ListedPod, causes: readonly Cause[] | undefined): Step {
    this.foundOrphan(listed, causes);
    return this.finish();
  }

  private foundOrphan(listed: ListedPod, causes: readonly Cause[] | undefined): void {
    const known = this.records.get(listed.uid);
    if (known !== undefined && (live(known) || !(known.rejected || known.worker?.phase === 'finished'))) return;
    const pod = podFromListed(listed);
    if (known !== undefined) {
      // Refused at the start of the node, but it ran here before; or a sandbox that was asked for came after its pod had
      // ended: what is left of it is stopped, and what was said of it stands.
      const what = known.rejected ? 'which this node refused' : 'which has ended';
      const causes = this.why(known.causes, `the runtime still holds ${fullName(pod)}, ${what}`);
      this.put(listed.uid, { ...known, started: true, worker: null, quarantine: null, listed, causes });
      this.create({ ...known, pod, listed, causes });
      return;
    }
    const why = this.why(causes, `the runtime holds ${fullName(pod)} and no source wants it`);
    const rec: Rec = {
      ...newRecord({ pod, source: 'runtime', seenAtMs: this.now.atMs, life: this.newLife(), causes: why }),
      removed: true,
      started: true,
      listed,
    };
    this.put(listed.uid, rec);
    this.create(rec);
  }

  quarantined(uid: string, error: string): Step {
    const rec = this.records.get(uid);
    if (rec === undefined) return this.finish();
    this.put(uid, { ...rec, quarantine: error });
    if (rec.removed && rec.next === null) this.drop(rec);
    this.startWaiters(fullName(rec.pod));
    return this.finish();
  }

  /**
   * Starts it unless another pod of the same full name is still being wound down or stands before it. One that its source
   * has deleted runs nothing any more and waits for nobody: whoever deleted it waits to hear that it has ended, and the
   * static pod before it may stay for good.
   */
  private startIfFree(uid: string): void {
    const rec = this.records.get(uid);
    if (rec === undefined || rec.started || rec.rejected) return;
    const behind = isLeaving(rec.pod) ? undefined : predecessor(this.records, rec);
    if (behind !== undefined) {
      this.hold(uid, rec, behind);
      return;
    }
    this.put(uid, { ...rec, started: true, worker: null });
    this.create(rec);
  }

  /** A worker is to be there for it. */
  private create({ pod, life, listed, causes }: Rec): void {
    const { uid } = pod.metadata;
    const fromRuntime = listed === null ? {} : { fromRuntime: listed };
    this.out.push({ to: 'worker', event: { type: 'pod.update', uid, incarnation: life, kind: 'create', pod, causes, ...fromRuntime } });
  }

  private hold(uid: string, rec: Rec, behind: string): void {
    this.put(uid, {
      ...rec,
      worker: {
        phase: 'waiting',
        state: 'waiting',
        reason: 'WaitingForPredecessor',
        message: `an earlier pod of this name (uid ${behind}) is still being stopped`,
        sinceMs: this.now.atMs,
        containers: [],
        causes: rec.causes,
      },
    });
  }

  private startWaiters(name: string): void {
    const waiting: string[] = [];
    for (const [uid, rec] of this.records)
      if (!rec.started && !rec.removed && !rec.rejected && fullName(rec.pod) === name) waiting.push(uid);
    for (const uid of waiting) this.startIfFree(uid);
  }
}
