/**
 * The ledger of pods: what each operation of a source and each word of a worker leads to (pod lifecycle 1.8, 2.5, 3.3, 3.6,
 * 7.8). A row tells what goes out on its last step, and the records after it.
 */
import type { Pod } from '../../../../src/machines/kube/types.ts';
import type { SourceName } from '../../../../src/machines/pod/runtime/seen.ts';
import { isRefused, isWanted, type PodManagerEvent } from '../../../../src/machines/pods/manager/messages.ts';
import { emptyLedger, nextOf, type Out, type PodLedger } from '../../../../src/machines/pods/manager/records.ts';
import { step } from '../../../../src/machines/pods/manager/step.ts';
import type { WorkerPhase } from '../../../../src/machines/pods/workers/messages.ts';
import { managerFacts, refusable } from '../../../pods/managerFacts.ts';
import { goldenTable } from '../table.ts';

type Op = 'ADD' | 'UPDATE' | 'DELETE' | 'REMOVE' | 'RECONCILE';
type Make = (ledger: PodLedger) => PodManagerEvent;

const pod = (
  uid: string,
  o: { name?: string; image?: string; deleted?: boolean; status?: Pod['status']; spec?: Partial<Pod['spec']> } = {},
): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: o.name ?? uid,
    namespace: 'ns',
    uid,
    ...(o.deleted === true ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
  },
  spec: { containers: [{ name: 'c', image: o.image ?? 'i' }], ...o.spec },
  status: o.status ?? { phase: 'Pending' },
});
const op =
  (kind: Op, pods: Pod[], o: { source?: SourceName; complete?: string[] } = {}): Make =>
  (ledger) => {
    const source = o.source ?? 'file';
    return {
      type: 'pods.op',
      op: kind,
      source,
      pods,
      ...(ledger.seen.has(source) ? {} : { first: true as const }),
      ...(o.complete === undefined ? {} : { complete: o.complete }),
    };
  };
const says =
  (uid: string, phase: WorkerPhase, life?: number): Make =>
  (ledger) => ({
    type: 'worker.state',
    uid,
    life: life ?? ledger.records.get(uid)?.life ?? 0,
    state: { phase, state: phase, reason: '', message: '', sinceMs: 0, containers: [], causes: [] },
  });
const refused =
  (p: Pod): Make =>
  (ledger) =>
    ({ ...op('ADD', [refusable(p)])(ledger), ...(ledger.records.has(p.metadata.uid) ? { op: 'UPDATE' } : {}) }) as PodManagerEvent;
const orphan =
  (uid: string, epoch = 1): Make =>
  () => ({ type: 'pods.orphan', listed: { uid, name: uid, namespace: 'ns', sandboxes: [], containers: [] }, epoch });
const dirty =
  (uid: string): Make =>
  () => ({ type: 'pods.dirty', uid, why: 'its container ended' });

const told = (o: Out) => {
  switch (o.to) {
    case 'worker':
      return [
        o.event.type,
        o.event.uid,
        ...('kind' in o.event ? [o.event.kind] : []),
        ...('pod' in o.event ? [o.event.pod.spec.containers[0]?.image] : []),
      ].join(' ');
    case 'forget':
      return `forget ${o.uid}, life ${o.life}`;
    case 'rejected':
      return `rejected ${o.pod.metadata.uid}: ${o.reason}`;
    default:
      return o.to;
  }
};
function after(...events: Make[]) {
  return from(['file'], ...events);
}
function from(sources: SourceName[], ...events: Make[]) {
  let ledger = emptyLedger(sources);
  let out: Out[] = [];
  for (const make of events) ({ ledger, out } = step(ledger, make(ledger), managerFacts()));
  return {
    out: out.map(told),
    ready: ledger.ready,
    records: Object.fromEntries(
      [...ledger.records].map(([uid, r]) => [
        uid,
        [
          `life ${r.life}`,
          ...(isWanted(r) ? [] : ['removed']),
          ...(isRefused(r) ? ['rejected'] : []),
          ...(r.state.is === 'waiting' || r.state.is === 'refused' ? [] : ['started']),
          ...(nextOf(r) === null ? [] : [`next ${nextOf(r)?.pod.spec.containers[0]?.image}`]),
          ...(r.worker === null ? [] : [r.worker.reason === '' ? r.worker.phase : r.worker.reason]),
        ].join(', '),
      ]),
    ),
  };
}
const a = pod('a');
const GATED = { readinessGates: [{ conditionType: 'gate' }] };

goldenTable('the ledger of pods is as recorded', 'manager/podLedger', {
  '1.8 nothing has been heard': () => after(),
  '1.8 an empty set': () => after(op('ADD', [])),
  '1.8 one source of two': () => from(['file', 'http'], op('ADD', [a])),
  '1.8 both sources': () => from(['file', 'http'], op('ADD', [a]), op('ADD', [], { source: 'http' })),
  '1.8 a removal before both have spoken': () => from(['file', 'http'], op('ADD', [a]), op('REMOVE', [a])),
  '1.8 a removal before both have spoken, then both': () =>
    from(['file', 'http'], op('ADD', [a]), op('REMOVE', [a]), op('ADD', [], { source: 'http' })),
  '1.8 an orphan: whoever looks for them waits until all have spoken': () => from(['file', 'http'], op('ADD', []), orphan('ghost')),

  '2.5 addition': () => after(op('ADD', [a])),
  '2.5 addition: deleted already': () => after(op('ADD', [pod('a', { deleted: true })])),
  '2.5 addition: over already': () => after(op('ADD', [pod('a', { status: { phase: 'Succeeded' } })])),
  '2.5 addition: refused': () => after(op('ADD', []), refused(a)),
  '2.5 addition: refused, then deleted for good': () => after(op('ADD', []), refused(a), op('REMOVE', [a])),
  '2.5 addition: refused, then put right': () => after(op('ADD', []), refused(a), op('UPDATE', [pod('a', { image: 'j' })])),
  '2.5 update': () => after(op('ADD', [a]), op('UPDATE', [pod('a', { image: 'j' })])),
  '2.5 update: deleted': () => after(op('ADD', [a]), op('DELETE', [pod('a', { deleted: true })])),
  '2.5 update: refused while it runs': () => after(op('ADD', [a]), refused(pod('a', { image: 'j' }))),
  '2.5 update: of a pod that nobody knows': () => after(op('ADD', []), op('UPDATE', [a])),
  '2.5 removal': () => after(op('ADD', [a]), op('REMOVE', [a])),
  '2.5 removal: finished': () => after(op('ADD', [a]), op('REMOVE', [a]), says('a', 'finished')),
  '2.5 removal: finished before': () => after(op('ADD', [a]), says('a', 'finished'), op('REMOVE', [a])),
  '2.5 removal: of a pod that nobody knows': () => after(op('ADD', []), op('REMOVE', [a])),
  '2.5 reconcile': () => after(op('ADD', [a]), op('RECONCILE', [pod('a', { status: { phase: 'Running' } })])),
  '7.8 reconcile: with a readiness gate': () =>
    after(op('ADD', [pod('a', { spec: GATED })]), op('RECONCILE', [pod('a', { spec: GATED, status: { phase: 'Running' } })])),
  '2.5 reconcile: somebody says that it is over': () => after(op('ADD', [a]), op('RECONCILE', [pod('a', { status: { phase: 'Failed' } })])),
  '2.3 a hint about a pod': () => after(op('ADD', [a]), dirty('a')),
  '2.3 a hint about a pod that nobody knows': () => after(op('ADD', []), dirty('x')),
  '2.3 a hint about a pod that has finished': () => after(op('ADD', [a]), says('a', 'finished'), dirty('a')),

  '3.3 a name that is taken': () => after(op('ADD', [pod('u1', { name: 'web' })]), op('ADD', [pod('u2', { name: 'web' })])),
  '3.3 a name that is taken, the new one is deleted': () =>
    after(op('ADD', [pod('u1', { name: 'web' })]), op('ADD', [pod('u2', { name: 'web', deleted: true })])),
  '3.3 a name that is taken: its holder is being stopped': () =>
    after(
      op('ADD', [pod('u1', { name: 'web' })]),
      op('REMOVE', [pod('u1', { name: 'web' })]),
      op('ADD', [pod('u2', { name: 'web' })]),
      says('u1', 'terminating'),
    ),
  '3.3 a name that is taken: its holder has finished': () =>
    after(
      op('ADD', [pod('u1', { name: 'web' })]),
      op('REMOVE', [pod('u1', { name: 'web' })]),
      op('ADD', [pod('u2', { name: 'web' })]),
      says('u1', 'finished'),
    ),
  '3.3 the same UID again while it is being stopped': () => after(op('ADD', [a]), op('REMOVE', [a]), op('ADD', [pod('a', { image: 'j' })])),
  '3.3 the same UID again, and it has finished': () =>
    after(op('ADD', [a]), op('REMOVE', [a]), op('ADD', [pod('a', { image: 'j' })]), says('a', 'finished')),
  '3.3 the same UID again, and gone again': () =>
    after(op('ADD', [a]), op('REMOVE', [a]), op('ADD', [pod('a', { image: 'j' })]), op('REMOVE', [a])),
  '3.3 the word of an earlier life': () => after(op('ADD', [a]), says('a', 'finished', 99)),
  '3.3 over: it stays in the ledger until its source lets it go': () => after(op('ADD', [a]), says('a', 'finished')),

  '3.6 known to the runtime alone': () => after(op('ADD', []), orphan('ghost')),
  '3.6 known to the runtime alone, and gone': () => after(op('ADD', []), orphan('ghost'), says('ghost', 'finished')),
  '3.6 known to the runtime alone, and then its source says it': () => after(op('ADD', []), orphan('ghost'), op('ADD', [pod('ghost')])),
  '3.6 known to the runtime alone, its source says it, and it is gone': () =>
    after(op('ADD', []), orphan('ghost'), op('ADD', [pod('ghost')]), says('ghost', 'finished')),
  '3.6 an orphan that is in the ledger': () => after(op('ADD', [a]), orphan('a')),
  '3.6 an orphan that an earlier ledger asked about': () => after(op('ADD', []), orphan('ghost', 7)),
  '3.6 not in the complete set any more': () => after(op('ADD', [a, pod('b')]), op('ADD', [pod('b')], { complete: ['b'] })),
});
