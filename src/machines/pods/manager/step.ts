/**
 * The pod manager's step as a pure function: one event in, the next ledger and messages out. It orders the updates of one UID, which
 * may be wound down still when it is named again (trap 58).
 */

import type { Pod } from '../../kube/types.ts';
import { byCreation, fullName } from '../../pod/names.ts';
import type { SourceName } from '../../pod/runtime/seen.ts';
import { LEFT_ALONE_ANNOTATION } from '../../pod/setAside.ts';
import { causesAbout } from '../../supervision/address.ts';
import { messageOf } from '../../text/errors.ts';
import type { Inspect } from '../../xstate/kept.ts';
import { type Candidate, keepsRoom } from '../admission/messages.ts';
import { created, killed, Ledger } from './ledger.ts';
import { isWanted, type PodManagerEvent, type PodOpEvent } from './messages.ts';
import { type Facts, isLive, listedOf, nextOf, type PodLedger, type Step } from './records.ts';

/** What the pod manager takes: a message, or a look at what waits. */
export type StepEvent = PodManagerEvent | { type: 'look' };

/** An event about one pod that cannot be handled is dropped: it must not end the pod manager. `inspect` hears of steps of pods' lives. */
export function step(before: PodLedger, event: StepEvent, facts: Facts, inspect: Inspect | null = null): Step {
  const ledger = new Ledger(before, facts, inspect);
  try {
    take(ledger, event);
    return ledger.finish();
  } catch (thrown) {
    const rec = 'uid' in event ? before.records.get(event.uid) : undefined;
    if (rec === undefined) throw thrown;
    return { ledger: before, out: [{ to: 'leftAlone', pod: rec.pod, error: messageOf(thrown) }], changed: false };
  }
}

function take(ledger: Ledger, event: StepEvent): void {
  switch (event.type) {
    case 'pods.op':
      op(ledger, event);
      return;
    case 'look':
      look(ledger);
      return;
    case 'pods.allocated':
      allocated(ledger, event);
      return;
    case 'worker.state':
      if (ledger.records.get(event.uid)?.life !== event.life) return;
      ledger.step(event.uid, { type: event.state.phase === 'finished' ? 'life.finished' : 'life.reported', worker: event.state });
      return;
    // What follows from the view of an earlier pod manager was in the mailbox when it ended: this one does not know yet
    // who is wanted, and its workers are others.
    case 'pods.orphan':
      if (event.epoch === ledger.before.epoch) ledger.found(event.listed, event.causes);
      return;
    case 'pods.quarantined':
      if (event.epoch === ledger.before.epoch) ledger.step(event.uid, { type: 'life.quarantined', error: event.error });
      return;
    case 'pods.evict': {
      const rec = ledger.records.get(event.uid);
      if (rec !== undefined) ledger.evict(rec, { eviction: event.eviction, causes: event.causes, hurry: event.hurry === true });
      return;
    }
    case 'pods.refuse': {
      const rec = ledger.records.get(event.uid);
      if (rec?.state.is !== 'running') return;
      const { reason, message } = event.refused;
      ledger.out.push({ to: 'refused', pod: rec.pod, reason, message });
      const eviction = { reason, message: `Pod was rejected: ${message}`, graceSeconds: 0 };
      ledger.evict(rec, { eviction, causes: event.causes, hurry: false });
      return;
    }
    case 'pods.dirty': {
      const rec = ledger.records.get(event.uid);
      if (rec === undefined || !isLive(rec)) return;
      const { uid, why, ended, listed = false } = event;
      const causes = event.causes ?? ledger.why(undefined, why);
      ledger.out.push({ to: 'worker', event: { type: 'pod.dirty', uid, why, causes, listed, ...(ended === undefined ? {} : { ended }) } });
      return;
    }
    default:
      throw new Error(`pod manager: no such event ${JSON.stringify(event satisfies never)}`);
  }
}

function op(ledger: Ledger, event: PodOpEvent): void {
  const { op, source, causes, part = 'whole' } = event;
  // Left in the mailbox by a podConfig that ended together with the pod manager before this one: it names a part of the pods
  // only, and would pass for all that the source has. The one that follows begins with its first word.
  const begins = event.first === true && (part === 'whole' || part === 'begin');
  if (!ledger.seen.has(source) && !ledger.begun.has(source) && !begins) return;
  // The new pod of that name waits until they have ended.
  for (const listed of event.predecessors ?? []) {
    const what = `source ${source} holds another definition of ${listed.namespace}/${listed.name} by now`;
    ledger.found(listed, ledger.why(causes, what));
  }
  if (op === 'ADD') ledger.candidates.named(event);
  const pods = op === 'ADD' ? [...event.pods].sort(byCreation) : event.pods;
  for (const pod of pods) ledger.guarded(pod, source, () => takePod(ledger, pod, event));
  const over = part === 'whole' || part === 'end';
  ledger.deliver(source, over);
  if (event.complete !== undefined) removeMissing(ledger, event, new Set(event.complete));
  // After those that are missing from its first word: their workers may be gone too.
  if (event.first === true && over) resume(ledger, source);
  judged(ledger);
}

function takePod(ledger: Ledger, pod: Pod, event: PodOpEvent): void {
  const { source } = event;
  const { uid } = pod.metadata;
  const causes = causesAbout(event.causes, fullName(pod));
  const waiting = ledger.waiting.get(uid);
  if (event.op === 'REMOVE') {
    if (waiting !== undefined) ledger.candidates.release(waiting);
    ledger.resizes.forget(uid);
    ledger.step(uid, {
      type: 'life.removed',
      causes: ledger.why(causes, `${fullName(pod)} is gone from source ${source}`),
      heard: ledger.heard(),
    });
    return;
  }
  const leftAlone = pod.metadata.annotations?.[LEFT_ALONE_ANNOTATION];
  if (leftAlone !== undefined) {
    ledger.leaveAlone(pod, source, leftAlone);
    return;
  }
  // Another definition of a pod that was left alone may be handled: it begins anew, with what runs of it.
  const known = ledger.records.has(uid);
  ledger.step(uid, { type: 'life.redefined', pod });
  const op = known && !ledger.records.has(uid) ? 'ADD' : event.op;
  if (op === 'DELETE') ledger.resizes.giveUp(uid);
  if (op !== 'ADD' && waiting !== undefined) {
    // Where it is not judged yet, the newest definition will be.
    ledger.candidates.wait({ ...waiting, pod });
    if (waiting.wait !== 'unallocated') return;
  }
  const { asked = null, leaving = new Map() } = waiting ?? {};
  const wait = waiting?.wait === 'unallocated' ? waiting.wait : 'later';
  const candidate: Candidate = { pod, op, source, causes, sinceMonoMs: ledger.facts.monoMs, wait, asked, leaving };
  if (op === 'ADD' || op === 'UPDATE') admit(ledger, candidate);
  else letIn(ledger, ledger.resizes.form(pod), candidate);
}

function admit(ledger: Ledger, candidate: Candidate): void {
  const decided = ledger.candidates.admit(candidate);
  if (decided?.is === 'admitted') letIn(ledger, decided.pod, candidate);
  if (decided?.is !== 'refused') return;
  const { pod, source, causes } = candidate;
  const { reason, message } = decided.refusal;
  ledger.out.push({ to: 'refused', pod, reason, message });
  ledger.refuse({ pod, source, causes }, { reason, message });
}

function letIn(ledger: Ledger, pod: Pod, { op, source, causes }: Candidate): void {
  const { uid } = pod.metadata;
  const known = ledger.records.has(uid);
  if (op === 'ADD' || !known) {
    const why = ledger.why(causes, `${fullName(pod)} was added by source ${source}`);
    if (known) ledger.step(uid, { type: 'life.added', pod, source, causes: why, heard: ledger.heard() });
    else ledger.start({ pod, source, causes: why });
  } else if (op === 'RECONCILE') ledger.step(uid, { type: 'life.reconciled', status: pod.status });
  else ledger.step(uid, { type: 'life.changed', pod, source, causes: ledger.why(causes, `${op} from source ${source}`) });
}

/** At all that waits. Those whose room is kept come first: the others get what they leave. */
function look(ledger: Ledger): void {
  ledger.candidates.countAnew(() => false);
  for (const c of [...ledger.waiting.values()].sort((a, b) => Number(keepsRoom(b)) - Number(keepsRoom(a))))
    ledger.guarded(c.pod, c.source, () => admit(ledger, c));
  if (ledger.before.resizes.waiting.size > 0) {
    const causes = ledger.why(undefined, 'a change of its resources was looked at again');
    for (const pod of ledger.resizes.retry()) ledger.step(pod.metadata.uid, { type: 'life.changed', pod, source: 'api', causes });
  }
  judged(ledger);
}

function allocated(ledger: Ledger, { uid, id, answer }: Extract<PodManagerEvent, { type: 'pods.allocated' }>): void {
  const c = ledger.waiting.get(uid);
  if (c?.asked?.id !== id) return;
  const why = answer.kind === 'later' ? answer.why : '';
  if (why !== '' && why !== c.asked.why) {
    ledger.out.push({ to: 'log', level: 'info', pod: c.pod, message: 'a pod is not admitted yet; it is looked at again', more: { why } });
  }
  const told = { ...c, asked: { ...c.asked, answer, atMonoMs: ledger.facts.monoMs, why } };
  ledger.candidates.wait(told);
  // The others are looked at from time to time: in a burst each of them has an answer of its own soon.
  ledger.guarded(c.pod, c.source, () => admit(ledger, told));
  judged(ledger);
}

/** Removals seen before every source had delivered were only noted (pod lifecycle 1.8). */
function judged(ledger: Ledger): void {
  if (ledger.before.ready || !ledger.heard()) return;
  for (const rec of ledger.records.values()) if (!isWanted(rec)) ledger.out.push({ to: 'worker', event: killed(rec) });
  ledger.out.push({ to: 'housekeep', why: 'every source has delivered, and what it named was judged' });
}

/**
 * Pods of that source that are being wound down, and orphans, have nobody who would name them again if the workers
 * were restarted: each is handed over once more. A worker that is there takes it as an update that changes nothing.
 */
function resume(ledger: Ledger, source: SourceName): void {
  for (const uid of ledger.before.records.keys()) {
    const rec = ledger.records.get(uid);
    if (rec === undefined || (isWanted(rec) && listedOf(rec) === null)) continue;
    if (rec.source === source || rec.source === 'runtime') ledger.out.push({ to: 'worker', event: created(rec) });
  }
}

function removeMissing(ledger: Ledger, { source, causes }: PodOpEvent, complete: ReadonlySet<string>): void {
  for (const [uid, rec] of ledger.before.records) {
    // A pod on its way out may be waiting to come back: no longer, where its source forgot it meanwhile. A podConfig that
    // was restarted since never heard of it and removes nothing.
    if (rec.source !== source || complete.has(uid) || (!isWanted(rec) && nextOf(rec) === null)) continue;
    const own = causesAbout(causes, fullName(rec.pod));
    const why = ledger.why(own, `${fullName(rec.pod)} is not in the complete set of source ${source}`);
    ledger.step(uid, { type: 'life.removed', causes: why, heard: ledger.heard() });
  }
}
