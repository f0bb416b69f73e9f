/** Which pods the pod manager admits, keeps waiting and refuses, and what it asks for meanwhile: its steps, with facts made up. */
import { describe, expect, it } from 'vitest';
import { wantsExclusive } from '../../src/machines/allocation/cpus/policy.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import type { ListedPod } from '../../src/machines/pod/runtime/seen.ts';
import type { PodManagerEvent } from '../../src/machines/pods/manager/messages.ts';
import { emptyLedger, type Facts, type Out, type PodLedger } from '../../src/machines/pods/manager/records.ts';
import { type StepEvent, step } from '../../src/machines/pods/manager/step.ts';
import { managerFacts, ofApi } from './managerFacts.ts';

const CRITICAL = 2_000_000_000;
const { offer } = managerFacts();

function pod(name: string, o: { cpu?: string; priority?: number; created?: string } = {}): Pod {
  const { cpu = '1', priority, created } = o;
  const amounts = { cpu, memory: '64Mi' };
  return ofApi({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: `uid-${name}`, ...(created === undefined ? {} : { creationTimestamp: created }) },
    spec: {
      containers: [{ name: 'c', image: 'i', resources: { requests: amounts, limits: amounts } }],
      ...(priority === undefined ? {} : { priority, priorityClassName: 'system-node-critical' }),
    },
    status: { phase: 'Pending' },
  });
}
const listed = (p: Pod): ListedPod => {
  const made = { createdAtNs: 0n, labels: {}, annotations: {} };
  const { uid, name, namespace } = p.metadata;
  const sandboxes = [{ ...made, id: 's', ready: true, attempt: 0 }];
  return { uid, name, namespace, sandboxes, containers: [{ ...made, id: 'c', name: 'c', sandboxId: 's', state: 'running' as const }] };
};

class Bench {
  ledger: PodLedger = emptyLedger(['api']);
  out: Out[] = [];
  facts: Facts;
  constructor(o: Partial<Facts> = {}) {
    this.facts = managerFacts(o);
  }
  send(event: StepEvent): Out[] {
    ({ ledger: this.ledger, out: this.out } = step(this.ledger, event, this.facts));
    return this.out;
  }
  op(op: 'ADD' | 'UPDATE' | 'REMOVE' | 'DELETE', pods: Pod[], complete?: string[]): Out[] {
    const first = !this.ledger.seen.has('api');
    return this.send({ type: 'pods.op', op, source: 'api', pods, ...(first ? { first } : {}), ...(complete ? { complete } : {}) });
  }
  look(after: Partial<Facts> = {}): Out[] {
    this.facts = { ...this.facts, ...after };
    return this.send({ type: 'look' });
  }
  works(name: string): void {
    const uid = `uid-${name}`;
    const state = { phase: 'syncing', state: 'syncing', reason: '', message: '', sinceMs: 0, containers: [], causes: [] } as const;
    this.send({ type: 'worker.state', uid, life: this.ledger.records.get(uid)?.life ?? 0, state });
  }
  answer(name: string, answer: Extract<PodManagerEvent, { type: 'pods.allocated' }>['answer'], id?: number): Out[] {
    const uid = `uid-${name}`;
    return this.send({ type: 'pods.allocated', uid, id: id ?? this.ledger.candidates.get(uid)?.asked?.id ?? 0, answer });
  }
  get waits(): Record<string, string> {
    return Object.fromEntries([...this.ledger.candidates.values()].map((c) => [c.pod.metadata.name, c.wait]));
  }
  get states(): Record<string, string> {
    return Object.fromEntries([...this.ledger.records.values()].map((r) => [r.pod.metadata.name, r.state.is]));
  }
}
const asked = (out: Out[]) => out.flatMap((o) => (o.to === 'allocate' ? [o.pod.metadata.name] : []));
const cpus = { ...offer, allocates: wantsExclusive };
const small = (cpu: string, more: Partial<Facts['offer']> = {}) => ({ ...offer, ...more, allocatable: { cpu, memory: '10Gi' } });

describe('pods of one operation', () => {
  it('are admitted the oldest first, each beside those before it', () => {
    const b = new Bench({ offer: small('1') });
    b.op('ADD', [pod('young', { created: '2026-01-02T00:00:00Z' }), pod('old', { created: '2026-01-01T00:00:00Z' })]);
    expect(b.states).toEqual({ old: 'running', young: 'refused' });
    expect(b.out).toContainEqual(expect.objectContaining({ to: 'refused', reason: 'OutOfcpu' }));
  });
});

describe('a critical pod', () => {
  it('ends another in the same step, and keeps the room that this one leaves', () => {
    const b = new Bench({ offer: small('1') });
    b.op('ADD', [pod('web')]);
    b.works('web');
    b.op('ADD', [pod('vital', { priority: CRITICAL })]);
    expect(b.out.map((o) => (o.to === 'worker' ? o.event.type : o.to))).toEqual(['unallocated', 'preempted', 'pod.kill']);
    expect([b.states, b.waits]).toEqual([{ web: 'failing' }, { vital: 'room' }]);
    b.op('ADD', [pod('late')]);
    expect(b.states.late).toBe('refused');
    expect(b.look()).toEqual([]);
    // 1.5 times its grace of 30 s.
    b.look({ monoMs: 46_000 });
    b.look({ monoMs: 91_000 });
    expect([b.states.vital, b.waits]).toEqual(['running', {}]);
  });

  it('waits for the worker of a pod that was admitted a moment ago', () => {
    const b = new Bench({ offer: small('1') });
    b.op('ADD', [pod('web')]);
    b.op('ADD', [pod('vital', { priority: CRITICAL })]);
    expect([b.out, b.waits]).toEqual([[{ to: 'unallocated' }], { vital: 'room' }]);
    b.works('web');
    const out = b.look();
    expect([out.some((o) => o.to === 'preempted'), out.some((o) => o.to === 'unallocated')]).toEqual([true, false]);
  });

  it.each([
    ['refused', { kind: 'refused', reason: 'TopologyAffinityError', message: 'apart' }, { web: 'running', vital: 'refused' }, {}],
    ['to wait', { kind: 'later', why: 'others end' }, { web: 'running' }, { vital: 'allocating' }],
    ['granted them', { kind: 'granted' }, { web: 'failing' }, { vital: 'room' }],
  ] as const)('ends others for room only after it asked for CPUs of its own, and is %s', (_, answer, states, waits) => {
    const b = new Bench({ offer: small('1') });
    b.op('ADD', [pod('web')]);
    b.works('web');
    b.look({ offer: small('1', { allocates: wantsExclusive }) });
    expect(asked(b.op('ADD', [pod('vital', { priority: CRITICAL })]))).toEqual(['vital']);
    expect(b.states).toEqual({ web: 'running' });
    b.answer('vital', answer);
    expect([b.states, b.waits]).toEqual([states, waits]);
    if (answer.kind !== 'granted') return;
    expect(asked(b.look({ monoMs: 46_000 }))).toEqual([]);
    b.look({ monoMs: 91_000 });
    expect([b.states.vital, b.waits]).toEqual(['running', {}]);
  });
});

describe('a pod that has CPUs alone', () => {
  it('is asked about once, keeps its room meanwhile, and is admitted with the answer', () => {
    const b = new Bench({ offer: small('1', { allocates: wantsExclusive }) });
    expect(asked(b.op('ADD', [pod('web')]))).toEqual(['web']);
    b.op('ADD', [pod('late')]);
    expect([b.waits, b.states]).toEqual([{ web: 'allocating', late: 'unfit' }, {}]);
    expect([b.ledger.ready, asked(b.look())]).toEqual([true, []]);
    b.answer('web', { kind: 'granted' });
    expect([b.waits, b.states.web]).toEqual([{ late: 'unfit' }, 'running']);
  });

  it.each([
    ['granted', { kind: 'granted' }, 'OutOfcpu'],
    ['waited for', { kind: 'later', why: 'others end' }, 'OutOfcpu'],
    ['refused', { kind: 'refused', reason: 'TopologyAffinityError', message: 'apart' }, 'TopologyAffinityError'],
  ] as const)('is refused without room, after they were %s: what a provider says comes first', (_, answer, reason) => {
    const b = new Bench({ offer: small('1', { allocates: wantsExclusive }) });
    expect(asked(b.op('ADD', [pod('huge', { cpu: '2' })]))).toEqual(['huge']);
    const out = b.answer('huge', answer);
    expect(out.find((o) => o.to === 'refused')).toMatchObject({ reason });
    expect(out).toContainEqual({ to: 'release', uid: 'uid-huge' });
    expect([b.waits, b.states]).toEqual([{}, { huge: 'refused' }]);
  });

  it('is asked about anew when its definition changes: the answer about the earlier one is void', () => {
    const b = new Bench({ offer: cpus });
    b.op('ADD', [pod('web')]);
    const earlier = b.ledger.candidates.get('uid-web')?.asked?.id ?? 0;
    b.op('UPDATE', [pod('web', { cpu: '2' })]);
    expect(asked(b.look())).toEqual(['web']);
    b.answer('web', { kind: 'granted' }, earlier);
    expect(b.waits).toEqual({ web: 'allocating' });
    b.answer('web', { kind: 'granted' });
    expect(b.ledger.records.get('uid-web')?.pod.spec.containers[0]?.resources?.requests?.cpu).toBe('2');
  });

  it('is asked about again a while after the answer that others still hold them, and says so once', () => {
    const b = new Bench({ offer: cpus });
    b.op('ADD', [pod('web')]);
    const later = { kind: 'later', why: 'others end' } as const;
    expect(b.answer('web', later).map((o) => o.to)).toEqual(['log']);
    expect(asked(b.look({ monoMs: 1_399 }))).toEqual([]);
    expect(asked(b.look({ monoMs: 1_400 }))).toEqual(['web']);
    expect(b.answer('web', later)).toEqual([]);
  });

  it.each([
    ['removed', (b: Bench) => b.op('REMOVE', [pod('web')])],
    ['named no longer', (b: Bench) => b.op('ADD', [], [])],
    ['refused', (b: Bench) => b.answer('web', { kind: 'refused', reason: 'SMTAlignmentError', message: 'odd' })],
  ])('releases them when it is %s', (_, ends) => {
    const b = new Bench({ offer: cpus });
    b.op('ADD', [pod('web')]);
    expect(ends(b).filter((o) => o.to === 'release')).toEqual([{ to: 'release', uid: 'uid-web' }]);
    expect(b.waits).toEqual({});
  });

  it('that runs here already is no orphan while it is asked about, and goes on without an answer after 30 s', () => {
    const web = pod('web');
    const b = new Bench({ offer: cpus, listing: { atMonoMs: 0, via: 'poll', pods: new Map([['uid-web', listed(web)]]) } });
    b.op('ADD', [web]);
    expect([b.waits, b.ledger.ready]).toEqual([{ web: 'readmitting' }, false]);
    expect(b.look({ monoMs: 30_000 })).toEqual([]);
    const out = b.look({ monoMs: 31_000 });
    expect([b.states, b.ledger.ready, out.map((o) => o.to)]).toEqual([
      { web: 'running' },
      true,
      ['log', 'worker', 'housekeep', 'allocations'],
    ]);
  });

  it.each([
    { kind: 'later', why: 'others end' } as const,
    { kind: 'refused', reason: 'TopologyAffinityError', message: 'no NUMA node has enough' } as const,
  ])('that runs here already goes on after the answer $kind, and is asked about until it has them', (answer) => {
    const web = pod('web');
    const b = new Bench({ offer: cpus, listing: { atMonoMs: 0, via: 'poll', pods: new Map([['uid-web', listed(web)]]) } });
    b.op('ADD', [web]);
    expect(b.answer('web', answer).map((o) => o.to)).toContain('worker');
    expect([b.states, b.waits, b.ledger.ready]).toEqual([{ web: 'running' }, { web: 'unallocated' }, true]);
    expect(asked(b.look({ monoMs: 9_000 }))).toEqual([]);
    // Its sandbox may be lost by then, and what ended in it collected.
    expect(asked(b.look({ monoMs: 12_000, listing: { atMonoMs: 11_000, via: 'poll', pods: new Map() } }))).toEqual(['web']);
    // Nothing of the pod changes meanwhile, and a new definition reaches its worker.
    expect(b.answer('web', answer)).toEqual([]);
    expect(b.op('UPDATE', [pod('web', { cpu: '2' })]).map((o) => o.to)).toContain('worker');
    expect(b.answer('web', { kind: 'granted' }).map((o) => o.to)).toContain('worker');
    expect([b.states, b.waits]).toEqual([{ web: 'running' }, {}]);
    expect(b.op('REMOVE', [web]).map((o) => o.to)).not.toContain('release');
  });

  it('waits for a listing that began after the pod manager did', () => {
    const b = new Bench({ offer: cpus });
    b.ledger = { ...b.ledger, beganMonoMs: 500 };
    expect(b.op('ADD', [pod('web')]).map((o) => o.to)).toEqual(['relist']);
    expect([b.waits, b.ledger.ready]).toEqual([{ web: 'later' }, false]);
    expect(asked(b.look({ listing: { atMonoMs: 501, via: 'poll', pods: new Map() } }))).toEqual(['web']);
    expect(b.ledger.ready).toBe(true);
  });
});
