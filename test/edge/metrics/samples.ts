/** Pods, statuses and views that the edge's tests share. */
import type { WhyInput } from '@actorlet/shown/src/why/whySources.ts';
import type { RecordedEvent } from '../../../src/machines/foundation/messages.ts';
import type { Pod, PodStatus } from '../../../src/machines/kube/types.ts';
import type { SourceName } from '../../../src/machines/pod/runtime/seen.ts';
import type { PodRecord, PodsView } from '../../../src/machines/pods/manager/messages.ts';
import type { SourceError } from '../../../src/machines/pods/podConfig/messages.ts';
import type { StatusView } from '../../../src/machines/pods/status/messages.ts';
import type { WorkerSummary } from '../../../src/machines/pods/workers/messages.ts';
import type { CriView } from '../../../src/machines/runtime/cri/messages.ts';
import { findActor } from '../../../src/machines/supervision/actorState.ts';
import { RUNNING } from '../../lifeStates.ts';
import { sampleTree } from '../harness.ts';

/** 2026-01-01T12:00:00Z: now, in every sample. */
export const NOW = Date.UTC(2026, 0, 1, 12);
const iso = (agoMs: number) => new Date(NOW - agoMs).toISOString();

export function pod(
  name: string,
  more: { uid?: string; namespace?: string; containers?: string[]; inits?: string[]; hostNetwork?: boolean } = {},
): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: more.namespace ?? 'default', uid: more.uid ?? `uid-${name}` },
    spec: {
      containers: (more.containers ?? ['web']).map((c) => ({ name: c, image: 'busybox' })),
      ...(more.inits === undefined ? {} : { initContainers: more.inits.map((c) => ({ name: c })) }),
      ...(more.hostNetwork === undefined ? {} : { hostNetwork: more.hostNetwork }),
    },
    status: {},
  };
}
export function worker(more: Partial<WorkerSummary> = {}): WorkerSummary {
  return {
    phase: 'syncing',
    state: 'syncing.watching',
    reason: 'Settled',
    message: '',
    sinceMs: NOW - 12_000,
    containers: [],
    causes: [],
    ...more,
  };
}
export function record(p: Pod, more: Partial<PodRecord> = {}): PodRecord {
  return { pod: p, source: 'file', state: RUNNING, seenAtMs: NOW - 250_000, worker: worker(), ...more };
}
export function viewOfPods(records: PodRecord[], sourcesReady = true): PodsView {
  return { sourcesReady, records: new Map(records.map((r) => [r.pod.metadata.uid, r])) };
}
export function statusView(entries: Record<string, PodStatus>): StatusView {
  return new Map(Object.entries(entries).map(([uid, status]) => [uid, { status, life: 1, version: 1, stopped: false, finished: false }]));
}
export const criReady: CriView = {
  state: 'ready',
  reason: '',
  runtimeName: 'containerd',
  runtimeVersion: '2.0',
  runtimeReady: true,
  networkReady: true,
  networkReason: '',
  lastGoodMonoMs: 900,
};
export const running: PodStatus = {
  phase: 'Running',
  podIP: '10.0.0.1',
  containerStatuses: [
    {
      name: 'web',
      ready: true,
      restartCount: 0,
      image: 'busybox',
      imageID: 'i',
      state: { running: { startedAt: iso(200_000) } },
      lastState: {},
    },
  ],
};
export const crashing: PodStatus = {
  phase: 'Running',
  containerStatuses: [
    {
      name: 'web',
      ready: false,
      restartCount: 3,
      image: 'busybox',
      imageID: 'i',
      state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s restarting failed container=web' } },
      lastState: { terminated: { exitCode: 1, reason: 'Error', startedAt: iso(30_000), finishedAt: iso(28_000) } },
    },
  ],
};
export const crashRecord = record(pod('web-node1', { inits: ['setup'] }), {
  worker: worker({
    reason: 'BackingOff',
    message: 'waits for the next start of web',
    containers: [
      { name: 'setup', init: true, state: 'terminated', reason: 'Completed', message: '', restartCount: 0 },
      {
        name: 'web',
        init: false,
        state: 'waiting',
        reason: 'CrashLoopBackOff',
        message: 'back-off 40s restarting failed container=web',
        restartCount: 3,
        nextStartAtMs: NOW + 12_000,
      },
    ],
    causes: [
      { atMs: NOW - 250_000, by: 'node/pods/sources/file', what: 'manifest /etc/kubernetes/manifests/web.yaml appeared' },
      { atMs: NOW - 28_000, by: 'node/runtime/pleg', what: 'container web exited with code 1' },
    ],
  }),
});
export const crashEvents: RecordedEvent[] = [
  {
    atMs: NOW - 249_000,
    type: 'Normal',
    reason: 'Created',
    message: 'Container created',
    fieldPath: 'spec.containers{web}',
    pod: { uid: 'uid-web-node1', name: 'web-node1', namespace: 'default' },
    count: 1,
  },
  {
    atMs: NOW - 20_000,
    firstAtMs: NOW - 200_000,
    type: 'Warning',
    reason: 'BackOff',
    message: 'Back-off restarting failed container web',
    fieldPath: 'spec.containers{web}',
    pod: { uid: 'uid-web-node1', name: 'web-node1', namespace: 'default' },
    count: 4,
  },
];
export const brokenManifest: ReadonlyMap<SourceName, readonly SourceError[]> = new Map([
  [
    'file',
    [{ where: '/etc/kubernetes/manifests/db.yaml', message: 'line 4: mapping values are not allowed here', fullName: 'db-node1_default' }],
  ],
]);
export const inTree =
  (changes?: Parameters<typeof sampleTree>[0]): WhyInput['actorAt'] =>
  (path) =>
    findActor(sampleTree(changes), path);

export function why(query: string, more: Partial<WhyInput> = {}): WhyInput {
  return {
    query,
    nowMs: NOW,
    monoMs: 60_900,
    pods: viewOfPods([crashRecord]),
    statuses: statusView({ 'uid-web-node1': crashing }),
    events: crashEvents,
    sourceErrors: new Map(),
    cri: criReady,
    actorAt: inTree(),
    ...more,
  };
}
