import { describe, expect, it } from 'vitest';
import type { Pod } from '../../../src/machines/kube/types.ts';
import type { SourceName } from '../../../src/machines/pod/runtime/seen.ts';
import { emptyPodStorage, mergeSet, type PodStorage, podsOf, seenStamp } from '../../../src/machines/pods/podConfig/merge.ts';
import { pod } from './pods.ts';

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const merge = (state: PodStorage, pods: Pod[], source: SourceName = 'file') => mergeSet(state, { source, pods, nowWallMs: NOW });
const ops = (r: ReturnType<typeof mergeSet>) => r.ops.map((o) => `${o.op} ${o.pods.map((p) => p.metadata.name).join(',')}`.trim());
const api = (uid: string, over: { meta?: Partial<Pod['metadata']>; status?: Pod['status']; spec?: Partial<Pod['spec']> } = {}): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: uid, namespace: 'default', uid, ...over.meta },
  spec: { containers: [{ name: 'a', image: 'b' }], ...over.spec },
  status: over.status ?? {},
});

describe('merging a set', () => {
  it('stamps the source and the time first seen, and keeps that time', () => {
    const first = merge(emptyPodStorage, [pod('a')]);
    expect(first.ops[0]?.pods[0]?.metadata.annotations).toMatchObject({
      'kubernetes.io/config.source': 'file',
      'kubernetes.io/config.seen': '2026-01-02T03:04:05.006000000Z',
    });
    const again = mergeSet(first.state, {
      source: 'file',
      pods: [{ ...pod('a'), metadata: { ...pod('a').metadata, labels: { x: 'y' } } }],
      nowWallMs: NOW + 60_000,
    });
    expect(ops(again)).toEqual(['UPDATE a-node1']);
    expect(again.ops[0]?.pods[0]?.metadata.annotations?.['kubernetes.io/config.seen']).toBe(seenStamp(NOW));
  });

  it('replaces an edited static pod: REMOVE of the old UID, then ADD of the new', () => {
    const first = merge(emptyPodStorage, [pod('a')]);
    const edited = merge(first.state, [pod('a', {}, { image: 'other:1' })]);
    expect(ops(edited)).toEqual(['REMOVE a-node1', 'ADD a-node1']);
    expect(edited.ops[0]?.pods[0]?.metadata.uid).not.toBe(edited.ops[1]?.pods[0]?.metadata.uid);
  });

  it('updates in place when the manifest pins a UID', () => {
    const pinned = (image: string) => {
      const p = pod('a', {}, { image });
      return { ...p, metadata: { ...p.metadata, uid: 'pin', annotations: {} } };
    };
    expect(ops(merge(merge(emptyPodStorage, [pinned('a:1')]).state, [pinned('a:2')]))).toEqual(['UPDATE a-node1']);
  });

  it('emits nothing for the same pods again, even as fresh objects', () => {
    const first = merge(emptyPodStorage, [pod('a'), pod('b')]);
    expect(ops(merge(first.state, [pod('a'), pod('b')]))).toEqual([]);
  });

  it('sees an annotation that went away', () => {
    const first = merge(emptyPodStorage, [api('a', { meta: { annotations: { mine: '1' } } })], 'api');
    expect(ops(merge(first.state, [api('a')], 'api'))).toEqual(['UPDATE a']);
  });

  it('keeps the first of two pods with one name in one source, and both across sources', () => {
    const twice = merge(emptyPodStorage, [api('u1', { meta: { name: 'x' } }), api('u2', { meta: { name: 'x' } })], 'api');
    expect(podsOf(twice.state, 'api').map((p) => p.metadata.uid)).toEqual(['u1']);
    expect(twice.duplicates.map((d) => [d.pod.metadata.uid, d.winner.metadata.uid, d.same])).toEqual([['u2', 'u1', 'name']]);
    expect(ops(merge(twice.state, [api('u3', { meta: { name: 'x' } })], 'file'))).toEqual(['ADD x']);
  });

  it('holds a pod once: what it emits is the specification that the source delivered', () => {
    const delivered = api('a');
    const first = merge(emptyPodStorage, [delivered], 'api');
    expect(first.ops[0]?.pods[0]?.spec).toBe(delivered.spec);
    expect(podsOf(first.state, 'api')[0]).toBe(first.ops[0]?.pods[0]);
  });

  it('reads nothing of a pod that the source delivers again', () => {
    const pods = Array.from({ length: 100 }, (_, i) => api(`p${i}`));
    const first = merge(emptyPodStorage, pods, 'api');
    let reads = 0;
    for (const p of pods) {
      const { name } = p.metadata;
      const read = (): string => {
        reads += 1;
        return name;
      };
      Object.defineProperty(p.metadata, 'name', { get: read, enumerable: true });
    }
    const again = merge(first.state, [...pods, api('new')], 'api');
    expect(ops(again)).toEqual(['ADD new']);
    expect(reads).toBe(0);
  });
});

describe('one UID of two pods', () => {
  const x = api('u', { meta: { name: 'x' } });
  const y = api('u', { meta: { name: 'y' } });

  it('stays with the pod that had it, in whatever order they come', () => {
    const first = merge(emptyPodStorage, [x, y], 'api');
    for (const pods of [
      [y, x],
      [y, api('u', { meta: { name: 'x' } })],
      [api('u', { meta: { name: 'y' } }), api('o'), api('u', { meta: { name: 'x' } })],
    ]) {
      const next = merge(first.state, pods, 'api');
      expect(podsOf(next.state, 'api').map((p) => p.metadata.name)).toContain('x');
      expect(next.duplicates.map((d) => [d.pod.metadata.name, d.winner.metadata.name, d.same, d.holder])).toEqual([
        ['y', 'x', 'uid', 'api'],
      ]);
    }
  });

  it('stays with the source that had it', () => {
    const first = merge(emptyPodStorage, [x], 'file');
    const second = merge(first.state, [y, api('o')], 'api');
    expect(ops(second)).toEqual(['ADD o']);
    expect(second.duplicates.map((d) => [d.pod.metadata.name, d.winner.metadata.name, d.holder])).toEqual([['y', 'x', 'file']]);
    expect(ops(merge(merge(second.state, [], 'file').state, [y, api('o')], 'api'))).toEqual(['ADD y']);
  });

  it('makes another pod of what comes in the place of one', () => {
    expect(ops(merge(merge(emptyPodStorage, [x], 'api').state, [y], 'api'))).toEqual(['REMOVE x', 'ADD y']);
  });
});

describe('names that cannot be files', () => {
  it('refuse their pod alone, by the field, and end what ran under another definition of it', () => {
    const first = merge(emptyPodStorage, [api('a'), api('b')], 'api');
    const bad = api('b', { spec: { volumes: [{ name: '../x', emptyDir: {} }] } });
    const next = merge(first.state, [api('a'), bad, api('../../../x'), api('c')], 'api');
    expect(ops(next)).toEqual(['REMOVE b', 'ADD c']);
    expect(next.unsafe.map((u) => [u.pod, u.message.split(':')[0]])).toEqual([
      [bad, 'spec.volumes[0].name'],
      [api('../../../x'), 'metadata.uid'],
    ]);
  });
});
