import { describe, expect, it } from 'vitest';
import { decideWrite, type WriterFacts } from '../../../src/machines/api/podWriterDecide.ts';
import type { Pod } from '../../../src/machines/k8s.ts';
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
