import { describe, expect, it } from 'vitest';
import { isPassing } from '../../../src/machines/api/passing.ts';
import { decideWrite, type WriterFacts } from '../../../src/machines/api/podWriterDecide.ts';
import { statusPatch } from '../../../src/machines/api/statusPatch.ts';
import type { Pod, PodStatus } from '../../../src/machines/k8s.ts';
import { ANNOTATION_HASH, ANNOTATION_MIRROR } from '../../../src/machines/pods/sources/decode.ts';

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
    removed: false,
    rejected: false,
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
    const record = { pod: shown, source: 'api', removed: false, rejected: true, seenAtMs: 0, worker: null } as const;
    const entry = { status: failed, life: 1, version: 1, finished: o.finished ?? true };
    const bare = { uid: 'u', record, entry, records: new Map([['u', record]]), sourcesReady: true, node: undefined, nowWallMs: 0 };
    const api = { synced: true, byUid: new Map([['u', shown]]) };
    return decideWrite({ ...bare, api, written: null, latest: null, last: null, gone: new Set(), ...o.more });
  };
  const written = { apiUid: 'u', version: 1, own: '', sent: {}, finished: true, tries: 1 };

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
      removed: false,
      rejected: true,
      seenAtMs: 0,
      worker: null,
    } as const;
    const entry = { status: failed, life: 1, version: 1, finished: true };
    expect(decideWrite({ ...of, record, entry, api: { synced: true, byUid: new Map() } })).toEqual({ kind: 'end' });
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
    isPassing({ target: target(before, o.deleted), next, patch: statusPatch(before, next) ?? {}, finished: o.finished === true });
  const withSandbox: PodStatus = {
    ...starting,
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }],
    conditions: [{ type: 'PodReadyToStartContainers', status: 'True' }],
  };
  const waits = (reason: string) =>
    [{ ...withSandbox.containerStatuses?.[0], name: 'main', state: { waiting: { reason } } }] as PodStatus['containerStatuses'];

  it('is that of a new sandbox, and of a container that was created', () => {
    expect(passes(starting, withSandbox)).toBe(true);
    const created = withSandbox.containerStatuses?.map((c) => ({ ...c, containerID: 'containerd://c', imageID: 'sha256:1' })) ?? [];
    expect(passes(starting, { ...withSandbox, containerStatuses: created })).toBe(true);
  });
  it('is none that somebody may wait for: the first word, a start, a failure, a message, a sandbox that went away', () => {
    expect(passes({}, starting)).toBe(false);
    expect(passes(starting, { ...withSandbox, phase: 'Running' })).toBe(false);
    const waiting = waits('ErrImagePull');
    expect(passes(starting, { ...withSandbox, ...(waiting === undefined ? {} : { containerStatuses: waiting }) })).toBe(false);
    expect(passes(starting, { ...withSandbox, message: 'm' })).toBe(false);
    expect(passes(starting, { ...withSandbox, conditions: [{ type: 'Initialized', status: 'True' }] })).toBe(false);
    expect(passes(withSandbox, starting)).toBe(false);
  });
  it('is that of a deleted pod until its worker has finished or its phase is the last', () => {
    const running: PodStatus = { ...withSandbox, phase: 'Running' };
    const ended: PodStatus = { ...running, containerStatuses: [] };
    expect(passes(running, ended)).toBe(false);
    expect(passes(running, ended, { deleted: true })).toBe(true);
    expect(passes(running, ended, { deleted: true, finished: true })).toBe(false);
    expect(passes(running, { ...ended, phase: 'Succeeded' }, { deleted: true })).toBe(false);
  });
});
