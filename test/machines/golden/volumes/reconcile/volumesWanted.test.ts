/**
 * Which volumes of which pods are wanted, and until when (resources and volumes 8.4): what some container uses, what a claim
 * must be, what asking once more brings, and whose volumes are wanted in each state of a pod.
 */
import { createActor } from 'xstate';
import { claimSource } from '../../../../../src/actors/services/volumes/claims.ts';
import { type VolumesIo, volumesLogic } from '../../../../../src/actors/services/volumes/logic.ts';
import type { Container, PodSpec } from '../../../../../src/machines/kube/podTable.ts';
import type { KubeResult } from '../../../../../src/machines/kube/request.ts';
import type { Pod } from '../../../../../src/machines/kube/types.ts';
import type { Volume } from '../../../../../src/machines/kube/volumeTable.ts';
import type { ListedPod, RuntimePodsView } from '../../../../../src/machines/pod/runtime/seen.ts';
import { volumeRef } from '../../../../../src/machines/pod/volumes/volumePaths.ts';
import { podVolumes } from '../../../../../src/machines/pod/volumes/volumes.ts';
import type { PodRecord } from '../../../../../src/machines/pods/manager/messages.ts';
import type { WorkerPhase } from '../../../../../src/machines/pods/workers/messages.ts';
import type { VolumesResult } from '../../../../../src/machines/services/volumes/messages.ts';
import { type Actual, type Desired, type Look, reconcile } from '../../../../../src/machines/services/volumes/reconcile.ts';
import { momentOf } from '../../../../../src/machines/xstate/facts.ts';
import type { KubeApi } from '../../../../../src/ports/kube.ts';
import { views } from '../../../../edge/harness.ts';
import { virtualTime } from '../../../../integration/virtualTime.ts';
import { LEAVING, REFUSED, REFUSED_FAILING, RUNNING } from '../../../../lifeStates.ts';
import { fakePorts } from '../../../../supervision/fakePorts.ts';
import { container, pod } from '../../../pods/fixtures.ts';
import { goldenTable } from '../../table.ts';

const volume = (name: string, source: object): Volume => ({ name, ...source }) as Volume;
const mounting = (name: string, ...names: string[]): Container =>
  container(name, { volumeMounts: names.map((n) => ({ name: n, mountPath: `/${n}` })) });
const given = (name: string, ...names: string[]): Container =>
  container(name, { volumeDevices: names.map((n) => ({ name: n, devicePath: `/dev/${n}` })) });
const V = volume('v', { emptyDir: {} });
const CLAIM = volume('v', { persistentVolumeClaim: { claimName: 'data', readOnly: true } });
/** Volumes of a pod that are wanted, and what is wrong with others that are used. */
const used = (spec: Partial<PodSpec>, volumes: Volume[] = [V]) => {
  return () => {
    const { volumes: wanted, failed } = podVolumes(pod({ volumes, ...spec }));
    return { wanted: wanted.map(({ name, plugin, source }) => ({ name, plugin, source })), failed };
  };
};

// ---- claims ----

const PVC = {
  metadata: { name: 'data', namespace: 'ns', uid: 'c1' },
  spec: { volumeName: 'pv-1' },
  status: { phase: 'Bound', capacity: { storage: '1Gi' } },
};
const PV = {
  metadata: { name: 'pv-1', annotations: { 'pv.beta.kubernetes.io/gid': '1234' } },
  spec: { claimRef: { uid: 'c1' }, csi: { driver: 'd', volumeHandle: 'h' }, capacity: { storage: '2Gi' } },
};
const refusal = (code: number, reason: string, message: string): KubeResult => ({
  ok: false,
  failure: { code, reason, message, outcome: 'failed' },
});
const NOT_FOUND = refusal(404, 'NotFound', 'not found');
const AWAY = refusal(0, 'Unreachable', 'connection refused');
const body = (value: object): KubeResult => ({ ok: true, code: 200, body: value });
interface Claimed {
  pvc?: KubeResult;
  pv?: KubeResult;
  /** For the volume of that name alone. */
  own?: boolean;
  readOnly?: boolean;
  block?: boolean;
}
const claimed = (o: Claimed) => async () => {
  const asked: string[] = [];
  const kube: KubeApi = {
    ...fakePorts().kube,
    request: async (request: { path: string }) => {
      asked.push(request.path);
      return request.path.includes('persistentvolumeclaims') ? (o.pvc ?? body(PVC)) : (o.pv ?? body(PV));
    },
  } as KubeApi;
  const source = claimSource({ ports: fakePorts({ kube }), registry: views(), signal: new AbortController().signal }, () => 'n1');
  const of = { pod: pod(), volume: 'v', claim: o.own === true ? null : 'data', readOnly: o.readOnly ?? false, block: o.block ?? false };
  return { asked, found: await source(of, new AbortController().signal) };
};

// ---- what the manager does with what workers ask for ----

interface Managed {
  pod: Pod;
  ask(what: 'volumes.mount' | 'volumes.unmount', p?: Pod): void;
}
/** What is done on the disk and what whoever asks is told, in order. `broken`: volumes that cannot be set up. */
const managed =
  (volumes: Volume[], story: (m: Managed & { advance(ms: number): Promise<void> }) => Promise<void>, broken: readonly string[] = []) =>
  async () => {
    const time = virtualTime();
    const did: string[] = [];
    const own = pod({ volumes, containers: [mounting('web', ...volumes.map((v) => v.name))] });
    const io: VolumesIo = {
      scan: async () => [],
      sever: async () => undefined,
      publish: () => undefined,
      forget: () => did.push('pod forgotten'),
      bindSubPath: () => Promise.reject(new Error('no parts here')),
      setUp: async ({ volume: v, first }) => {
        did.push(`${first ? 'set up' : 'compared with its sources'}: ${v.name}`);
        if (broken.includes(v.name)) throw new Error(`${v.name} is broken`);
        return null;
      },
      tearDown: async ({ name }) => void did.push(`taken down: ${name}`),
      mountFailed: (_, v, message) => void did.push(`said of ${v.name}: ${message}`),
      tearDownFailed: () => undefined,
      grow: async () => ({ kind: 'looked', fixed: false }),
      growthFailed: () => undefined,
    };
    const moment = momentOf({ clock: time.clock, rng: { next: () => 0 } });
    const actor = createActor(
      volumesLogic(io, {
        clock: time.clock,
        moment,
        facts: (isOpen) => Object.assign(moment(), { pods: undefined, listed: undefined, isOpen, unanswered: () => [] }),
      }),
      {
        input: { rootDir: '/var/lib/kubelet', refreshMs: 60_000 },
        clock: time.clock,
      },
    ).start();
    await time.settle();
    const ask: Managed['ask'] = (type, p = own) => {
      const told = (r: VolumesResult) =>
        void did.push(`answered: ${r.ok ? [...r.mounts.keys()].sort().join(' ') || 'nothing is left' : r.failure.message}`);
      const replyTo = Object.assign(told, { refuse: () => undefined, signal: new AbortController().signal });
      actor.send(type === 'volumes.mount' ? { type, uid: 'uid-1', pod: p, replyTo } : { type, uid: 'uid-1', replyTo });
    };
    await story({ pod: own, ask, advance: (ms) => time.advance(ms) });
    actor.stop();
    return did;
  };
const SECRET = volume('s', { secret: { secretName: 's' } });

// ---- in each state of a pod ----

const NOW_MS = 100_000;
const POD = pod({ volumes: [V], containers: [mounting('web', 'v')] });
const record = (phase: WorkerPhase | null, more: Partial<PodRecord> = {}): PodRecord => ({
  pod: POD,
  source: 'api',
  state: RUNNING,
  seenAtMs: 0,
  worker: phase === null ? null : { phase, state: '', reason: '', message: '', sinceMs: 0, containers: [], causes: [] },
  ...more,
});
const STATES: Readonly<Record<string, PodRecord | null>> = {
  'known to nobody': null,
  'let in, no worker yet': record(null),
  'its worker is syncing': record('syncing'),
  'its worker is terminating': record('terminating'),
  'its worker is terminated': record('terminated'),
  'its worker has finished': record('finished'),
  'syncing, and removed from its source': record('syncing', { state: LEAVING }),
  'finished, and removed from its source': record('finished', { state: LEAVING }),
  'refused, no worker': record(null, { state: REFUSED }),
  'refused, its worker is terminating': record('terminating', { state: REFUSED_FAILING }),
  'found in the runtime alone': record('terminating', { source: 'runtime' }),
};
type RuntimeSays = 'not listed' | 'nothing' | ListedPod['containers'][number]['state'];
const SAYS: readonly RuntimeSays[] = ['not listed', 'nothing', 'created', 'running', 'exited', 'unknown'];
function listing(says: RuntimeSays): RuntimePodsView | undefined {
  if (says === 'not listed') return undefined;
  if (says === 'nothing') return { atMonoMs: NOW_MS - 1, via: 'poll', pods: new Map() };
  const c = { id: 'c', name: 'web', sandboxId: 's', createdAtNs: 0n, labels: {}, annotations: {}, state: says };
  const p: ListedPod = { uid: 'uid-1', name: 'p', namespace: 'ns', sandboxes: [], containers: [c] };
  return { atMonoMs: NOW_MS - 1, via: 'poll', pods: new Map([['uid-1', p]]) };
}
const wanted = (r: PodRecord | null, o: { asked: boolean; phase: Actual['phase'] }) => () => {
  const row = (says: RuntimeSays): string => {
    const look: Look = {
      pods: { records: new Map(r === null ? [] : [['uid-1', r]]), sourcesReady: true },
      listed: listing(says),
      nowMonoMs: NOW_MS,
    };
    const desired = new Map<string, Desired>(o.asked ? [['uid-1', { pod: POD, refreshAtMonoMs: NOW_MS + 1 }]] : []);
    const ref = volumeRef('uid-1', 'kubernetes.io~empty-dir', 'v');
    const actual = new Map<string, Actual>([['k', { ref, phase: o.phase, error: '', sinceMs: 0, done: null }]]);
    const { drop, want } = reconcile({ desired, actual, look, unminded: new Map([['uid-1', 0]]) });
    return drop.length > 0 ? 'taken down' : want.length > 0 ? 'wanted again' : 'left as it is';
  };
  return Object.fromEntries(SAYS.map((says) => [says, row(says)]));
};
const inEachState = (title: string, o: { asked: boolean; phase: Actual['phase'] }) =>
  Object.fromEntries(Object.entries(STATES).map(([state, r]) => [`8.4 ${title}, its pod: ${state}`, wanted(r, o)]));

goldenTable('which volumes are wanted is as recorded', 'volumes/reconcile/volumesWanted', {
  '8.4 mounted by an app container': used({ containers: [mounting('web', 'v')] }),
  '8.4 mounted by an init container': used({ initContainers: [mounting('i', 'v')] }),
  '8.4 mounted by an ephemeral container': used({ ephemeralContainers: [mounting('debug', 'v')] }),
  '8.4 a device of an app container': used({ containers: [given('web', 'v')] }, [CLAIM]),
  '8.4 a device of an init container': used({ initContainers: [given('i', 'v')] }, [CLAIM]),
  '8.4 a device that is no claim': used({ containers: [given('web', 'v')] }),
  '8.4 a device for one, mounted by the other': used({ containers: [given('web', 'v'), mounting('log', 'v')] }, [CLAIM]),
  '8.4 mounted twice': used({ containers: [mounting('web', 'v'), mounting('log', 'v')] }),
  '8.4 used by nobody (resources trap 43)': used({}),
  '8.4 used by nobody, of a kind without a plugin': used({}, [volume('v', { quobyte: { registry: 'd', volume: 'x' } })]),
  '8.4 mounted, of a kind without a plugin': used({ containers: [mounting('web', 'v')] }, [
    volume('v', { quobyte: { registry: 'd', volume: 'x' } }),
  ]),
  '8.4 mounted, and not a volume of the pod': used({ containers: [mounting('web', 'gone')] }),
  '8.4 a claim: read-only as the pod says': used({ containers: [mounting('web', 'v')] }, [CLAIM]),
  '8.4 a claim made for the pod': used({ containers: [mounting('web', 'v')] }, [volume('v', { ephemeral: { volumeClaimTemplate: {} } })]),
  '8.4 of several, those that are used': used({ containers: [mounting('web', 'b')] }, [
    volume('a', { emptyDir: {} }),
    volume('b', { emptyDir: { sizeLimit: '1Mi' } }),
  ]),

  '8.4 claim: all is well': claimed({}),
  '8.4 claim: read-only as the pod says': claimed({ readOnly: true }),
  '8.4 claim: not there': claimed({ pvc: NOT_FOUND }),
  '8.4 claim: the API server is away': claimed({ pvc: AWAY }),
  '8.4 claim: going': claimed({ pvc: body({ ...PVC, metadata: { ...PVC.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }) }),
  '8.4 claim: going, and protected': claimed({
    pvc: body({
      ...PVC,
      metadata: { ...PVC.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['kubernetes.io/pvc-protection'] },
    }),
  }),
  '8.4 claim: not bound': claimed({ pvc: body({ ...PVC, status: { phase: 'Pending' } }) }),
  '8.4 claim: without a volume': claimed({ pvc: body({ ...PVC, spec: {} }) }),
  '8.4 claim: its volume is not there': claimed({ pv: NOT_FOUND }),
  '8.4 claim: its volume is nobody’s': claimed({ pv: body({ ...PV, spec: { ...PV.spec, claimRef: undefined } }) }),
  '8.4 claim: its volume is of another': claimed({ pv: body({ ...PV, spec: { ...PV.spec, claimRef: { uid: 'c2' } } }) }),
  '8.4 claim: made for the pod, and not its own': claimed({ own: true }),
  '8.4 claim: made for the pod, and its own': claimed({
    own: true,
    pvc: body({ ...PVC, metadata: { ...PVC.metadata, ownerReferences: [{ controller: true, uid: 'uid-1' }] } }),
  }),
  '8.4 claim: a block device, mounted': claimed({ pv: body({ ...PV, spec: { ...PV.spec, volumeMode: 'Block' } }) }),
  '8.4 claim: a file system, as a device': claimed({ block: true }),

  '8.4 asked for twice: set up once': managed([V, SECRET], async ({ ask, advance }) => {
    ask('volumes.mount');
    await advance(1_000);
    ask('volumes.mount');
    await advance(1_000);
  }),
  '8.4 asked for again, and the pod is another now': managed([V, SECRET], async ({ pod: p, ask, advance }) => {
    ask('volumes.mount');
    await advance(1_000);
    ask('volumes.mount', { ...p, metadata: { ...p.metadata, labels: { a: 'b' } } });
    await advance(1_000);
  }),
  '8.4 asked for: one cannot be set up': managed(
    [V, SECRET],
    async ({ ask, advance }) => {
      ask('volumes.mount');
      await advance(2_000);
    },
    ['s'],
  ),
  '8.4 asked for: one cannot be set up within the wait': managed(
    [V, SECRET],
    async ({ ask, advance }) => {
      ask('volumes.mount');
      await advance(124_000);
    },
    ['s'],
  ),
  '8.4 asked for: of a kind without a plugin': managed(
    [volume('v', { quobyte: { registry: 'd', volume: 'x' } })],
    async ({ ask, advance }) => {
      ask('volumes.mount');
      await advance(1_000);
    },
  ),
  '8.4 released': managed([V, SECRET], async ({ ask, advance }) => {
    ask('volumes.mount');
    await advance(1_000);
    ask('volumes.unmount');
    await advance(1_000);
  }),
  '8.4 released, never asked for': managed([V], async ({ ask, advance }) => {
    ask('volumes.unmount');
    await advance(1_000);
  }),
  '8.4 asked for again after it was released': managed([V], async ({ ask, advance }) => {
    for (const what of ['volumes.mount', 'volumes.unmount', 'volumes.mount'] as const) {
      ask(what);
      await advance(1_000);
    }
  }),

  ...inEachState('asked for', { asked: true, phase: 'mounted' }),
  ...inEachState('there and not asked for', { asked: false, phase: 'mounted' }),
  ...inEachState('found on disk', { asked: false, phase: 'uncertain' }),
});
