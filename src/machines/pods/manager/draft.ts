/** The pod manager's ledger while it handles one event: new records, and messages to send. It starts pods and holds them back. */

import { type Draft, SharedMap } from '../../data/sharedMap.ts';
import type { Pod } from '../../kube/types.ts';
import { fullName, isLeaving, sameName } from '../../pod/names.ts';
import { hasRun } from '../../pod/runtime/listed.ts';
import type { SourceName } from '../../pod/runtime/seen.ts';
import { LEFT_ALONE_ANNOTATION, shellOf } from '../../pod/setAside.ts';
import { because, type Cause } from '../../supervision/address.ts';
import { messageOf } from '../../text/errors.ts';
import { podFields } from '../admission/supported.ts';
import { wayTo } from './life.ts';
import type { Candidate } from './messages.ts';
import {
  type Facts,
  inState,
  isUndecided,
  live,
  newRecord,
  type Out,
  type PodLedger,
  predecessor,
  type Rec,
  type Step,
} from './records.ts';

export abstract class LedgerDraft {
  readonly ledger: PodLedger;
  readonly facts: Facts;
  readonly records: Draft<string, Rec>;
  readonly candidates: Draft<string, Candidate>;
  lives: number;
  seen: ReadonlySet<SourceName>;
  begun: ReadonlySet<SourceName>;
  changed = false;
  readonly out: Out[] = [];
  /** UIDs by the full name of their pods, in the order of the records; null until it is asked for. */
  private names: Map<string, Set<string>> | null = null;

  constructor(ledger: PodLedger, facts: Facts) {
    this.ledger = ledger;
    this.facts = facts;
    this.records = SharedMap.draft(ledger.records);
    this.candidates = SharedMap.draft(ledger.candidates);
    this.lives = ledger.lives;
    this.seen = ledger.seen;
    this.begun = ledger.begun;
  }

  finish(): Step {
    const { ledger, out, lives, seen, begun } = this;
    const ready = this.isReady();
    const [records, candidates] = [this.records.finish(), this.candidates.finish()];
    return { ledger: { ...ledger, records, candidates, lives, seen, begun, ready }, out, changed: this.changed || ready !== ledger.ready };
  }
  protected isReady(): boolean {
    const { ready, sources } = this.ledger;
    return ready || (sources.every((s) => this.seen.has(s)) && !this.anyUndecided());
  }
  private anyUndecided(): boolean {
    for (const c of this.candidates.values()) if (isUndecided(c)) return true;
    return false;
  }
  protected put(uid: string, rec: Rec): void {
    const way = wayTo(this.ledger.records.get(uid), rec, this.facts.wallMs);
    const before = this.records.get(uid);
    // A renamed one keeps its place among the records.
    if (before !== undefined && !sameName(before.pod, rec.pod)) this.names = null;
    else if (before === undefined && this.names !== null) note(this.names, uid, rec);
    this.records.set(uid, way === rec.way ? rec : { ...rec, way });
    this.changed = true;
  }
  protected newLife(): number {
    this.lives += 1;
    return this.lives;
  }
  protected drop(rec: Rec): void {
    const { uid } = rec.pod.metadata;
    this.records.delete(uid);
    this.names?.get(fullName(rec.pod))?.delete(uid);
    this.changed = true;
    this.out.push({ to: 'forget', uid, life: rec.life });
  }
  why(prior: readonly Cause[] | undefined, what: string): readonly Cause[] {
    const { wallMs: atMs, by } = this.facts;
    return because(prior, { atMs, by, what });
  }

  protected kill(rec: Rec): void {
    const uid = rec.pod.metadata.uid;
    this.out.push({ to: 'worker', event: { type: 'pod.kill', uid, life: rec.life, causes: rec.causes } });
  }

  /** Said once in the life of a pod that has not run yet. */
  protected sayFieldsLeft(pod: Pod, source: Rec['source']): void {
    if ((pod.status.phase ?? 'Pending') !== 'Pending' || hasRun(this.facts.listing?.pods.get(pod.metadata.uid))) return;
    const { leftAlone } = podFields(pod, { api: source === 'api' });
    if (leftAlone.length > 0) this.out.push({ to: 'fieldsLeft', pod, fields: leftAlone });
  }

  /** An error over one pod is that pod's trouble alone: one that runs goes on as it was, another is left alone. */
  protected guarded(pod: Pod, source: SourceName, fn: () => void): void {
    const { uid } = pod.metadata;
    const [before, sent] = [this.records.get(uid), this.out.length];
    try {
      fn();
    } catch (thrown) {
      const error = messageOf(thrown);
      this.out.length = sent;
      this.candidates.delete(uid);
      this.records.delete(uid);
      if (before !== undefined) this.put(uid, before);
      else this.leave(shellOf(pod, error, LEFT_ALONE_ANNOTATION), source, error);
      this.out.push({ to: 'leftAlone', pod, error });
    }
  }

  /** Nothing is done about it until its definition changes. */
  protected leave(pod: Pod, source: SourceName, error: string): void {
    const { uid } = pod.metadata;
    const known = this.records.get(uid);
    if (known !== undefined && (known.state.is !== 'quarantined' || known.state.verdict !== null)) return;
    const causes = this.why(undefined, `it is left alone: ${error}`);
    const life = known ?? { life: this.newLife(), renewed: false, seenAtMs: this.facts.wallMs };
    this.put(uid, newRecord({ ...life, pod, source, causes }, { is: 'quarantined', verdict: null, error }));
  }

  /**
   * Starts it unless another pod of the same full name is still being wound down or stands before it. One that its source
   * has deleted runs nothing any more and waits for nobody: whoever deleted it waits to hear that it has ended, and the
   * static pod before it may stay for good.
   */
  protected startIfFree(uid: string): void {
    const rec = this.records.get(uid);
    if (rec?.state.is !== 'waiting') return;
    const behind = isLeaving(rec.pod) ? undefined : predecessor(this.named(fullName(rec.pod)), rec);
    if (behind !== undefined) {
      this.hold(uid, rec, behind);
      return;
    }
    const started = { ...inState(rec, { is: 'running', listed: null }), worker: null };
    this.put(uid, started);
    this.create(started);
  }

  /** A worker is to be there for it. */
  protected create(rec: Rec): void {
    const { pod, life, causes } = rec;
    const { uid } = pod.metadata;
    const fromRuntime = live(rec) && rec.state.listed !== null ? { fromRuntime: rec.state.listed } : {};
    this.out.push({ to: 'worker', event: { type: 'pod.update', uid, life, kind: 'create', pod, causes, ...fromRuntime } });
  }

  private hold(uid: string, rec: Rec, behind: string): void {
    this.put(uid, {
      ...rec,
      worker: {
        phase: 'waiting',
        state: 'waiting',
        reason: 'WaitingForPredecessor',
        message: `an earlier pod of this name (uid ${behind}) is still being stopped`,
        sinceMs: this.facts.wallMs,
        containers: [],
        causes: rec.causes,
      },
    });
  }

  protected startWaiters(name: string): void {
    const waiting = [...this.named(name)].filter(([, rec]) => rec.state.is === 'waiting');
    for (const [uid] of waiting) this.startIfFree(uid);
  }

  /** Every record of that name: thousands of pods may go at once, and each asks who waited for it. */
  private *named(name: string): Iterable<readonly [string, Rec]> {
    if (this.names === null) {
      this.names = new Map();
      for (const [uid, rec] of this.records) note(this.names, uid, rec);
    }
    for (const uid of this.names.get(name) ?? []) {
      const rec = this.records.get(uid);
      if (rec !== undefined) yield [uid, rec];
    }
  }
}

function note(names: Map<string, Set<string>>, uid: string, { pod }: Rec): void {
  const name = fullName(pod);
  const uids = names.get(name);
  if (uids === undefined) names.set(name, new Set([uid]));
  else uids.add(uid);
}
