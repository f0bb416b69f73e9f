import { afterEach, describe, expect, test } from 'vitest';
import { configSpec } from '../../../src/actors/pods/podConfig/podConfig.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { ANNOTATION_SOURCE } from '../../../src/machines/pod/names.ts';
import type { ConfigEvent, SourceError } from '../../../src/machines/pods/podConfig/messages.ts';
import { runtimePodsView } from '../../../src/machines/runtime/pleg/messages.ts';
import { pod } from '../../machines/sources/pods.ts';
import { events, ops, type Running, run } from './harness.ts';

let r: Running | null = null;
afterEach(() => {
  r?.stop();
  r = null;
});
function start(): Running {
  r = run(configSpec({ sources: ['file', 'http'], listingWaitMs: 0 }));
  return r;
}
const it = test.extend('s', () => start());
const set = (
  pods: Pod[],
  errors: SourceError[] = [],
  what = 'manifest /m/web.yaml changed',
): Extract<ConfigEvent, { type: 'source.set' }> => ({
  type: 'source.set',
  source: 'file',
  pods,
  errors,
  causes: [{ atMs: 1, by: 'node/pods/sources/file', what }],
});
const order = (s: Running) =>
  s.sent.map((x) => (x.event.type === 'pods.op' ? (ops(s)[ops(s).indexOf(x.event as never)]?.op ?? '') : x.event.type));

describe('the podConfig actor', () => {
  it('waits for every configured source, and says so', ({ s }) => {
    expect(s.state()).toBe('"waiting"');
    s.ref.send(set([]));
    expect(s.state()).toBe('"waiting"');
    s.ref.send({ ...set([]), source: 'http' });
    expect(s.state()).toBe('"complete"');
    expect(ops(s).map((o) => [o.op, o.source, o.pods.length])).toEqual([
      ['ADD', 'file', 0],
      ['ADD', 'http', 0],
    ]);
  });

  it('sends operations to the pod manager in their order, with the causes of the source', ({ s }) => {
    s.ref.send(set([pod('web')]));
    s.ref.send(set([pod('web', {}, { image: 'new:1' })]));
    expect(ops(s).map((o) => o.op)).toEqual(['ADD', 'REMOVE', 'ADD']);
    expect(s.sent.every((x) => x.to === 'node/pods/podManager')).toBe(true);
    expect(ops(s)[1]?.causes?.map((c) => c.what)).toEqual(['manifest /m/web.yaml changed', 'source file: REMOVE of 1 pod']);
  });

  it('sends thousands of pods in parts, the oldest first, and says what is complete once', ({ s }) => {
    const pods = Array.from({ length: 300 }, (_, i) => {
      const p = pod(`p${i}`);
      return { ...p, metadata: { ...p.metadata, creationTimestamp: new Date(Date.UTC(2026, 0, 1) - i * 1000).toISOString() } };
    });
    s.ref.send(set(pods));
    expect(ops(s).map((o) => [o.part, o.pods.length, o.first, o.complete?.length])).toEqual([
      ['begin', 128, true, 300],
      ['middle', 128, true, undefined],
      ['end', 44, true, undefined],
    ]);
    expect(ops(s)[0]?.pods[0]?.metadata.name).toBe(pods.at(-1)?.metadata.name);
  });

  it('does not count a report of errors as a set, and publishes it', ({ s }) => {
    s.ref.send({ type: 'source.errors', source: 'file', errors: [{ where: '/m', message: 'EIO' }] });
    expect(ops(s)).toEqual([]);
    expect(s.views.get('sourceErrors')).toEqual(new Map([['file', [{ where: '/m', message: 'EIO' }]]]));
    expect(events(s).map((e) => [e.type, e.reason, e.message])).toEqual([['Warning', 'FailedValidation', '/m: EIO']]);
  });

  it('keeps the pods over a report of errors', ({ s }) => {
    s.ref.send(set([pod('web')]));
    s.ref.send({ type: 'source.errors', source: 'file', errors: [{ where: '/m', message: 'EIO' }] });
    s.ref.send(set([pod('web')]));
    expect(ops(s).map((o) => o.op)).toEqual(['ADD']);
  });

  it('announces an unusable manifest once, and its removal before it happens', ({ s }) => {
    const web = pod('web');
    s.ref.send(set([web]));
    const error = { where: '/m/web.yaml', message: 'line 3, column 1: bad', fullName: 'web-node1_default' };
    s.ref.send(set([web], [error]));
    s.ref.send(set([web], [error]));
    s.ref.send(set([], [error]));
    expect(order(s)).toEqual(['ADD', 'event.record', 'event.record', 'REMOVE']);
    const [bad, removal] = events(s);
    expect(bad).toMatchObject({
      type: 'Warning',
      reason: 'FailedValidation',
      pod: { uid: web.metadata.uid },
      message: '/m/web.yaml: line 3, column 1: bad',
    });
    expect(removal?.message).toMatch(/^\/m\/web.yaml stayed unusable \(line 3, column 1: bad\), so its pod default\/web-node1 is removed$/);
    expect(ops(s)[1]?.causes?.some((c) => c.what.includes('stayed unusable'))).toBe(true);
  });

  it('rejects a second pod of one name with FailedValidation, said once', ({ s }) => {
    const twin = { ...pod('web'), metadata: { ...pod('web').metadata, uid: 'twin' } };
    s.ref.send(set([pod('web'), twin]));
    s.ref.send(set([pod('web'), twin]));
    expect(events(s).map((e) => [e.reason, e.pod?.uid])).toEqual([['FailedValidation', 'twin']]);
    expect(ops(s).map((o) => o.pods.length)).toEqual([1]);
  });

  it('refuses a pod whose names cannot be files, says so once, and runs the others', ({ s }) => {
    const bad = { ...pod('bad'), metadata: { ...pod('bad').metadata, uid: '../../../x' } };
    s.ref.send(set([bad, pod('web')]));
    s.ref.send(set([bad, pod('web')]));
    expect(ops(s).map((o) => [o.op, o.pods.map((p) => p.metadata.name)])).toEqual([['ADD', ['web-node1']]]);
    expect(events(s).map((e) => e.message)).toEqual([
      expect.stringContaining('"default/bad-node1": metadata.uid: "../../../x" cannot name a file'),
    ]);
    expect(JSON.stringify([...(s.views.get('sourceErrors') as Map<string, SourceError[]>)])).toContain('metadata.uid');
  });

  it('refuses a UID that another source holds by the names of both, and takes it once that one is gone', ({ s }) => {
    const twin = { ...pod('twin'), metadata: { ...pod('twin').metadata, uid: pod('web').metadata.uid } };
    s.ref.send(set([pod('web')]));
    s.ref.send({ ...set([twin, pod('other')]), source: 'http' });
    s.ref.send({ ...set([twin, pod('other')]), source: 'http' });
    expect(ops(s).map((o) => [o.op, o.source, o.pods.map((p) => p.metadata.name)])).toEqual([
      ['ADD', 'file', ['web-node1']],
      ['ADD', 'http', ['other-node1']],
    ]);
    expect(events(s).map((e) => e.message)).toEqual([
      expect.stringMatching(
        /^source http: pod default\/web-node1 \(uid \w+\) of source file has the UID \w+; pod default\/twin-node1 is ignored$/,
      ),
    ]);
    s.ref.send(set([]));
    expect(
      ops(s)
        .slice(2)
        .map((o) => [o.op, o.source, o.pods.map((p) => p.metadata.name)]),
    ).toEqual([
      ['REMOVE', 'file', ['web-node1']],
      ['ADD', 'http', ['twin-node1']],
    ]);
  });

  it('after its own restart adds everything again, and says what the complete set is', ({ s }) => {
    s.ref.send(set([pod('web'), pod('db')]));
    expect(ops(s).map((o) => [o.op, o.first, o.complete, o.pods.map((p) => p.metadata.name)])).toEqual([
      ['ADD', true, [pod('web'), pod('db')].map((p) => p.metadata.uid), ['web-node1', 'db-node1']],
    ]);
  });

  it('names static pods of another definition that run under a wanted name with its first word', ({ s }) => {
    const listed = {
      uid: 'other',
      name: 'web-node1',
      namespace: 'default',
      sandboxes: [{ ready: true, annotations: { [ANNOTATION_SOURCE]: 'file' } }],
      containers: [],
    };
    s.views.set('runtimePods', { atMonoMs: 0, pods: new Map([['other', listed]]), via: 'poll' });
    s.ref.send(set([pod('web')]));
    expect(ops(s).map((o) => [o.op, o.predecessors])).toEqual([['ADD', [listed]]]);
    s.ref.send(set([pod('web'), pod('db')]));
    expect(ops(s).map((o) => [o.op, o.predecessors])).toEqual([
      ['ADD', [listed]],
      ['ADD', undefined],
    ]);
  });
});

describe('the wait for the first listing', () => {
  const listing = (s: Running) => s.views.set(runtimePodsView.view, { atMonoMs: 0, pods: new Map(), via: 'poll' });
  const begin = (): Running => {
    r = run(configSpec({ sources: ['file'] }));
    return r;
  };
  // Lost for good once, so that a node came up without its pods: the listing had come, and was not looked for yet.
  it('lets a set pass that comes just after the listing', () => {
    const s = begin();
    listing(s);
    s.ref.send(set([pod('a')]));
    expect(ops(s).map((o) => [o.op, o.pods.length])).toEqual([['ADD', 1]]);
    expect(s.state()).toBe('"complete"');
  });
  it('lets a set that came before go when the listing comes', async () => {
    const s = begin();
    s.ref.send(set([pod('a')]));
    await s.ports.advance(1_000);
    expect(ops(s)).toEqual([]);
    listing(s);
    await s.ports.advance(40);
    expect(ops(s).map((o) => [o.op, o.pods.length])).toEqual([['ADD', 1]]);
  });
  it('lets it go without one after three seconds', async () => {
    const s = begin();
    s.ref.send(set([pod('a')]));
    await s.ports.advance(3_000);
    expect(ops(s).map((o) => [o.op, o.pods.length])).toEqual([['ADD', 1]]);
  });
});

describe('the mailbox of podConfig', () => {
  const { key, coalesce } = configSpec({ sources: ['file'], listingWaitMs: 0 }).mailbox ?? {};
  const failed: Extract<ConfigEvent, { type: 'source.errors' }> = {
    type: 'source.errors',
    source: 'file',
    errors: [{ where: 'x', message: 'later' }],
  };

  it('holds one item per source', () => {
    expect([key?.(set([])), key?.(failed), key?.({ ...set([]), source: 'http' })]).toEqual(['file', 'file', 'http']);
  });
  it('lets the newest set win and joins causes', () => {
    const merged = coalesce?.(set([pod('a')], [], 'first'), set([pod('b')], [], 'second'));
    expect(merged?.type === 'source.set' && merged.pods[0]?.metadata.name).toBe('b-node1');
    expect(merged?.causes?.map((c) => c.what)).toEqual(['first', 'second']);
  });
  it('never loses a set behind a report of errors', () => {
    expect(coalesce?.(set([pod('a')]), failed)).toMatchObject({ type: 'source.set', pods: [{}], errors: failed.errors });
    expect(coalesce?.(failed, set([pod('a')]))).toMatchObject({ type: 'source.set', errors: [] });
  });
});
