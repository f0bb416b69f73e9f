/** What is stored of a pod and what is written to the API (pod lifecycle 2.7, 7.3 to 7.6): a row for each line. */
import { decideWrite, type WriterFacts } from '../../../../src/machines/api/podWriterDecide.ts';
import type { ContainerStatus, Pod, PodCondition, PodStatus } from '../../../../src/machines/kube/types.ts';
import { ANNOTATION_HASH, ANNOTATION_MIRROR } from '../../../../src/machines/pod/names.ts';
import type { PodRecord } from '../../../../src/machines/pods/manager/messages.ts';
import { guardTransition, mergeStatus, storeStatus, terminateStatus } from '../../../../src/machines/pods/status/manager.ts';
import type { StatusEntry } from '../../../../src/machines/pods/status/messages.ts';
import { LEAVING, REFUSED, RUNNING as RUNS } from '../../../lifeStates.ts';
import { container, NOW_MS, pod, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const AT = '2024-05-01T10:00:00Z';
const base = (name: string): ContainerStatus => ({ name, state: {}, lastState: {}, ready: false, restartCount: 0, image: '', imageID: '' });
const up = (name = 'web'): ContainerStatus => ({ ...base(name), state: { running: { startedAt: AT } }, ready: true });
const ended = (exitCode: number, name = 'web'): ContainerStatus => ({ ...base(name), state: { terminated: { exitCode } } });
const waits = (name = 'web'): ContainerStatus => ({ ...base(name), state: { waiting: { reason: 'ContainerCreating' } } });
const of = (phase: NonNullable<PodStatus['phase']>, ...containerStatuses: ContainerStatus[]): PodStatus => ({ phase, containerStatuses });
const POLICIES = ['Always', 'OnFailure', 'Never'] as const;
/** Why not, by policy; null: it may be. */
const guard = (old: PodStatus, next: PodStatus, restartable?: ReadonlySet<string>) =>
  Object.fromEntries(
    POLICIES.map((restartPolicy) => [
      restartPolicy,
      guardTransition({ old, next, restartPolicy, ...(restartable === undefined ? {} : { restartable }) }),
    ]),
  );
const inits = (...initContainerStatuses: ContainerStatus[]): PodStatus => ({ phase: 'Pending', initContainerStatuses });

const store = (old: PodStatus | undefined, next: PodStatus, o: { cached?: boolean; force?: boolean } = {}) =>
  storeStatus({ old, next, restartPolicy: 'Always', cached: o.cached ?? old !== undefined, force: o.force ?? false, nowWallMs: NOW_MS });
const is = (type: string, status: 'True' | 'False', more: Partial<PodCondition> = {}): PodCondition => ({ type, status, ...more });
const merge = (api: PodStatus, ours: PodStatus, couldHaveRunning: boolean, more = {}) =>
  mergeStatus(api, ours, { couldHaveRunning, nowWallMs: NOW_MS, ...more });

// ---- the writer of one pod ---------------------------------------------------------------------------------------
const object = (
  o: { uid?: string; annotations?: Record<string, string>; deleted?: boolean; status?: PodStatus; image?: string } = {},
): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: 'web-n1',
    namespace: 'ns',
    uid: o.uid ?? 'u1',
    annotations: o.annotations ?? {},
    ...(o.deleted === true ? { deletionTimestamp: AT } : {}),
  },
  spec: { containers: [{ name: 'c', image: o.image ?? 'i' }] },
  status: o.status ?? {},
});
const mirror = (o: { hash?: string; deleted?: boolean; status?: PodStatus } = {}) =>
  object({ uid: 'mirror', annotations: { [ANNOTATION_MIRROR]: o.hash ?? 'u1' }, ...o });
const record = (source: PodRecord['source'], more: Partial<PodRecord> = {}): PodRecord => ({
  pod: object({ annotations: source === 'file' ? { [ANNOTATION_HASH]: 'u1' } : {} }),
  source,
  state: RUNS,
  seenAtMs: 0,
  worker: null,
  ...more,
});
const entry = (status: PodStatus, finished = false, stopped = finished): StatusEntry =>
  ({ status, version: 1, stopped, finished }) as StatusEntry;
const node = { uid: 'node-uid', name: 'n1', deleting: false } as NonNullable<WriterFacts['node']>;
const write = (o: {
  record?: PodRecord;
  entry?: StatusEntry;
  shown?: Pod[];
  node?: WriterFacts['node'];
  sourcesReady?: boolean;
  synced?: boolean;
  uid?: string;
  gone?: string[];
}) => {
  const facts: WriterFacts = {
    uid: o.uid ?? 'u1',
    record: o.record,
    entry: o.entry,
    records: new Map(o.record === undefined ? [] : [[o.record.pod.metadata.uid, o.record]]),
    sourcesReady: o.sourcesReady ?? true,
    api: { synced: o.synced ?? true, byUid: new Map((o.shown ?? []).map((p) => [p.metadata.uid, p])) },
    node: 'node' in o ? o.node : node,
    written: null,
    latest: null,
    last: null,
    gone: new Set(o.gone ?? []),
    nowWallMs: NOW_MS,
  };
  const plan = decideWrite(facts);
  return 'target' in plan ? { ...plan, target: plan.target.metadata.uid } : plan;
};
const OVER: PodStatus = { phase: 'Failed' };
const RUNNING: PodStatus = { phase: 'Running' };

goldenTable('what is stored and written of a pod is as recorded', 'status/statusManager', {
  '7.4 an ended container runs again (code 0)': () => guard(of('Running', ended(0)), of('Running', up())),
  '7.4 an ended container runs again (code 1)': () => guard(of('Running', ended(1)), of('Running', up())),
  '7.4 an ended container waits again (code 1)': () => guard(of('Running', ended(1)), of('Running', waits())),
  '7.4 an ended container stays ended': () => guard(of('Running', ended(1)), of('Running', ended(2))),
  '7.4 an ended container is not listed any more': () => guard(of('Running', ended(1)), of('Running')),
  '7.4 an ended init container runs again': () => guard(inits(ended(1, 'i')), inits(up('i'))),
  '7.4 an ended sidecar runs again': () => guard(inits(ended(1, 's')), inits(up('s')), new Set(['s'])),
  '7.4 a phase that is final': () => guard(of('Failed', ended(1)), of('Running', ended(1))),
  '7.4 a phase that is final, another final one': () => guard(of('Failed'), of('Succeeded')),

  '7.3 nothing was known': () => store(undefined, RUNNING),
  '7.3 the API knew as much': () => store({ phase: 'Running', startTime: AT }, { phase: 'Running', startTime: AT }, { cached: false }),
  '7.3 nothing new': () => store({ phase: 'Running', startTime: AT }, { phase: 'Running' }),
  '7.3 nothing new, forced': () => store({ phase: 'Running', startTime: AT }, { phase: 'Running' }, { force: true }),
  '7.3 only a condition of others differs': () =>
    store({ phase: 'Running', startTime: AT }, { phase: 'Running', conditions: [is('other', 'True')] }),
  '7.3 only the time of an own condition differs': () =>
    store(
      { phase: 'Running', startTime: AT, conditions: [is('Ready', 'True', { lastTransitionTime: AT })] },
      { phase: 'Running', conditions: [is('Ready', 'True', { lastTransitionTime: '2024-05-01T10:30:00Z' })] },
    ),
  '7.3 a reason differs: the time of the condition stays': () =>
    store(
      { phase: 'Running', startTime: AT, conditions: [is('Ready', 'False', { reason: 'A', lastTransitionTime: AT })] },
      { phase: 'Running', conditions: [is('Ready', 'False', { reason: 'B' })] },
    ),
  '7.3 a condition flips': () =>
    store(
      { phase: 'Running', startTime: AT, conditions: [is('Ready', 'True', { lastTransitionTime: AT })] },
      { phase: 'Running', conditions: [is('Ready', 'False')] },
    ),
  '7.3 the start time stays': () => store({ phase: 'Pending', startTime: AT }, { phase: 'Running', startTime: '2024-05-01T10:30:00Z' }),
  '7.3 times in whole seconds, containers by name': () =>
    store(undefined, { phase: 'Running', startTime: '2024-05-01T10:00:00.987Z', containerStatuses: [up('b'), up('a')] }),
  '7.3 refused': () => store(of('Failed'), of('Running')),

  '7.5 conditions: of others from the API, own from here': () =>
    merge(
      { phase: 'Running', conditions: [is('gate', 'True'), is('Ready', 'True')] },
      { phase: 'Running', conditions: [is('gate', 'False'), is('Ready', 'False')] },
      true,
    ),
  '7.5 conditions: a disruption that others took back': () =>
    merge(
      { phase: 'Running', conditions: [is('DisruptionTarget', 'False')] },
      { phase: 'Running', conditions: [is('DisruptionTarget', 'True')] },
      true,
    ),
  '7.5 ends while something may run': () =>
    merge(
      { phase: 'Running', reason: 'R' },
      { phase: 'Failed', reason: 'Evicted', conditions: [is('Ready', 'True'), is('DisruptionTarget', 'True')] },
      true,
    ),
  '7.5 ends when nothing may run': () =>
    merge(
      { phase: 'Running' },
      {
        phase: 'Failed',
        reason: 'Evicted',
        conditions: [is('Ready', 'True'), is('ContainersReady', 'True'), is('DisruptionTarget', 'True')],
      },
      false,
    ),
  '7.5 succeeds when nothing may run': () => merge({ phase: 'Running' }, { phase: 'Succeeded', conditions: [is('Ready', 'True')] }, false),
  '7.5 the API says that it is over': () =>
    merge({ phase: 'Failed', reason: 'NodeLost' }, { phase: 'Running', conditions: [is('Ready', 'True')] }, true),
  '7.5 the class stays that of the object': () =>
    merge({ phase: 'Pending', qosClass: 'Burstable' }, { phase: 'Running', qosClass: 'BestEffort' }, true),
  '7.5 the mirror of a life that is over': () => merge({ phase: 'Failed' }, { phase: 'Running' }, true, { mayBeginAnew: true }),

  '7.6 regular: runs': () => terminateStatus(pod(), of('Running', up())),
  '7.6 regular: waits': () => terminateStatus(pod(), of('Running', waits())),
  '7.6 regular: ended': () => terminateStatus(pod(), of('Running', ended(3))),
  '7.6 static: the phase stays': () => terminateStatus(pod({}, { source: 'file' }), of('Running', up())),
  '7.6 the phase is final': () => terminateStatus(pod(), of('Succeeded', ended(0))),
  '7.6 not initialised: up to the last that started': () =>
    terminateStatus(pod({ initContainers: ['a', 'b', 'c'].map((n) => container(n)) }), {
      phase: 'Pending',
      initContainerStatuses: [ended(0, 'a'), up('b'), waits('c')],
      containerStatuses: [waits()],
    }),
  '7.6 not initialised: nothing ever started': () =>
    terminateStatus(pod({ initContainers: ['a', 'b'].map((n) => container(n)) }), {
      phase: 'Pending',
      initContainerStatuses: [waits('a'), waits('b')],
      containerStatuses: [waits()],
    }),
  '7.6 initialised: no regular container ever started': () =>
    terminateStatus(pod({ initContainers: [container('a')] }), {
      phase: 'Pending',
      initContainerStatuses: [ended(0, 'a')],
      containerStatuses: [waits()],
      conditions: [is('Initialized', 'True')],
    }),
  '7.6 initialised: sidecars too': () =>
    terminateStatus(pod({ initContainers: [sidecar('s')] }), {
      phase: 'Running',
      initContainerStatuses: [up('s')],
      containerStatuses: [up()],
    }),

  '7.5 write: the API is not known yet': () => write({ record: record('api'), entry: entry(RUNNING), shown: [object()], synced: false }),
  '7.5 write: something differs': () => write({ record: record('api'), entry: entry(RUNNING), shown: [object()] }),
  '7.5 write: nothing differs': () => write({ record: record('api'), entry: entry(RUNNING), shown: [object({ status: RUNNING })] }),
  '7.5 write: the object is gone': () => write({ record: record('api'), entry: entry(RUNNING) }),
  '7.5 write: another object of its name': () => write({ record: record('api'), entry: entry(RUNNING), shown: [object({ uid: 'u2' })] }),
  '7.5 write: nothing is left anywhere': () => write({}),
  '7.5 delete: deleted, over in the API, nothing left here': () =>
    write({ record: record('api'), entry: entry(OVER, true), shown: [object({ deleted: true, status: OVER })] }),
  '7.5 delete: the API does not know that it is over': () =>
    write({ record: record('api'), entry: entry(OVER, true), shown: [object({ deleted: true, status: RUNNING })] }),
  '7.5 delete: something may be left here': () =>
    write({ record: record('api'), entry: entry(OVER), shown: [object({ deleted: true, status: OVER })] }),
  '7.5 write: it has ended, and its volumes are not down yet': () =>
    write({ record: record('api'), entry: entry(OVER, false, true), shown: [object({ status: RUNNING })] }),
  '7.5 delete: it has ended, and its volumes are not down yet': () =>
    write({ record: record('api'), entry: entry(OVER, false, true), shown: [object({ deleted: true, status: OVER })] }),
  '7.5 delete: not deleted': () => write({ record: record('api'), entry: entry(OVER, true), shown: [object({ status: OVER })] }),

  '2.7 mirror: none': () => write({ record: record('file') }),
  '2.7 mirror: none, the node is not registered': () => write({ record: record('file'), node: undefined }),
  '2.7 mirror: none, the node is being deleted': () => write({ record: record('file'), node: { ...node, deleting: true } }),
  '2.7 mirror: none, the pod is refused': () => write({ record: record('file', { state: REFUSED }) }),
  '2.7 mirror: none, the pod is gone': () => write({ record: record('file', { state: LEAVING }) }),
  '2.7 mirror: is deleted': () => write({ record: record('file'), shown: [mirror({ deleted: true })] }),
  '2.7 mirror: of another hash': () => write({ record: record('file'), shown: [mirror({ hash: 'other' })] }),
  '2.7 mirror: as it should be, something differs': () => write({ record: record('file'), entry: entry(RUNNING), shown: [mirror()] }),
  '2.7 mirror: as it should be': () => write({ record: record('file'), entry: entry(RUNNING), shown: [mirror({ status: RUNNING })] }),
  '2.7 mirror: is over, the pod is not': () => write({ record: record('file'), entry: entry(RUNNING), shown: [mirror({ status: OVER })] }),
  '2.7 mirror: was just deleted': () => write({ record: record('file'), shown: [mirror()], gone: ['mirror'] }),
  '2.7 orphan: its pod is gone': () => write({ uid: 'mirror', shown: [mirror()] }),
  '2.7 orphan: not every source has delivered': () => write({ uid: 'mirror', shown: [mirror()], sourcesReady: false }),
  '2.7 orphan: its pod is still being stopped': () =>
    write({ uid: 'mirror', record: record('file', { state: LEAVING }), shown: [mirror()] }),
  '2.7 an orphaned pod has none': () => write({ record: record('runtime') }),
});
