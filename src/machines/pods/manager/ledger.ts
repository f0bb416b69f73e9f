/**
 * The pod manager's ledger while it handles one event: new records, and messages to send. It takes the steps of pods' lives, and
 * holds a pod back while another of its full name is still being wound down (pod lifecycle 3.3, trap 2).
 */

import { transitionId } from '../../chart/definition.ts';
import { type Draft, SharedMap } from '../../data/sharedMap.ts';
import type { Pod } from '../../kube/types.ts';
import { fullName, isLeaving, sameName } from '../../pod/names.ts';
import { podFromListed } from '../../pod/runtime/killOrder.ts';
import { hasRun } from '../../pod/runtime/listed.ts';
import type { ListedPod, SourceName } from '../../pod/runtime/seen.ts';
import { LEFT_ALONE_ANNOTATION, shellOf } from '../../pod/setAside.ts';
import { because, type Cause } from '../../supervision/address.ts';
import { messageOf } from '../../text/errors.ts';
import type { Inspect, TakenTransition } from '../../xstate/kept.ts';
import { type AdmissionHost, Candidates } from '../admission/candidates.ts';
import { type Candidate, isUndecided } from '../admission/messages.ts';
import { RoomCount } from '../admission/room.ts';
import { podFields } from '../admission/supported.ts';
import { ResizeDraft } from '../resize/draft.ts';
import type { WorkerEvent } from '../workers/messages.ts';
import { isRefused, LIFE_STEPS_MAX, type Refused } from './messages.ts';
import { type LifeAct, type LifeEvent, stepLife } from './podLifeMachine.ts';
import {
  type Facts,
  type Life,
  listedOf,
  type Named,
  type Out,
  type PodLedger,
  predecessor,
  type Rec,
  type Renewal,
  type Step,
} from './records.ts';
import type { Refusals } from './refusalPace.ts';

/** What is known of a pod as its life begins. */
type Beginning = Pick<Rec, 'pod' | 'source' | 'causes'> & Partial<Pick<Rec, 'life' | 'renewed' | 'seenAtMs'>>;

export class Ledger implements AdmissionHost {
  readonly before: PodLedger;
  readonly facts: Facts;
  readonly out: Out[] = [];
  readonly records: Draft<string, Rec>;
  readonly waiting: Draft<string, Candidate>;
  readonly room: RoomCount;
  readonly beganMonoMs: number;
  readonly candidates: Candidates;
  refusals: Refusals;
  seen: ReadonlySet<SourceName>;
  begun: ReadonlySet<SourceName>;
  private readonly inspect: Inspect | null;
  private resizeDraft: ResizeDraft | null = null;
  private lives: number;
  private changed = false;
  /** UIDs by the full name of their pods, in the order of the records; null until it is asked for. */
  private names: Map<string, Set<string>> | null = null;

  constructor(before: PodLedger, facts: Facts, inspect: Inspect | null) {
    this.before = before;
    this.facts = facts;
    this.inspect = inspect;
    this.records = SharedMap.draft(before.records);
    this.waiting = SharedMap.draft(before.candidates);
    this.room = new RoomCount(before.holders, facts.listing, this.records);
    this.beganMonoMs = before.beganMonoMs;
    this.candidates = new Candidates(this);
    this.refusals = before.refusals;
    this.lives = before.lives;
    this.seen = before.seen;
    this.begun = before.begun;
  }

  finish(): Step {
    const { before, out, lives, seen, begun, refusals } = this;
    const ready = this.heard();
    const draft = ready && before.resizes.unsaved ? this.resizes : this.resizeDraft;
    const resizes = draft?.finish((uid) => this.records.has(uid) || this.waiting.has(uid)) ?? before.resizes;
    const [records, candidates, holders] = [this.records.finish(), this.waiting.finish(), this.room.finish()];
    const ledger = { ...before, records, candidates, lives, seen, begun, refusals, ready, resizes, holders };
    return { ledger, out, changed: this.changed || ready !== before.ready };
  }

  get resizes(): ResizeDraft {
    this.resizeDraft ??= new ResizeDraft(this.before.resizes, {
      ...{ facts: this.facts, out: this.out },
      record: (uid) => this.records.get(uid),
      heard: () => this.heard(),
      others: (pod) => this.candidates.others(pod),
    });
    return this.resizeDraft;
  }

  /** Every source has delivered, and what it named was judged. */
  heard(): boolean {
    const { ready, sources } = this.before;
    return ready || (sources.every((s) => this.seen.has(s)) && ![...this.waiting.values()].some(isUndecided));
  }
  deliver(source: SourceName, over: boolean): void {
    if (this.seen.has(source)) return;
    this.begun = new Set([...this.begun, source]);
    if (over) this.seen = new Set([...this.seen, source]);
    this.changed = true;
  }
  newLife(): number {
    this.lives += 1;
    return this.lives;
  }
  why(prior: readonly Cause[] | undefined, what: string): readonly Cause[] {
    const { wallMs: atMs, by } = this.facts;
    return because(prior, { atMs, by, what });
  }

  /** One step in the life of a pod that is known. Of another one nothing happens. */
  step(uid: string, event: LifeEvent): void {
    const rec = this.records.get(uid);
    if (rec !== undefined) this.take(rec, event);
  }
  /** The same. The life of a pod that is not known begins with it. */
  meet(o: Beginning, event: LifeEvent): void {
    const rec = this.records.get(o.pod.metadata.uid);
    if (rec === undefined) this.begin(o, event);
    else this.take(rec, event);
  }
  refuse(named: Named, refused: Refused): void {
    const event = this.refusal(named, refused);
    this.meet({ ...named, causes: event.why }, event);
  }
  /** A life begins that admission let in. It starts unless another pod of its full name stands before it. */
  start(o: Beginning): void {
    const { pod, source } = o;
    const known = this.records.get(pod.metadata.uid);
    // It takes the place of the life before it among those of its name.
    if (known !== undefined) this.put({ ...known, pod });
    this.sayFieldsLeft(pod, source);
    this.begin(o, this.turn(pod));
  }
  leaveAlone(pod: Pod, source: SourceName, error: string): void {
    const causes = this.why(undefined, `it is left alone: ${error}`);
    this.meet({ pod, source, causes }, { type: 'life.leftAlone', pod, source, causes, error });
  }
  /** `listed`: what the runtime holds of a pod, which no source wants as far as is known. */
  found(listed: ListedPod, causes: readonly Cause[] | undefined): void {
    const pod = podFromListed(listed);
    const known = this.records.get(listed.uid);
    const why =
      known === undefined
        ? this.why(causes, `the runtime holds ${fullName(pod)} and no source wants it`)
        : this.why(
            known.causes,
            `the runtime still holds ${fullName(pod)}, ${isRefused(known) ? 'which this node refused' : 'which has ended'}`,
          );
    this.meet({ pod, source: 'runtime', causes: why }, { type: 'life.found', listed, causes: why });
  }
  evict(rec: Rec, o: Pick<Extract<LifeEvent, { type: 'life.evicted' }>, 'eviction' | 'causes' | 'hurry'>): void {
    this.take(rec, { type: 'life.evicted', ...o, heard: this.heard() });
  }

  /** An error over one pod is that pod's trouble alone: one that runs goes on as it was, another is left alone. */
  guarded(pod: Pod, source: SourceName, fn: () => void): void {
    const { uid } = pod.metadata;
    const [before, sent] = [this.records.get(uid), this.out.length];
    try {
      fn();
    } catch (thrown) {
      const error = messageOf(thrown);
      this.out.length = sent;
      this.waiting.delete(uid);
      this.records.delete(uid);
      if (before !== undefined) this.put(before);
      else this.leaveAlone(shellOf(pod, error, LEFT_ALONE_ANNOTATION), source, error);
      this.out.push({ to: 'leftAlone', pod, error });
    }
  }

  private begin(o: Beginning, event: LifeEvent): void {
    this.take({ life: this.newLife(), renewed: false, seenAtMs: this.facts.wallMs, ...o, way: [], worker: null, state: null }, event);
  }
  private take(before: Life, event: LifeEvent): void {
    const at = { state: before.state?.is ?? 'seen', context: before };
    const { state, context, actions, taken } = stepLife(at, event, this.inspect);
    const ends = state === 'forgotten';
    if (!ends && context.state !== null && context !== before) this.put({ ...context, state: context.state }, taken);
    // The life that follows takes its place among the records.
    if (ends && !actions.some(({ type }) => type === 'renew')) this.drop(context);
    for (const act of actions) this.carryOut(context, act);
  }
  private carryOut(life: Life, act: LifeAct): void {
    const { pod } = life;
    switch (act.type) {
      case 'create':
        this.out.push({ to: 'worker', event: created(life, act.params.pod) });
        return;
      case 'update':
        this.out.push({ to: 'worker', event: updated(life, act.params) });
        return;
      case 'kill':
        this.out.push({ to: 'worker', event: killed(life, act.params) });
        return;
      case 'reject':
        this.out.push({ to: 'rejected', pod, life: life.life, ...act.params });
        return;
      case 'forget':
        this.out.push({ to: 'forget', uid: pod.metadata.uid, life: life.life });
        return;
      case 'sweep':
        this.out.push({ to: 'gc', why: `pod ${fullName(pod)} ${act.params.why}` });
        return;
      case 'wake':
        this.wake(fullName(pod));
        return;
      case 'renew':
        this.renew(life, act.params);
    }
  }
  private renew({ source, seenAtMs }: Life, { next: { pod, refusal }, causes }: Renewal): void {
    const known = { pod, source, seenAtMs, renewed: true } as const;
    if (refusal === null) {
      this.start({ ...known, causes: causes ?? [] });
      return;
    }
    const event = this.refusal({ pod, source, causes }, refusal);
    this.begin({ ...known, causes: event.why }, event);
  }
  private refusal(named: Named, refused: Refused) {
    return { type: 'life.refused', ...named, refused, why: this.why(named.causes, `refused: ${refused.message}`) } as const;
  }

  /** `taken`: what led into its state; null: it was in it before. */
  private put(rec: Rec, taken: TakenTransition | null = null): void {
    const { uid } = rec.pod.metadata;
    const before = this.records.get(uid);
    // A renamed one keeps its place among the records.
    if (before !== undefined && !sameName(before.pod, rec.pod)) this.names = null;
    else if (before === undefined && this.names !== null) note(this.names, uid, rec);
    const step = { is: rec.state.is, atMs: this.facts.wallMs, by: taken === null ? '' : (transitionId(taken) ?? '') };
    const now = taken === null ? rec : { ...rec, way: [...rec.way, step].slice(-LIFE_STEPS_MAX) };
    this.records.set(uid, now);
    this.room.recount(uid, now);
    this.changed = true;
  }
  private drop({ pod }: Life): void {
    const { uid } = pod.metadata;
    this.records.delete(uid);
    this.names?.get(fullName(pod))?.delete(uid);
    this.room.recount(uid, null);
    this.changed = true;
  }

  private turn(pod: Pod): LifeEvent {
    const behind = isLeaving(pod) ? null : predecessor(this.named(fullName(pod)), pod.metadata.uid);
    return { type: 'life.turn', behind, nowMs: this.facts.wallMs };
  }
  /** Pods that wait for this name. */
  private wake(name: string): void {
    const waiting = [...this.named(name)].filter(([, rec]) => rec.state.is === 'waiting');
    for (const [uid, { pod }] of waiting) this.step(uid, this.turn(pod));
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

  /** Fields without effect are named once in the life of a pod, before it runs. */
  private sayFieldsLeft(pod: Pod, source: Rec['source']): void {
    if ((pod.status.phase ?? 'Pending') !== 'Pending' || hasRun(this.facts.listing?.pods.get(pod.metadata.uid))) return;
    const { leftAlone } = podFields(pod, { api: source === 'api' });
    if (leftAlone.length > 0) this.out.push({ to: 'fieldsLeft', pod, fields: leftAlone });
  }
}

function note(names: Map<string, Set<string>>, uid: string, { pod }: Rec): void {
  const name = fullName(pod);
  const uids = names.get(name);
  if (uids === undefined) names.set(name, new Set([uid]));
  else uids.add(uid);
}

/** A worker is to be there for it. */
export function created(life: Life, pod = life.pod): WorkerEvent {
  const listed = listedOf(life);
  return { ...updated({ ...life, pod }, { kind: 'create' }), ...(listed === null ? {} : { fromRuntime: listed }) };
}
function updated(
  life: Life,
  { kind, ...more }: Extract<LifeAct, { type: 'update' }>['params'],
): Extract<WorkerEvent, { type: 'pod.update' }> {
  const { pod, causes } = { ...life, ...more };
  return { type: 'pod.update', uid: pod.metadata.uid, life: life.life, kind, pod, ...causesOf(causes) };
}
export function killed({ pod, life, ...own }: Life, more: Extract<LifeAct, { type: 'kill' }>['params'] = {}): WorkerEvent {
  const { causes, ...rest } = { causes: own.causes, ...more };
  return { type: 'pod.kill', uid: pod.metadata.uid, life, ...rest, ...causesOf(causes) };
}
function causesOf(causes: readonly Cause[] | undefined): { causes?: readonly Cause[] } {
  return causes === undefined ? {} : { causes };
}
