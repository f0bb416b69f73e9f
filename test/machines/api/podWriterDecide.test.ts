import { describe, expect, it } from 'vitest';
import { passing } from '../../../src/machines/api/passing.ts';
import { decideWrite, type WriterFacts } from '../../../src/machines/api/podWriterDecide.ts';
import { keptOfWriter, type PodWriterFacts } from '../../../src/machines/api/podWriterMachine.ts';
import { ownPart, statusPatch } from '../../../src/machines/api/statusPatch.ts';
import type { Pod, PodStatus } from '../../../src/machines/kube/types.ts';
import { ANNOTATION_HASH, ANNOTATION_MIRROR } from '../../../src/machines/pod/names.ts';
import { withOwnParts } from '../../../src/machines/pods/sources/apiPod.ts';
import { REFUSED, RUNNING } from '../../lifeStates.ts';

const NAME = 'web-n1';
function pod(uid: string, annotations: Record<string, string>, image = 'busybox:1'): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: NAME, namespace: 'default', uid, annotations },
    spec: { containers: [{ name: 'main', image }] },
    status: {},
  };
}
/** A static pod with that UID and hash, whose mirror in the API says `mirror`. */
function facts(o: { uid: string; hash: string; mirror: string; mirrorImage?: string }): WriterFacts {
  const record = {
    pod: pod(o.uid, { [ANNOTATION_HASH]: o.hash }),
    source: 'file',
    state: RUNNING,
    seenAtMs: 0,
    worker: null,
  } as const;
  const mirror = pod('of-the-mirror', { [ANNOTATION_MIRROR]: o.mirror }, o.mirrorImage);
  return {
    uid: o.uid,
    record,
    entry: undefined,
    records: new Map([[o.uid, record]]),
    sourcesReady: true,
    api: { synced: true, byUid: new Map([[mirror.metadata.uid, mirror]]) },
    node: undefined,
    written: null,
    latest: null,
    last: null,
    gone: new Set(),
    nowWallMs: 0,
  };
}

describe('a writer that falls asleep', () => {
  const status: PodStatus = { phase: 'Running', podIP: '10.0.0.1' };
  const asleep = (shown: PodStatus, leftOut: Record<string, unknown> = {}) => {
    const own = { ...pod('u1', {}), status: shown };
    const record = { pod: own, source: 'api', state: RUNNING, seenAtMs: 0, worker: null } as const;
    const seen = {
      ...{ wallMs: 0, monoMs: 0, random: 0 },
      pods: { records: new Map([['u1', record]]), sourcesReady: true },
      entry: { status, life: 1, version: 3, stopped: false, finished: false },
      api: { synced: true, byUid: new Map([['u1', own]]) },
      node: undefined,
    } as unknown as PodWriterFacts;
    const written = { apiUid: 'u1', version: 3, own: ownPart(shown), sent: status, leftOut, tries: 2 };
    const context = { uid: 'u1', plan: { kind: 'rest' }, written, latest: null, last: null, gone: new Set(), shown: 'u1', held: false };
    return keptOfWriter({ value: 'resting', context: { ...context, failures: 0, failure: null } }, seen);
  };

  it('keeps nothing of its writes while the object shows all that it has to say', () => {
    expect(asleep(status)).toMatchObject({ written: null, shown: 'u1' });
  });
  it('keeps what the server left out, and what it will not have', () => {
    expect(asleep(status, { observedGeneration: 3 })?.written).toMatchObject({ leftOut: { observedGeneration: 3 } });
    expect(asleep({ phase: 'Running' })?.written).toMatchObject({ tries: 2 });
  });
});

describe('what the API server shows', () => {
  it('has as much of what the node said in it as says the same', () => {
    const ours: PodStatus = { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }], conditions: [{ type: 'Ready', status: 'True' }] };
    const shown: PodStatus = JSON.parse(
      '{"phase":"Running","podIPs":[{"ip":"10.0.0.1"}],"conditions":[{"type":"X","status":"True"},{"type":"Ready","status":"True","lastProbeTime":null}]}',
    );
    const text = JSON.stringify(shown);
    const shared = withOwnParts(shown, ours);
    expect([JSON.stringify(shared), shared.podIPs === ours.podIPs]).toEqual([text, true]);
    expect(withOwnParts(JSON.parse(JSON.stringify(ours)), ours)).toBe(ours);
  });
});

describe('the mirror of a static pod', () => {
  it('stays while it says the hash of the definition, and goes when it says another', () => {
    expect(decideWrite(facts({ uid: 'own', hash: 'own', mirror: 'own' }))).toEqual({ kind: 'rest' });
    expect(decideWrite(facts({ uid: 'own', hash: 'own', mirror: 'other' }))).toMatchObject({
      kind: 'deleteMirror',
      why: 'it mirrors another definition',
    });
  });
  it('that another agent made stays when its pod was taken over: its hash is the UID that the pod has now', () => {
    expect(decideWrite(facts({ uid: 'theirs', hash: 'own', mirror: 'theirs' }))).toEqual({ kind: 'rest' });
  });
  it('that says a pinned UID goes when the manifest has other images by now', () => {
    expect(decideWrite(facts({ uid: 'pinned', hash: 'own', mirror: 'pinned', mirrorImage: 'busybox:2' }))).toMatchObject({
      kind: 'deleteMirror',
    });
  });
});

describe('the writer of a pod that is over', () => {
  const failed: PodStatus = { phase: 'Failed', reason: 'OutOfpods', message: 'm', startTime: '2026-01-01T00:00:00Z' };
  const over = (o: { shown?: PodStatus; more?: Partial<WriterFacts>; finished?: boolean } = {}) => {
    const shown = { ...pod('u', {}), status: o.shown ?? failed };
    const record = { pod: shown, source: 'api', state: REFUSED, seenAtMs: 0, worker: null } as const;
    const finished = o.finished ?? true;
    const entry = { status: failed, life: 1, version: 1, stopped: finished, finished };
    const bare = { uid: 'u', record, entry, records: new Map([['u', record]]), sourcesReady: true, node: undefined, nowWallMs: 0 };
    const api = { synced: true, byUid: new Map([['u', shown]]) };
    return decideWrite({ ...bare, api, written: null, latest: null, last: null, gone: new Set(), ...o.more });
  };
  const written = { apiUid: 'u', version: 1, own: '', sent: {}, tries: 1 };

  it('ends when the API shows all there is to say', () => {
    expect(over()).toEqual({ kind: 'end' });
    expect(over({ more: { record: undefined } })).toEqual({ kind: 'end' });
  });
  it('stays while the watch has not shown what was written, or the server leaves something out', () => {
    expect(over({ more: { latest: pod('u', {}) } })).toEqual({ kind: 'rest' });
    const leftOut = { resize: 'Proposed' };
    expect(over({ more: { written: { ...written, own: 'x', leftOut } } })).toEqual({ kind: 'rest' });
  });
  it('stays while the pod may change, and writes what the API does not have', () => {
    expect(over({ finished: false })).toEqual({ kind: 'rest' });
    expect(over({ shown: { phase: 'Pending' } })).toMatchObject({ kind: 'patch' });
  });
  it('of a static pod that was refused ends unless there is a mirror', () => {
    const of = facts({ uid: 'own', hash: 'own', mirror: 'own' });
    const record = {
      pod: pod('own', { [ANNOTATION_HASH]: 'own' }),
      source: 'file',
      state: REFUSED,
      seenAtMs: 0,
      worker: null,
    } as const;
    const entry = { status: failed, life: 1, version: 1, stopped: true, finished: true };
    expect(decideWrite({ ...of, record, entry, api: { synced: true, byUid: new Map() } })).toEqual({ kind: 'end' });
  });
});

describe('a phase that is not the last', () => {
  const running: PodStatus = { phase: 'Running', startTime: '2026-01-01T00:00:00Z', conditions: [] };
  const plan = (shown: PodStatus, next: PodStatus, more: Partial<WriterFacts> = {}) => {
    const bare = pod('u', {});
    const shownPod = { ...bare, metadata: { ...bare.metadata, resourceVersion: '7' }, status: shown };
    const record = { pod: shownPod, source: 'api', state: RUNNING, seenAtMs: 0, worker: null } as const;
    const entry = { status: next, life: 1, version: 1, stopped: true, finished: true };
    const rest = { uid: 'u', record, entry, records: new Map([['u', record]]), sourcesReady: true, node: undefined, nowWallMs: 0 };
    const api = { synced: true, byUid: new Map([['u', shownPod]]) };
    return decideWrite({ ...rest, api, written: null, latest: null, last: null, gone: new Set(), ...more });
  };
  const pending: PodStatus = { phase: 'Pending', startTime: '2026-01-01T00:00:00Z' };

  it('is written over the version that was read alone: carried out late it would take an end back', () => {
    expect(plan(pending, running)).toMatchObject({ body: { metadata: { uid: 'u', resourceVersion: '7' }, status: { phase: 'Running' } } });
    expect(plan(pending, { ...running, phase: 'Failed' })).toMatchObject({ kind: 'patch', body: { metadata: { uid: 'u' } } });
    expect(plan(pending, { ...running, phase: 'Failed' })).not.toHaveProperty('body.metadata.resourceVersion');
    expect(plan(running, { ...running, podIP: '10.0.0.1' })).not.toHaveProperty('body.metadata.resourceVersion');
  });
  it('is written all the same where the object changes all the time', () => {
    expect(plan(pending, running, { conflicts: 2 })).toHaveProperty('body.metadata.resourceVersion');
    expect(plan(pending, running, { conflicts: 3 })).not.toHaveProperty('body.metadata.resourceVersion');
  });
});

describe('a status that the next one will say again', () => {
  const starting: PodStatus = {
    phase: 'Pending',
    startTime: '2026-01-01T00:00:00Z',
    conditions: [{ type: 'PodReadyToStartContainers', status: 'False' }],
    containerStatuses: [
      {
        name: 'main',
        ready: false,
        restartCount: 0,
        image: 'i',
        imageID: '',
        lastState: {},
        state: { waiting: { reason: 'ContainerCreating' } },
      },
    ],
  };
  const target = (status: PodStatus, deleted = false): Pod => {
    const p = pod('u', {});
    return { ...p, status, metadata: { ...p.metadata, ...(deleted ? { deletionTimestamp: '2026-01-01T00:00:01Z' } : {}) } };
  };
  const passes = (before: PodStatus, next: PodStatus, o: { deleted?: boolean; finished?: boolean } = {}) =>
    passing({ target: target(before, o.deleted), next, patch: statusPatch(before, next) ?? {}, finished: o.finished === true });
  const withSandbox: PodStatus = {
    ...starting,
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }],
    conditions: [{ type: 'PodReadyToStartContainers', status: 'True' }],
  };
  const waits = (reason: string) =>
    [{ ...withSandbox.containerStatuses?.[0], name: 'main', state: { waiting: { reason } } }] as PodStatus['containerStatuses'];

  it('is that of a new sandbox, and of a container that was created', () => {
    expect(passes(starting, withSandbox)).toBe('long');
    const created = withSandbox.containerStatuses?.map((c) => ({ ...c, containerID: 'containerd://c', imageID: 'sha256:1' })) ?? [];
    expect(passes(starting, { ...withSandbox, containerStatuses: created })).toBe('long');
  });
  it('is none that somebody may wait for: the first word, a start, a failure, a message, a sandbox that went away', () => {
    expect(passes({}, starting)).toBeNull();
    expect(passes(starting, { ...withSandbox, phase: 'Running' })).toBeNull();
    const waiting = waits('ErrImagePull');
    expect(passes(starting, { ...withSandbox, ...(waiting === undefined ? {} : { containerStatuses: waiting }) })).toBeNull();
    expect(passes(starting, { ...withSandbox, message: 'm' })).toBeNull();
    expect(passes(starting, { ...withSandbox, conditions: [{ type: 'Initialized', status: 'True' }] })).toBeNull();
    expect(passes(withSandbox, starting)).toBeNull();
  });
  it('is none that changes readiness, also of a deleted pod: endpoints follow it', () => {
    const condition = (type: string, status: 'True' | 'False') => ({ type, status });
    const ready: PodStatus = {
      ...withSandbox,
      phase: 'Running',
      conditions: [condition('Ready', 'True'), condition('ContainersReady', 'True')],
      containerStatuses: withSandbox.containerStatuses?.map((c) => ({ ...c, ready: true, state: { running: { startedAt: '' } } })) ?? [],
    };
    const unready = ready.containerStatuses?.map((c) => ({ ...c, ready: false })) ?? [];
    const without = (type: string): PodStatus => ({
      ...ready,
      conditions: ready.conditions?.map((c) => (c.type === type ? condition(type, 'False') : c)) ?? [],
    });
    for (const next of [without('Ready'), without('ContainersReady'), { ...ready, containerStatuses: unready }]) {
      expect(passes(ready, next, { deleted: true })).toBeNull();
      expect(passes(next, ready, { deleted: true })).toBeNull();
    }
    expect(passes(ready, { ...ready, podIP: '10.0.0.2' }, { deleted: true })).toBe('long');
    const ended = unready.map((c) => ({ ...c, state: { terminated: { exitCode: 0 } } }));
    expect(passes(ready, { ...without('Ready'), containerStatuses: ended }, { deleted: true }), 'nothing of it runs').toBe('brief');
  });
  it('is that of a deleted pod until its worker has finished or its phase is the last', () => {
    const running: PodStatus = { ...withSandbox, phase: 'Running' };
    const ended: PodStatus = { ...running, containerStatuses: [] };
    expect(passes(running, ended)).toBeNull();
    expect(passes(running, ended, { deleted: true })).toBe('long');
    expect(passes(running, ended, { deleted: true, finished: true })).toBeNull();
    expect(passes(running, { ...ended, phase: 'Succeeded' }, { deleted: true })).toBeNull();
  });
});
