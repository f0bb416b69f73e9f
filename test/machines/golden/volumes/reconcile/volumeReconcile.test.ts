/**
 * What follows from comparing the volumes that pods want with those that are there (resources and volumes 8.4, 8.5, 8.8, 8.9):
 * whose are taken down, set up again or compared with their sources, and what whoever waits is told.
 */
import type { Pod } from '../../../../../src/machines/kube/types.ts';
import type { Volume } from '../../../../../src/machines/kube/volumeTable.ts';
import type { ListedPod, RuntimePodsView } from '../../../../../src/machines/pod/runtime/seen.ts';
import type { VolumeSource } from '../../../../../src/machines/pod/volumes/kinds.ts';
import { refreshes } from '../../../../../src/machines/pod/volumes/volumes.ts';
import type { PodRecord, PodsView } from '../../../../../src/machines/pods/manager/messages.ts';
import type { WorkerSummary } from '../../../../../src/machines/pods/workers/messages.ts';
import { type Actual, type Desired, reconcile, timedOut, unmountedNames } from '../../../../../src/machines/services/volumes/reconcile.ts';
import { LEAVING, REFUSED, REFUSED_FAILING, RUNNING } from '../../../../lifeStates.ts';
import { container, pod } from '../../../pods/fixtures.ts';
import { goldenTable } from '../../table.ts';

const NOW_MS = 100_000;
const POD = pod({
  containers: [
    container('web', {
      volumeMounts: [
        { name: 'a', mountPath: '/a' },
        { name: 'b', mountPath: '/b' },
      ],
    }),
  ],
  volumes: [{ name: 'a', emptyDir: {} } as Volume, { name: 'b', emptyDir: {} } as Volume, { name: 'unused', emptyDir: {} } as Volume],
});
const CHANGED: Pod = { ...POD, metadata: { ...POD.metadata } };
const OTHER_STATUS: Pod = { ...POD, status: { ...POD.status, phase: 'Running' } };

const worker = (phase: WorkerSummary['phase']): WorkerSummary => ({
  phase,
  state: '',
  reason: '',
  message: '',
  sinceMs: 0,
  containers: [],
  causes: [],
});
const record = (more: Partial<PodRecord> = {}): PodRecord => ({
  pod: POD,
  source: 'api',
  state: RUNNING,
  seenAtMs: 0,
  worker: worker('syncing'),
  ...more,
});
const ledger = (r: PodRecord | null, sourcesReady = true): PodsView => ({
  records: new Map(r === null ? [] : [['uid-1', r]]),
  sourcesReady,
});
const listed = (state: ListedPod['containers'][number]['state'] | null, atMonoMs = NOW_MS - 1): RuntimePodsView => {
  const only = { id: 'c', name: 'web', sandboxId: 's', createdAtNs: 0n, labels: {}, annotations: {} };
  const of: ListedPod = { uid: 'uid-1', name: 'p', namespace: 'ns', sandboxes: [], containers: state === null ? [] : [{ ...only, state }] };
  return { atMonoMs, via: 'poll', pods: new Map([['uid-1', of]]) };
};
const there = (phase: Actual['phase'], name = 'a') =>
  ({ ref: { uid: 'uid-1', plugin: 'kubernetes.io~empty-dir', name }, phase, error: '', sinceMs: 0 }) as Actual;

interface Story {
  /** Of the pod manager; undefined: it has not spoken yet. */
  pods: PodsView | undefined;
  listed?: RuntimePodsView | undefined;
  /** A worker has asked for the pod's volumes and not released them. */
  wanted?: Partial<Desired>;
  phase?: Actual['phase'];
  /** Since when nobody minds the pod; default long ago. */
  unmindedMs?: number | null;
}
const looked = (s: Story) => () => {
  const since = s.unmindedMs === undefined ? 0 : s.unmindedMs;
  const { drop, want, refresh } = reconcile({
    desired: new Map(s.wanted === undefined ? [] : [['uid-1', { pod: POD, refreshAtMonoMs: NOW_MS + 1, ...s.wanted }]]),
    actual: new Map([['k', there(s.phase ?? 'mounted')]]),
    look: { pods: s.pods, listed: 'listed' in s ? s.listed : listed(null), nowMonoMs: NOW_MS },
    unminded: new Map(since === null ? [] : [['uid-1', since]]),
  });
  return (
    [...drop.map(() => 'down'), ...want.map(() => 'up again'), ...refresh.map(() => 'compared with its sources')].join() || 'left alone'
  );
};
const unmounted =
  (...actual: Actual[]) =>
  () => {
    const state = new Map(actual.map((a) => [a.ref.name, a]));
    return unmountedNames(POD, state, (v) => v.name);
  };
const source = (s: object) => () => refreshes(s as VolumeSource);

goldenTable('what becomes of volumes is as recorded', 'volumes/reconcile/volumeReconcile', {
  'nobody has spoken of pods yet': looked({ pods: undefined }),
  'nobody’s, not every source has spoken': looked({ pods: ledger(null, false) }),
  'nobody’s, nothing runs': looked({ pods: ledger(null) }),
  'nobody’s, a container runs': looked({ pods: ledger(null), listed: listed('running') }),
  'nobody’s, a container was made and may start': looked({ pods: ledger(null), listed: listed('created') }),
  'nobody’s, a container is in no known state': looked({ pods: ledger(null), listed: listed('unknown') }),
  'nobody’s, its container has ended': looked({ pods: ledger(null), listed: listed('exited') }),
  'nobody’s, the runtime was not listed yet': looked({ pods: ledger(null), listed: undefined }),
  'nobody’s since this very look': looked({ pods: ledger(null), unmindedMs: null }),
  'nobody’s, and the listing is older than that': looked({ pods: ledger(null), unmindedMs: NOW_MS - 1 }),
  'nobody’s, though a worker asked for them once': looked({ pods: ledger(null), wanted: {} }),
  'refused, nobody works on it': looked({ pods: ledger(record({ state: REFUSED, worker: null })) }),
  'refused, its worker is winding it down': looked({ pods: ledger(record({ state: REFUSED_FAILING, worker: worker('terminating') })) }),
  'known, no worker yet': looked({ pods: ledger(record({ worker: null })), phase: 'uncertain' }),
  'found on disk, its pod runs on': looked({ pods: ledger(record()), phase: 'uncertain' }),
  'found on disk, its pod is being stopped': looked({ pods: ledger(record({ worker: worker('terminating') })), phase: 'uncertain' }),
  'found on disk, its pod is removed': looked({ pods: ledger(record({ state: LEAVING })), phase: 'uncertain' }),
  'found on disk, of an orphaned pod that is wound down': looked({ pods: ledger(record({ source: 'runtime' })), phase: 'uncertain' }),
  'set up, released by its worker': looked({ pods: ledger(record()) }),
  'wanted, nothing is new': looked({ pods: ledger(record()), wanted: {} }),
  'wanted, the pod changed': looked({ pods: ledger(record({ pod: CHANGED })), wanted: {} }),
  'wanted, only the status of the pod is another': looked({ pods: ledger(record({ pod: OTHER_STATUS })), wanted: {} }),
  'wanted, its time has come': looked({ pods: ledger(record()), wanted: { refreshAtMonoMs: NOW_MS } }),
  'wanted, the pod is removed': looked({ pods: ledger(record({ state: LEAVING, pod: CHANGED })), wanted: {} }),

  'waits for: all that some container mounts': unmounted(),
  'waits for: what is not set up': unmounted(there('mounted', 'b')),
  'waits for: nothing': unmounted(there('mounted', 'a'), there('mounted', 'b')),
  'waits for: not for one whose files could not be compared': unmounted(there('stale', 'a'), there('mounted', 'b')),
  'waits for: one found on disk': unmounted(there('uncertain', 'a'), there('mounted', 'b')),
  'waits for: one that failed': unmounted(there('failed', 'a'), there('mounted', 'b')),
  'waited too long': () => timedOut({ unmounted: ['a', 'b'], unattached: [], unknown: [] }),
  'waited too long, one not attached, one unknown': () => timedOut({ unmounted: ['a', 'b'], unattached: ['a'], unknown: ['b'] }),

  'compared with its sources: files': source({ kind: 'files' }),
  'compared with its sources: emptyDir': source({ kind: 'emptyDir' }),
  'compared with its sources: hostPath': source({ kind: 'hostPath' }),
  'compared with its sources: claim': source({ kind: 'claim' }),
  'compared with its sources: image': source({ kind: 'image' }),
});
