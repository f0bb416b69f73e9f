/**
 * What other parts of the node conclude from the life of a pod (pod lifecycle 3.4): each question by whoever asks it here, for
 * a pod in each state of its life, and for one that nobody knows, before and after every source has spoken.
 */
import { atWork } from '../../../../src/actors/allocation/cgroups/cgroups.ts';
import { containerGcSpec } from '../../../../src/actors/reclaim/containerGc.ts';
import { going } from '../../../../src/machines/allocation/holders.ts';
import { decideWrite, type WriterPlan } from '../../../../src/machines/api/podWriterDecide.ts';
import type { Pod, PodStatus } from '../../../../src/machines/kube/types.ts';
import { ANNOTATION_HASH, ANNOTATION_MIRROR } from '../../../../src/machines/pod/names.ts';
import { volumeRef } from '../../../../src/machines/pod/volumes/volumePaths.ts';
import { isLeaving } from '../../../../src/machines/pods/admission/judge.ts';
import { type PodRecord, type PodsView, podsView } from '../../../../src/machines/pods/manager/messages.ts';
import type { StatusEntry } from '../../../../src/machines/pods/status/messages.ts';
import type { WorkerPhase } from '../../../../src/machines/pods/workers/messages.ts';
import { DEFAULT_GC_POLICY } from '../../../../src/machines/reclaim/containerGc.ts';
import { namedImages } from '../../../../src/machines/reclaim/imageGc/imageGc.ts';
import { type CriView, criView } from '../../../../src/machines/runtime/cri/messages.ts';
import { mayNameObjects } from '../../../../src/machines/services/objects/objectsMachine.ts';
import { reconcile } from '../../../../src/machines/services/volumes/reconcile.ts';
import { CRI_LABELS } from '../../../../src/machines/wire/cri.ts';
import { run, views } from '../../../edge/harness.ts';
import { memFs } from '../../../integration/memFs.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { evicted, LEAVING, REFUSED, REFUSED_FAILING, RUNNING } from '../../../lifeStates.ts';
import { fakePorts } from '../../../supervision/fakePorts.ts';
import { NOW_MS, pod } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const UID = 'uid-1';
const POD = pod();
const DELETED = pod({}, { metadata: { deletionTimestamp: '2024-05-01T10:00:00Z' } });
const GONE: PodStatus = { phase: 'Failed' };
const worker = (phase: WorkerPhase, reason = ''): NonNullable<PodRecord['worker']> => ({
  phase,
  state: '',
  reason,
  message: '',
  sinceMs: 0,
  containers: [],
  causes: [],
});
const record = (phase: WorkerPhase | null, more: Partial<PodRecord> = {}): PodRecord => ({
  pod: POD,
  source: 'api',
  state: RUNNING,
  seenAtMs: 0,
  worker: phase === null ? null : worker(phase),
  ...more,
});
const EVICTION = { reason: 'Evicted', message: 'The node was low on resource: memory. ', graceSeconds: 1 };
interface Life {
  record: PodRecord | null;
  /** Default true. */
  sourcesReady?: boolean;
}
const LIVES: Readonly<Record<string, Life>> = {
  'unknown, not every source has spoken': { record: null, sourcesReady: false },
  unknown: { record: null },
  'let in, no worker yet': { record: record(null) },
  'waits for the one before it': { record: record('waiting', { worker: worker('waiting', 'WaitingForPredecessor') }) },
  syncing: { record: record('syncing') },
  'syncing, deleted': { record: record('syncing', { pod: DELETED }) },
  'syncing, removed': { record: record('syncing', { state: LEAVING }) },
  'syncing, evicted': { record: record('syncing', { state: evicted(EVICTION) }) },
  terminating: { record: record('terminating') },
  'terminating, deleted': { record: record('terminating', { pod: DELETED }) },
  'terminated, deleted': { record: record('terminated', { pod: DELETED }) },
  'terminated, evicted': { record: record('terminated', { state: evicted(EVICTION) }) },
  finished: { record: record('finished') },
  'finished, deleted': { record: record('finished', { pod: DELETED }) },
  'finished, evicted': { record: record('finished', { state: evicted(EVICTION) }) },
  'refused, no worker': { record: record(null, { state: REFUSED }) },
  'refused while it ran, terminating': { record: record('terminating', { state: REFUSED_FAILING }) },
  'an orphaned pod, terminating': { record: record('terminating', { source: 'runtime' }) },
};
const ledger = ({ record: r, sourcesReady = true }: Life): PodsView => ({ records: new Map(r === null ? [] : [[UID, r]]), sourcesReady });
const inEachLife = (ask: (life: Life) => unknown) => async () => {
  const answers: Record<string, unknown> = {};
  for (const [name, life] of Object.entries(LIVES)) answers[name] = await ask(life);
  return answers;
};

const planText = (plan: WriterPlan): string => {
  if (plan.kind === 'patch') return `patch: phase ${String(plan.body.status.phase ?? 'as it is')}`;
  return 'why' in plan ? `${plan.kind}: ${plan.why}` : plan.kind;
};
const object = (o: { annotations?: Record<string, string>; uid?: string; status?: PodStatus; deleted?: boolean }): Pod => ({
  ...POD,
  metadata: {
    ...POD.metadata,
    uid: o.uid ?? UID,
    annotations: o.annotations ?? {},
    ...(o.deleted === true ? { deletionTimestamp: '2024-05-01T10:00:00Z' } : {}),
  },
  status: o.status ?? { phase: 'Running' },
});
const written = (life: Life, o: { shown: Pod[]; entry?: StatusEntry }) => {
  const { records, sourcesReady } = ledger(life);
  const plan = decideWrite({
    uid: life.record === null && o.shown[0] !== undefined ? o.shown[0].metadata.uid : UID,
    record: life.record ?? undefined,
    entry: o.entry,
    records,
    sourcesReady,
    api: { synced: true, byUid: new Map(o.shown.map((p) => [p.metadata.uid, p])) },
    node: { uid: 'node-uid', name: 'n1', deleting: false } as NonNullable<Parameters<typeof decideWrite>[0]['node']>,
    written: null,
    latest: null,
    last: null,
    gone: new Set(),
    nowWallMs: NOW_MS,
  });
  return planText(plan);
};
const over = (finished: boolean) => ({ status: GONE, life: 1, version: 1, stopped: finished, finished }) as StatusEntry;
const asStatic = ({ record: r, ...life }: Life): Life => {
  if (r === null || r.source === 'runtime') return { ...life, record: r };
  const metadata = { ...r.pod.metadata, annotations: { [ANNOTATION_HASH]: UID } };
  return { ...life, record: { ...r, source: 'file', pod: { ...r.pod, metadata } } };
};

/** What one sweep removes of a pod with two ended instances of a container and a sandbox that is not ready. */
async function swept(life: Life): Promise<string[]> {
  const time = virtualTime();
  const registry = views();
  const removed: string[] = [];
  const labels = {
    [CRI_LABELS.podUid]: UID,
    [CRI_LABELS.podName]: 'p',
    [CRI_LABELS.podNamespace]: 'ns',
    [CRI_LABELS.containerName]: 'web',
  };
  const containers = [0, 1].map((attempt) => ({
    id: `web-${attempt}`,
    podSandboxId: 'box',
    metadata: { name: 'web', attempt },
    image: null,
    imageRef: '',
    state: 'CONTAINER_EXITED',
    createdAt: String(attempt + 1),
    labels,
    annotations: {},
  }));
  const metadata = { uid: UID, name: 'p', namespace: 'ns', attempt: 0 };
  const items = [{ id: 'box', metadata, state: 'SANDBOX_NOTREADY', createdAt: '1', labels, annotations: {}, runtimeHandler: '' }];
  registry.set(criView, { state: 'ready' } as CriView);
  registry.set(podsView, ledger(life));
  registry.answerer = (_, event) => {
    const [call] = (event as unknown as { calls: { method: string; request: { containerId?: string; podSandboxId?: string } }[] }).calls;
    if (call === undefined) return { kind: 'lost', reason: 'nothing was asked' };
    if (call.method.startsWith('Remove')) removed.push(call.request.containerId ?? call.request.podSandboxId ?? '');
    const value = call.method === 'ListPodSandbox' ? { items } : call.method === 'ListContainers' ? { containers } : {};
    return { kind: 'reply', value: [{ ok: true, value }] };
  };
  const spec = containerGcSpec({ policy: DEFAULT_GC_POLICY, podLogsDir: '/var/log/pods', containerLogsDir: '/var/log/containers' });
  const actor = run(spec, fakePorts({ clock: time.clock, fs: memFs(time.clock) }), registry);
  actor.send({ type: 'gc.run', why: 'now', urgent: true });
  for (let tries = 0; tries < 60 && actor.value() !== 'idle'; tries++) await time.advance(1);
  const ended = actor.value();
  actor.abort();
  return ended === 'idle' ? removed : [`the sweep is ${String(ended)}`];
}

const volumes = (life: Life): string => {
  const { drop, want } = reconcile({
    desired: new Map(),
    actual: new Map([['k', { ref: volumeRef(UID, 'x', 'v'), phase: 'uncertain', error: '', sinceMs: 0, done: null }]]),
    look: { pods: ledger(life), listed: { atMonoMs: 2, via: 'poll', pods: new Map() }, nowMonoMs: 3 },
    unminded: new Map([[UID, 1]]),
  });
  return drop.length > 0 ? 'taken down' : want.length > 0 ? 'wanted' : 'left to its worker';
};

goldenTable('what follows from the life of a pod is as recorded', 'manager/predicates', {
  '3.4 could have running containers: it weighs in the groups of the node': inEachLife(({ record: r }) => r !== null && atWork(r)),
  '3.4 could have running containers: its status may say that it is over': inEachLife((life) =>
    written(life, { shown: [object({})], entry: over(life.record?.worker?.phase === 'finished') }),
  ),
  '3.4 should be finished: its object may be deleted': inEachLife((life) =>
    written(life, { shown: [object({ status: GONE, deleted: true })], entry: over(life.record?.worker?.phase === 'finished') }),
  ),
  '3.4 its end was asked for: admission waits for its room': inEachLife(({ record: r }) => r !== null && isLeaving(r)),
  '3.4 its containers should be ending: it goes on, and is to have its CPUs': inEachLife(
    (life) => going({ pods: ledger(life), listing: undefined } as Parameters<typeof going>[0]).length === 1,
  ),
  '3.4 its containers should be ending, or nothing of it is to run: its volumes': inEachLife(volumes),
  '3.4 nothing of it is to run: its objects of the API are kept': inEachLife(({ record: r }) => r !== null && mayNameObjects(r)),
  '3.4 nothing of it is to run: its images are kept': inEachLife((life) => namedImages(ledger(life).records).size > 0),
  '3.4 nothing of it is to be left: what a sweep removes of the runtime': inEachLife(swept),
  '3.4 of a mirror: there is none': inEachLife((life) => written(asStatic(life), { shown: [] })),
  '3.4 of a mirror: it is there': inEachLife((life) =>
    written(asStatic(life), { shown: [object({ uid: 'mirror', annotations: { [ANNOTATION_MIRROR]: UID } })] }),
  ),
});
