import { describe, expect, test } from 'vitest';
import type { Pod } from '../../src/machines/kube/types.ts';
import type { PodManagerEvent } from '../../src/machines/pods/manager/messages.ts';
import { emptyLedger, type Facts, type Out, type PodLedger } from '../../src/machines/pods/manager/records.ts';
import { step } from '../../src/machines/pods/manager/step.ts';
import type { WorkerPhase } from '../../src/machines/pods/workers/messages.ts';
import { managerFacts, ofApi, refusable } from './managerFacts.ts';

function pod(name: string, uid: string, image = 'a'): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid },
    spec: { containers: [{ name: 'c', image }], restartPolicy: 'Always' },
    status: { phase: 'Pending' },
  };
}

class Bench {
  ledger: PodLedger;
  out: Out[] = [];
  facts: Facts = managerFacts();
  constructor(sources: ('file' | 'http')[] = ['file']) {
    this.ledger = emptyLedger(sources);
  }
  send(event: PodManagerEvent): Out[] {
    const next = step(this.ledger, event, this.facts);
    this.ledger = next.ledger;
    this.out = next.out;
    return next.out;
  }
  op(
    op: 'ADD' | 'UPDATE' | 'REMOVE' | 'RECONCILE',
    pods: Pod[],
    more: { source?: 'file' | 'http'; complete?: string[]; first?: boolean } = {},
  ): Out[] {
    const { source = 'file', complete } = more;
    // As podConfig has it: its first word of a source says so.
    const first = more.first ?? !this.ledger.seen.has(source);
    return this.send({
      type: 'pods.op',
      op,
      source,
      pods,
      ...(first ? { first } : {}),
      ...(complete ? { complete } : {}),
    });
  }
  phase(uid: string, phase: WorkerPhase): Out[] {
    const life = this.ledger.records.get(uid)?.life ?? 0;
    return this.send({
      type: 'worker.state',
      uid,
      life,
      state: { phase, state: phase, reason: '', message: '', sinceMs: 0, containers: [], causes: [] },
    });
  }
  look(): Out[] {
    const next = step(this.ledger, { type: 'look' }, this.facts);
    this.ledger = next.ledger;
    this.out = next.out;
    return next.out;
  }
  workerEvents(): string[] {
    return this.out.flatMap((o) =>
      o.to === 'worker' ? [`${o.event.type}${o.event.type === 'pod.update' ? `:${o.event.kind}` : ''} ${o.event.uid}`] : [],
    );
  }
}
const it = test.extend('b', () => new Bench());

describe('the pod manager', () => {
  it('takes no word of a source before its first one: what an earlier podConfig left in the mailbox names a part of the pods only', ({
    b,
  }) => {
    b.send({ type: 'pods.op', op: 'ADD', source: 'file', pods: [pod('web', 'u1')], complete: ['u1', 'u2'] });
    expect(b.out).toEqual([]);
    expect(b.ledger.records.size).toBe(0);
    expect(b.ledger.ready).toBe(false);
  });

  it('takes a source for delivered with the last part of its first word, and takes no part whose beginning it never saw', ({ b }) => {
    const send = (part: 'begin' | 'middle' | 'end', uid: string) =>
      b.send({ type: 'pods.op', op: 'ADD', source: 'file', pods: [pod(uid, uid)], first: true, part });
    send('end', 'left');
    expect([b.ledger.records.size, b.ledger.ready]).toEqual([0, false]);
    send('begin', 'u1');
    send('middle', 'u2');
    expect([b.ledger.records.size, b.ledger.ready]).toEqual([2, false]);
    send('end', 'u3');
    expect([b.ledger.records.size, b.ledger.ready]).toEqual([3, true]);
  });

  it('winds down what runs under the name of a pod from another definition, before that pod starts', ({ b }) => {
    const listed = { uid: 'old', name: 'web', namespace: 'default', sandboxes: [], containers: [] };
    b.send({ type: 'pods.op', op: 'ADD', source: 'file', pods: [pod('web', 'u1')], complete: ['u1'], first: true, predecessors: [listed] });
    expect(b.workerEvents()).toEqual(['pod.update:create old', 'pod.kill old']);
    expect(b.ledger.records.get('u1')?.worker?.reason).toBe('WaitingForPredecessor');
    b.phase('old', 'finished');
    expect(b.workerEvents()).toEqual(['pod.update:create u1']);
  });

  it('starts a worker for a new pod', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    expect(b.workerEvents()).toEqual(['pod.update:create u1']);
  });

  it('trap 2: holds an edited static pod back until its predecessor of the same name has finished', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.op('REMOVE', [pod('web', 'u1')]);
    expect(b.workerEvents()).toEqual(['pod.kill u1']);
    b.op('ADD', [pod('web', 'u2', 'b')]);
    expect(b.workerEvents()).toEqual([]);
    expect(b.ledger.records.get('u2')?.worker?.reason).toBe('WaitingForPredecessor');
    b.phase('u1', 'terminating');
    expect(b.workerEvents()).toEqual([]);
    b.phase('u1', 'finished');
    expect(b.workerEvents()).toEqual(['pod.update:create u2']);
    expect(b.ledger.records.has('u1')).toBe(false);
  });

  it.each(['UPDATE', 'ADD'] as const)('lets a pod that is deleted while it waits behind another of its name go at once (%s)', (op) => {
    const b = new Bench();
    b.op('ADD', [pod('web', 'u1')]);
    b.op('ADD', [pod('web', 'u2')]);
    expect(b.ledger.records.get('u2')?.worker?.reason).toBe('WaitingForPredecessor');
    b.op('UPDATE', [pod('web', 'u2', 'b')]);
    expect(b.workerEvents()).toEqual([]);
    expect(b.ledger.records.get('u2')?.worker?.reason).toBe('WaitingForPredecessor');
    const deleted = pod('web', 'u2', 'b');
    deleted.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    b.op(op, [deleted]);
    expect(b.workerEvents()).toEqual(['pod.update:create u2']);
    b.op('ADD', [pod('web', 'u3')]);
    b.phase('u2', 'finished');
    b.op('REMOVE', [deleted]);
    expect([...b.ledger.records.keys()]).toEqual(['u1', 'u3']);
    expect(b.ledger.records.get('u3')?.worker?.reason).toBe('WaitingForPredecessor');
    b.op('REMOVE', [pod('web', 'u1')]);
    b.phase('u1', 'finished');
    expect(b.workerEvents()).toEqual(['pod.update:create u3']);
  });

  it('gives the slot of a name to the newest of several edits made while the first pod is still stopping', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.op('REMOVE', [pod('web', 'u1')]);
    b.op('ADD', [pod('web', 'u2')]);
    b.op('REMOVE', [pod('web', 'u2')]);
    b.op('ADD', [pod('web', 'u3')]);
    b.phase('u1', 'finished');
    expect(b.workerEvents()).toEqual(['pod.update:create u3']);
    expect([...b.ledger.records.keys()]).toEqual(['u3']);
  });

  it('trap 58: a pinned UID that is removed and added again while stopping starts anew when it has finished', ({ b }) => {
    b.op('ADD', [pod('web', 'pinned')]);
    b.op('REMOVE', [pod('web', 'pinned')]);
    b.op('ADD', [pod('web', 'pinned', 'b')]);
    expect(b.workerEvents()).toEqual([]);
    b.phase('pinned', 'finished');
    expect(b.workerEvents()).toEqual(['pod.update:create pinned']);
    expect(b.ledger.records.get('pinned')).toMatchObject({ life: 2, state: { is: 'running' } });
  });

  it('trap 6: notes a removal but stops nothing before every source has delivered', () => {
    const b = new Bench(['file', 'http']);
    b.op('ADD', [pod('web', 'u1')]);
    b.op('REMOVE', [pod('web', 'u1')]);
    expect(b.workerEvents()).toEqual([]);
    expect(b.ledger.ready).toBe(false);
    b.op('ADD', [], { source: 'http' });
    expect(b.workerEvents()).toEqual(['pod.kill u1']);
    expect(b.out.some((o) => o.to === 'housekeep')).toBe(true);
  });

  it('lets a pod go on that was removed and is named again before every source has delivered', () => {
    const b = new Bench(['file', 'http']);
    b.op('ADD', [pod('web', 'u1')]);
    b.op('REMOVE', [pod('web', 'u1')]);
    b.op('ADD', [pod('web', 'u1', 'b')]);
    expect(b.workerEvents()).toEqual(['pod.update:create u1']);
    b.op('ADD', [], { source: 'http' });
    expect(b.workerEvents()).toEqual([]);
    expect(b.ledger.records.get('u1')).toMatchObject({ state: { is: 'running' }, pod: pod('web', 'u1', 'b') });
  });

  it('takes no pod for an orphan while it has not judged all that the sources name', ({ b }) => {
    const { offer } = b.facts;
    const web = pod('web', 'u1');
    const db = ofApi(pod('db', 'u2'));
    b.facts = managerFacts({ offer: { ...offer, podsMax: 1 }, listing: undefined });
    b.op('ADD', [web, db], { complete: ['u1', 'u2'] });
    b.op('REMOVE', [web]);
    expect(b.workerEvents()).toEqual([]);
    expect(b.ledger.ready).toBe(false);
    // Until the runtime is listed: perhaps it runs here already.
    b.look();
    expect([b.ledger.ready, [...b.ledger.candidates.keys()]]).toEqual([false, ['u2']]);
    b.facts = managerFacts({ offer: { ...offer, podsMax: 1 } });
    b.look();
    expect(b.ledger.ready).toBe(true);
    expect(b.workerEvents()).toEqual(['pod.kill u1']);
    expect(b.out.some((o) => o.to === 'housekeep')).toBe(true);
    expect(b.ledger.records.get('u2')?.state.is).toBe('refused');
    // For good: one that comes later was not here before.
    b.facts = managerFacts({ offer: { ...offer, podsMax: 0 }, listing: undefined });
    b.op('ADD', [ofApi(pod('late', 'u3'))]);
    expect([b.ledger.ready, b.ledger.candidates.size]).toEqual([true, 1]);
  });

  it('trap 5: an empty first SET makes the source ready', ({ b }) => {
    expect(b.ledger.ready).toBe(false);
    b.op('ADD', []);
    expect(b.ledger.ready).toBe(true);
  });

  it('stops a pod that a restarted podConfig no longer names in its complete set', ({ b }) => {
    b.op('ADD', [pod('a', 'ua'), pod('b', 'ub')]);
    b.op('ADD', [pod('a', 'ua')], { complete: ['ua'] });
    expect(b.workerEvents()).toEqual(['pod.update:create ua', 'pod.kill ub']);
  });

  // Found by seed 101290: the pod came back, and the one that had taken its name waited behind it for good.
  it('does not bring back what was to come back when a restarted podConfig no longer names it', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.op('REMOVE', [pod('web', 'u1')]);
    b.phase('u1', 'terminating');
    b.op('ADD', [pod('web', 'u1')], { complete: ['u1'] });
    expect(b.ledger.records.get('u1')?.state).toMatchObject({ is: 'leaving', next: { refusal: null } });
    b.send({ type: 'pods.op', op: 'ADD', source: 'file', pods: [pod('web', 'u2', 'b')], complete: ['u2'], first: true });
    expect(b.ledger.records.get('u1')?.state).toMatchObject({ is: 'leaving', next: null });
    expect(b.ledger.records.get('u2')?.worker?.reason).toBe('WaitingForPredecessor');
    b.phase('u1', 'finished');
    expect(b.workerEvents()).toEqual(['pod.update:create u2']);
    expect([...b.ledger.records.keys()]).toEqual(['u2']);
  });

  // Found by seed 1241093: nobody wound it down, and the pod that had taken its name waited behind it for good.
  it('hands over what a restarted podConfig no longer names: its worker may have gone with the others', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.workerEvents();
    b.send({ type: 'pods.op', op: 'ADD', source: 'file', pods: [pod('web', 'u2', 'b')], complete: ['u2'], first: true });
    expect(b.workerEvents()).toEqual(['pod.kill u1', 'pod.update:create u1']);
  });

  it('hands over again what is being wound down when a restarted podConfig begins anew: the workers may have gone too', ({ b }) => {
    b.op('ADD', [pod('a', 'ua')]);
    b.op('REMOVE', [pod('a', 'ua')]);
    b.send({ type: 'pods.orphan', listed: { uid: 'ghost', name: 'g', namespace: 'default', sandboxes: [], containers: [] }, epoch: 1 });
    b.op('ADD', []);
    expect(b.workerEvents()).toEqual([]);
    b.send({ type: 'pods.op', op: 'ADD', source: 'file', pods: [], complete: [], first: true });
    expect(b.workerEvents()).toEqual(['pod.update:create ua', 'pod.update:create ghost']);
  });

  it('lists a refused pod that ran here as an orphan with the source that wants it, which may take it back', () => {
    const b = new Bench(['file', 'http']);
    b.op('ADD', [], { complete: [] });
    const orphan = { uid: 'u1', name: 'web', namespace: 'default', sandboxes: [], containers: [] };
    const begin = () => {
      b.send({ type: 'pods.orphan', listed: orphan, epoch: 1 });
      b.op('ADD', [], { source: 'http' });
      b.op('ADD', [refusable(pod('web', 'u1'))], { source: 'http' });
    };
    begin();
    b.phase('u1', 'finished');
    expect(b.ledger.records.get('u1')).toMatchObject({ source: 'http', state: { is: 'refused' } });
    b.op('ADD', [pod('other', 'u2')], { complete: ['u2'] });
    expect(b.ledger.records.has('u1')).toBe(true);
    b.op('REMOVE', [pod('web', 'u1')], { source: 'http' });
    expect(b.ledger.records.has('u1')).toBe(false);
    // While it is still being wound down, by a podConfig that never heard of it.
    begin();
    b.send({ type: 'pods.op', op: 'ADD', source: 'http', pods: [], complete: [], first: true });
    expect(b.ledger.records.get('u1')?.state).toMatchObject({ is: 'leaving', next: null });
    b.phase('u1', 'finished');
    expect(b.ledger.records.has('u1')).toBe(false);
  });

  it('winds down what came late of a pod that has ended, which stays ended; not of one that is at work', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    const late = { uid: 'u1', name: 'web', namespace: 'default', sandboxes: [], containers: [] };
    b.phase('u1', 'terminating');
    b.send({ type: 'pods.orphan', listed: late, epoch: 1 });
    expect(b.out).toEqual([]);
    b.phase('u1', 'finished');
    b.send({ type: 'pods.orphan', listed: late, epoch: 1 });
    expect(b.out).toMatchObject([{ to: 'worker', event: { type: 'pod.update', kind: 'create', uid: 'u1', fromRuntime: late } }]);
    b.phase('u1', 'finished');
    expect(b.ledger.records.get('u1')).toMatchObject({ state: { is: 'ended' }, pod: pod('web', 'u1') });
  });

  it('winds down a pod that only the runtime knows, and forgets it when done', ({ b }) => {
    b.op('ADD', []);
    b.send({ type: 'pods.orphan', listed: { uid: 'ghost', name: 'g', namespace: 'default', sandboxes: [], containers: [] }, epoch: 1 });
    expect(b.workerEvents()).toEqual(['pod.update:create ghost']);
    expect(b.ledger.records.get('ghost')).toMatchObject({ source: 'runtime', state: { is: 'leaving' } });
    b.phase('ghost', 'finished');
    expect(b.ledger.records.has('ghost')).toBe(false);
  });

  it('begins the next life of a pod whose worker is quarantined while it ends the present one', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.op('REMOVE', [pod('web', 'u1')]);
    b.op('ADD', [pod('web', 'u1', 'b')]);
    b.send({ type: 'pods.quarantined', uid: 'u1', error: 'kept failing', epoch: 1 });
    expect(b.workerEvents()).toEqual(['pod.update:create u1']);
    expect(b.ledger.records.get('u1')).toMatchObject({ life: 2, state: { is: 'running' }, pod: pod('web', 'u1', 'b') });
  });

  it('takes no word of a quarantine for a pod that has no worker yet', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.op('ADD', [pod('web', 'u2')]);
    b.send({ type: 'pods.quarantined', uid: 'u2', error: 'kept failing', epoch: 1 });
    b.op('REMOVE', [pod('web', 'u1')]);
    b.phase('u1', 'finished');
    b.op('REMOVE', [pod('web', 'u2')]);
    expect(b.workerEvents()).toEqual(['pod.kill u2']);
  });

  it('ignores what a worker of an earlier life says', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.send({
      type: 'worker.state',
      uid: 'u1',
      life: 99,
      state: { phase: 'finished', state: '', reason: '', message: '', sinceMs: 0, containers: [], causes: [] },
    });
    expect(b.ledger.records.get('u1')?.worker).toBeNull();
  });

  it('tells the worker once of an end that only the API server knew of', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.op('RECONCILE', [{ ...pod('web', 'u1'), status: { phase: 'Running' } }]);
    expect(b.workerEvents()).toEqual([]);
    const failed = { ...pod('web', 'u1'), status: { phase: 'Failed', reason: 'Evicted' } } as const;
    expect(b.op('RECONCILE', [failed])).toMatchObject([{ to: 'worker', event: { kind: 'sync', pod: { status: failed.status } } }]);
    b.op('RECONCILE', [failed]);
    expect(b.workerEvents()).toEqual([]);
  });

  it('keeps a refused pod listed without a worker, and lets it go when its manifest goes', ({ b }) => {
    b.op('ADD', [refusable(pod('web', 'u1'))]);
    expect(b.workerEvents()).toEqual([]);
    expect(b.ledger.records.get('u1')?.state.is).toBe('refused');
    b.op('REMOVE', [pod('web', 'u1')]);
    expect(b.ledger.records.has('u1')).toBe(false);
    expect(b.out).toContainEqual({ to: 'forget', uid: 'u1', life: 1 });
  });

  it('fails a running pod whose update asks for what the node cannot honour', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.op('UPDATE', [refusable(pod('web', 'u1'))]);
    expect(b.out[0]).toMatchObject({ to: 'refused', reason: 'UnsupportedField' });
    expect(b.out[1]).toMatchObject({ to: 'worker', event: { type: 'pod.kill', status: { reason: 'UnsupportedField' } } });
  });

  it('leaves alone a pod over which it fails, admits those beside it, and tries again with another definition', ({ b }) => {
    b.facts = failingOver('u1');
    b.op('ADD', [pod('bad', 'u1'), pod('web', 'u2')]);
    expect(b.out).toContainEqual({ to: 'leftAlone', pod: pod('bad', 'u1'), error: 'no such thing' });
    expect(b.workerEvents()).toEqual(['pod.update:create u2']);
    expect(b.ledger.records.get('u1')?.state).toMatchObject({ is: 'quarantined', error: 'no such thing' });
    b.facts = managerFacts();
    b.op('UPDATE', [pod('bad', 'u1', 'b')]);
    expect(b.workerEvents()).toEqual(['pod.update:create u1']);
  });

  it('leaves a pod that runs as it was when it fails over its new definition', ({ b }) => {
    b.op('ADD', [pod('web', 'u1')]);
    b.facts = failingOver('u1');
    b.op('UPDATE', [pod('web', 'u1', 'b')]);
    expect(b.workerEvents()).toEqual([]);
    expect(b.ledger.records.get('u1')).toMatchObject({ state: { is: 'running' }, pod: pod('web', 'u1') });
    b.facts = managerFacts();
    b.op('REMOVE', [pod('web', 'u1')]);
    expect(b.workerEvents()).toEqual(['pod.kill u1']);
  });

  it('fails over a pod that waits: the others are judged', ({ b }) => {
    b.facts = managerFacts({ listing: undefined, offer: { ...managerFacts().offer, podsMax: 0 } });
    b.op('ADD', [pod('bad', 'u1'), pod('web', 'u2')]);
    expect([...b.ledger.candidates.keys()]).toEqual(['u1', 'u2']);
    b.facts = failingOver('u1');
    b.look();
    expect(b.ledger.candidates.size).toBe(0);
    expect(b.workerEvents()).toEqual(['pod.update:create u2']);
  });
});

function failingOver(bad: string): Facts {
  return managerFacts({
    inName: (uid, fn) => {
      if (uid === bad) throw new TypeError('no such thing');
      return fn();
    },
  });
}
