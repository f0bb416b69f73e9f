/** The chart of one volume and the manager's comparisons: what is done when, and what is not. */

import { describe, expect, it } from 'vitest';
import { createActor } from 'xstate';
import { type VolumeIo, volumeEffects, volumesLogic } from '../../src/actors/services/volumes/logic.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import type { ListedPod, RuntimePodsView } from '../../src/machines/pod/runtime/seen.ts';
import { containerMounts } from '../../src/machines/pod/volumes/containerMounts.ts';
import { volumeRef } from '../../src/machines/pod/volumes/volumePaths.ts';
import type { PodVolume } from '../../src/machines/pod/volumes/volumes.ts';
import type { PodRecord, PodsView } from '../../src/machines/pods/manager/messages.ts';
import type { WorkerSummary } from '../../src/machines/pods/workers/messages.ts';
import { NOT_ATTACHED } from '../../src/machines/services/volumes/csi/volume.ts';
import { type Actual, reconcile } from '../../src/machines/services/volumes/reconcile.ts';
import { VOLUME_BACKOFF, volumeMachine } from '../../src/machines/services/volumes/volumeMachine.ts';
import { lateness } from '../../src/machines/services/volumes/waiters.ts';
import { provided } from '../../src/machines/xstate/provide.ts';
import { virtualTime } from '../integration/virtualTime.ts';
import { LEAVING, REFUSED, RUNNING } from '../lifeStates.ts';

const POD: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop', uid: 'u' },
  spec: { containers: [{ name: 'main' }] },
  status: {},
};
const FILES: PodVolume = {
  ...volumeRef('u', 'kubernetes.io~secret', 'v'),
  source: { kind: 'files', memory: true, defaultMode: 0o644, sources: [] },
};

/** A chart of one volume; `outcomes` answers its operations one by one, then all succeed. */
function bench(o: { found?: boolean; outcomes?: ('ok' | 'bad' | 'held')[]; volume?: PodVolume } = {}) {
  const time = virtualTime();
  const volume = o.volume ?? FILES;
  const done: { op: string; atMs: number }[] = [];
  const said: string[] = [];
  const outcomes = [...(o.outcomes ?? [])];
  const held: (() => void)[] = [];
  const operate = async (op: string): Promise<void> => {
    done.push({ op, atMs: time.clock.monoMs() });
    const outcome = outcomes.shift() ?? 'ok';
    if (outcome === 'bad') throw new Error(`${op} is not possible`);
    if (outcome === 'held') await new Promise<void>((go) => held.push(go));
  };
  const io: VolumeIo = {
    setUp: async ({ first }) => {
      await operate(first ? 'mount' : 'refresh');
      return null;
    },
    tearDown: () => operate('unmount'),
    mountFailed: (_, __, message) => void said.push(message),
    grow: async () => ({ kind: 'looked', fixed: false }),
    growthFailed: (_, message) => void said.push(message),
    tearDownFailed: (_, message) => void said.push(message),
  };
  // There is no manager to tell.
  const { actors, actions } = volumeEffects(io);
  const actor = createActor(
    provided(volumeMachine, { actors, actions: { ...actions, tell: () => {} } }, () => ({ wallMs: 0, monoMs: 0, random: 0 })),
    {
      clock: { setTimeout: (fn, ms) => time.clock.setTimeout(fn, ms) as number, clearTimeout: (id) => time.clock.clearTimeout(id) },
      input: { ref: volumeRef('u', volume.plugin, 'v'), job: o.found === true ? null : { volume, pod: POD } },
    },
  );
  actor.start();
  return {
    time,
    said,
    done,
    state: () => String(actor.getSnapshot().value),
    ops: () => done.map((d) => d.op),
    letGo: () => held.shift()?.(),
    want: (pod = POD) => actor.send({ type: 'volume.want', volume, pod }),
    refresh: (pod = POD) => actor.send({ type: 'volume.refresh', volume, pod }),
    unwant: () => actor.send({ type: 'volume.unwant' }),
  };
}

describe('a volume', () => {
  it('that cannot be mounted is tried again after 0.5 s, 1 s, 2 s ... up to 122 s, and asking does not hurry it', async () => {
    const b = bench({ outcomes: Array.from({ length: 12 }, () => 'bad' as const) });
    await b.time.advance(400_000);
    const gaps = b.done.slice(1).map((d, i) => d.atMs - (b.done[i]?.atMs ?? 0));
    expect(gaps.slice(0, 4)).toEqual([500, 1_000, 2_000, 4_000]);
    expect(Math.max(...gaps)).toBe(VOLUME_BACKOFF.maxMs);
    const tries = b.done.length;
    b.want();
    await b.time.settle();
    expect(b.done).toHaveLength(tries);
    expect(b.said[0]).toBe('mount is not possible');
  });

  it('whose mount failed is unmounted at once when it is not wanted any more (trap 46)', async () => {
    const b = bench({ outcomes: ['bad', 'bad', 'bad', 'bad'] });
    await b.time.advance(5_000);
    expect(b.state()).toBe('mountFailed');
    const before = b.time.clock.monoMs();
    b.unwant();
    await b.time.settle();
    expect(b.state()).toBe('gone');
    expect(b.done.at(-1)).toEqual({ op: 'unmount', atMs: before });
  });

  it('is never cut in an operation: what is wanted is looked at when it ends', async () => {
    const b = bench({ outcomes: ['held'] });
    await b.time.settle();
    b.unwant();
    await b.time.advance(1_000);
    expect([b.state(), b.ops()]).toEqual(['mounting', ['mount']]);
    b.letGo();
    await b.time.settle();
    expect([b.state(), b.ops()]).toEqual(['gone', ['mount', 'unmount']]);
  });

  it('that is wanted again while it is taken down is mounted after it', async () => {
    const b = bench({ outcomes: ['ok', 'held'] });
    await b.time.settle();
    b.unwant();
    await b.time.settle();
    b.want();
    expect(b.state()).toBe('unmounting');
    b.letGo();
    await b.time.settle();
    expect([b.state(), b.ops()]).toEqual(['mounted', ['mount', 'unmount', 'mount']]);
  });

  it('that was found on disk is touched only when somebody says what is wanted', async () => {
    const b = bench({ found: true });
    await b.time.advance(600_000);
    expect([b.state(), b.ops()]).toEqual(['uncertain', []]);
    b.want();
    await b.time.settle();
    expect(b.state()).toBe('mounted');
    const other = bench({ found: true });
    other.unwant();
    await other.time.settle();
    expect([other.state(), other.ops()]).toEqual(['gone', ['unmount']]);
  });

  it('of files is compared with its sources again when its pod changed; a failure leaves it mounted and is tried again', async () => {
    const b = bench({ outcomes: ['ok', 'bad', 'ok'] });
    await b.time.settle();
    b.want();
    await b.time.settle();
    expect(b.ops()).toEqual(['mount']);
    // Its status is no matter of a volume's.
    b.want({ ...POD, status: { ...POD.status } });
    await b.time.settle();
    expect(b.ops()).toEqual(['mount']);
    b.want({ ...POD, metadata: { ...POD.metadata } });
    await b.time.settle();
    expect(b.state()).toBe('refreshFailed');
    await b.time.advance(500);
    expect([b.state(), b.ops()]).toEqual(['mounted', ['mount', 'refresh', 'refresh']]);
  });

  it('asked for in the middle of a refresh is refreshed once more', async () => {
    const b = bench({ outcomes: ['ok', 'held'] });
    await b.time.settle();
    b.refresh();
    await b.time.settle();
    b.refresh();
    b.refresh();
    b.letGo();
    await b.time.settle();
    expect([b.state(), b.ops()]).toEqual(['mounted', ['mount', 'refresh', 'refresh']]);
  });

  it('of the host has nothing to refresh', async () => {
    const b = bench({ volume: { ...FILES, plugin: 'kubernetes.io~host-path', source: { kind: 'hostPath', path: '/p', type: '' } } });
    await b.time.settle();
    b.refresh();
    b.want({ ...POD });
    await b.time.settle();
    expect(b.ops()).toEqual(['mount']);
  });
});

describe('what to do about volumes', () => {
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
    source: 'file',
    state: RUNNING,
    seenAtMs: 0,
    worker: worker('syncing'),
    ...more,
  });
  const found: Actual = {
    ref: volumeRef('u', 'kubernetes.io~secret', 'v'),
    phase: 'uncertain',
    error: '',
    sinceMs: 0,
    done: null,
  };
  const listed = (state?: ListedPod['containers'][number]['state']): RuntimePodsView => ({
    atMonoMs: 0,
    via: 'poll',
    pods: new Map(
      state === undefined
        ? []
        : [
            [
              'u',
              {
                uid: 'u',
                name: 'web',
                namespace: 'shop',
                sandboxes: [],
                containers: [{ id: 'c', name: 'main', sandboxId: 's', state, createdAtNs: 0n, labels: {}, annotations: {} }],
              },
            ],
          ],
    ),
  });
  const pods = (r: PodRecord | null, sourcesReady = true): PodsView => ({ records: new Map(r === null ? [] : [['u', r]]), sourcesReady });
  const reconciled = (o: { p: PodsView | undefined; l: RuntimePodsView | undefined; unminded: ReadonlyMap<string, number> }) =>
    reconcile({
      desired: new Map(),
      actual: new Map([['k', found]]),
      look: { pods: o.p, listed: o.l, nowMonoMs: 5 },
      unminded: o.unminded,
    });
  /** Nobody has minded the pod since before the listing. */
  const look = (p: PodsView | undefined, l: RuntimePodsView | undefined) => {
    const { unminded: _, ...found } = reconciled({ p, l, unminded: new Map([['u', -1]]) });
    return found;
  };
  const nothing = { drop: [], want: [], refresh: [] };

  it('is not dropped on a listing that may be older than what its worker started last', () => {
    const first = reconciled({ p: pods(null), l: listed(), unminded: new Map() });
    expect(first).toMatchObject({ drop: [], unminded: new Map([['u', 5]]) });
    const fresh = { ...listed(), atMonoMs: 6 };
    expect(reconciled({ p: pods(null), l: fresh, unminded: first.unminded }).drop).toEqual(['u']);
    // Somebody minded it meanwhile: what was known of it counts no more.
    const { unminded } = reconciled({ p: pods(record()), l: fresh, unminded: first.unminded });
    expect(reconciled({ p: pods(null), l: listed(), unminded }).drop).toEqual([]);
  });

  it.each<[string, PodsView | undefined, RuntimePodsView | undefined, 'drop' | 'want' | 'nothing']>([
    ['nobody has said which pods there are', undefined, listed(), 'nothing'],
    ['a source has not delivered', pods(null, false), listed(), 'nothing'],
    ['the runtime was not listed', pods(null), undefined, 'nothing'],
    ['its pod is gone and a container still runs', pods(null), listed('running'), 'nothing'],
    ['its pod is gone and a container may still start', pods(null), listed('created'), 'nothing'],
    ['its pod is gone and its containers have ended', pods(null), listed('exited'), 'drop'],
    ['its pod is gone', pods(null), listed(), 'drop'],
    ['its pod was refused and nobody minds it', pods(record({ state: REFUSED, worker: null })), listed(), 'drop'],
    ['its pod runs', pods(record()), listed('running'), 'want'],
    ['its pod has no worker yet', pods(record({ worker: null })), listed(), 'nothing'],
    ['its pod is being stopped', pods(record({ worker: worker('terminating') })), listed('running'), 'nothing'],
    ['its pod was removed', pods(record({ state: LEAVING })), listed('running'), 'nothing'],
  ])('found on disk, when %s', (_, p, l, what) => {
    const expected = { drop: { ...nothing, drop: ['u'] }, want: { ...nothing, want: [{ uid: 'u', pod: POD }] }, nothing };
    expect(look(p, l)).toEqual(expected[what]);
  });

  it('files are compared again when their pod changed or their time has come', () => {
    const at = (pod: Pod, nowMonoMs: number) =>
      reconcile({
        desired: new Map([['u', { pod, refreshAtMonoMs: 100 }]]),
        actual: new Map([['k', { ...found, phase: 'mounted' as const }]]),
        look: { pods: pods(record()), listed: listed(), nowMonoMs },
        unminded: new Map(),
      }).refresh;
    expect(at(POD, 99)).toEqual([]);
    expect(at(POD, 100)).toEqual([{ uid: 'u', pod: POD }]);
    expect(at({ ...POD, metadata: { ...POD.metadata } }, 0)).toEqual([{ uid: 'u', pod: POD }]);
    expect(at({ ...POD, spec: { ...POD.spec } }, 0)).toEqual([{ uid: 'u', pod: POD }]);
    // Its status is no part of them: each of our own writes comes back as one.
    expect(at({ ...POD, status: { ...POD.status, phase: 'Running' } }, 99)).toEqual([]);
  });

  it('the end of a wait is told in the words of the reference', () => {
    const failed = (key: string, error: string): [string, Actual] => [
      `u/kubernetes.io~local-volume/${key}`,
      { ...found, ref: volumeRef('u', 'kubernetes.io~local-volume', key), phase: 'failed', error },
    ];
    const actual = new Map([
      failed('a', 'volume is not there'),
      failed('b', NOT_ATTACHED),
      failed('c', 'error processing PVC shop/data: PVC is not bound'),
    ]);
    const volumes = ['a', 'b', 'c'].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
    const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
    const pod = { ...POD, spec: { containers: [{ name: 'main', volumeMounts }], volumes } };
    const late = { actual, rootDir: '/r', error: '', scanned: true, unanswered: [] };
    const words =
      'Unable to attach or mount volumes: unmounted volumes=[a b c], unattached volumes=[b], failed to process volumes=[c]: context deadline exceeded';
    expect(lateness(late, { ask: 1, uid: 'u', pod }).message).toBe(words);
    const hung = 'CSI driver x has not answered NodePublishVolume of volume b for 118s';
    expect(lateness({ ...late, unanswered: [hung] }, { ask: 1, uid: 'u', pod }).message).toBe(`${words}; ${hung}`);
  });
});

describe('the mounts of a container', () => {
  const volumes = new Map([
    ['rw', { hostPath: '/rw', readOnly: false, managed: true }],
    ['ro', { hostPath: '/ro', readOnly: true, managed: true }],
    ['host', { hostPath: '/host', readOnly: false, managed: false }],
  ]);
  it('are those of the manifest, in order; what is read-only stays so', () => {
    const volumeMounts = [
      { name: 'host', mountPath: '/h', mountPropagation: 'HostToContainer' as const },
      { name: 'ro', mountPath: '/r', readOnly: false },
      { name: 'rw', mountPath: '/w', readOnly: true },
    ];
    expect(containerMounts({ name: 'main', volumeMounts }, volumes)).toEqual({
      ok: true,
      value: [
        { containerPath: '/h', hostPath: '/host', readonly: false, selinuxRelabel: false, propagation: 'PROPAGATION_HOST_TO_CONTAINER' },
        { containerPath: '/r', hostPath: '/ro', readonly: true, selinuxRelabel: true, propagation: 'PROPAGATION_PRIVATE' },
        { containerPath: '/w', hostPath: '/rw', readonly: true, selinuxRelabel: true, propagation: 'PROPAGATION_PRIVATE' },
      ],
    });
  });
  it('refuse the container when a volume is not there, or part of one is asked for', () => {
    expect(containerMounts({ name: 'main', volumeMounts: [{ name: 'nope', mountPath: '/n' }] }, volumes)).toEqual({
      ok: false,
      message: 'cannot find volume "nope" to mount into container "main"',
    });
    expect(containerMounts({ name: 'main', volumeMounts: [{ name: 'rw', mountPath: '/n', subPath: 'a' }] }, volumes).ok).toBe(false);
  });
});

it('a dead server is given up for pods whose volumes go, and not for one that is wanted again before its volume is gone', async () => {
  const time = virtualTime();
  const severed: (readonly string[])[] = [];
  const wait = new Promise<never>(() => {});
  const moment = () => ({ wallMs: 0, monoMs: time.clock.monoMs(), random: 0 });
  const io = {
    scan: async () => ['goes', 'back', 'other'].map((uid) => volumeRef(uid, 'kubernetes.io~nfs', 'v')),
    setUp: async () => null,
    tearDown: () => wait,
    sever: async (uids: readonly string[]) => void severed.push([...uids].sort()),
    ...{ grow: () => wait, bindSubPath: () => wait, mountFailed() {}, growthFailed() {}, tearDownFailed() {}, publish() {}, forget() {} },
  };
  const facts = () => ({ ...moment(), pods: undefined, listed: undefined, unanswered: () => [], isOpen: () => true });
  const manager = createActor(volumesLogic(io, { clock: time.clock, moment, facts }), {
    input: { rootDir: '/r', refreshMs: 60_000 },
  }).start();
  const replyTo = () => Object.assign(() => {}, { refuse() {}, signal: new AbortController().signal });
  const spec = { containers: [{ name: 'main' }], volumes: [{ name: 'v', nfs: { server: 'files', path: '/exports' } }] };
  const want = (uid: string) =>
    manager.send({ type: 'volumes.mount', uid, pod: { ...POD, spec, metadata: { ...POD.metadata, uid } }, replyTo: replyTo() });
  const unwant = (uid: string) => manager.send({ type: 'volumes.unmount', uid, replyTo: replyTo() });
  const stuck = async (uid: string) => {
    manager.send({ type: 'volumes.sever', uid });
    await time.advance(1);
    return severed.at(-1);
  };
  await time.advance(1);
  unwant('goes');
  unwant('back');
  await time.advance(1);
  want('back');
  expect(await stuck('other')).toEqual(['goes', 'other']);
  // It has ended after all, and is here again with the same UID.
  unwant('other');
  want('other');
  expect(await stuck('goes')).toEqual(['goes', 'goes']);
  manager.stop();
});
