/** The chart of one volume, and waits for it. `golden/volumes` has what is done when, and the manager's comparisons. */
import { describe, expect, it } from 'vitest';
import { createActor } from 'xstate';
import { type VolumeIo, volumeEffects, volumesLogic } from '../../src/actors/services/volumes/logic.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { volumeRef } from '../../src/machines/pod/volumes/volumePaths.ts';
import type { PodVolume } from '../../src/machines/pod/volumes/volumes.ts';
import { NOT_ATTACHED } from '../../src/machines/services/volumes/csi/volume.ts';
import type { Actual } from '../../src/machines/services/volumes/reconcile.ts';
import { volumeMachine } from '../../src/machines/services/volumes/volumeMachine.ts';
import { lateness } from '../../src/machines/services/volumes/waiters.ts';
import { provided } from '../../src/machines/xstate/provide.ts';
import { virtualTime } from '../integration/virtualTime.ts';

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
      clock: time.clock,
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
});

it('the end of a wait is told in the words of the reference', () => {
  const found: Actual = { ref: volumeRef('u', 'kubernetes.io~secret', 'v'), phase: 'uncertain', error: '', sinceMs: 0, done: null };
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
