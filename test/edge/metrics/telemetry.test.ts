/** Telemetry: events are counted, bounded, published and forgotten. */
import { describe, expect, test } from 'vitest';
import { telemetrySpec } from '../../../src/actors/foundation/telemetry.ts';
import { type EventsEvent, eventsView, type RecordedEvent } from '../../../src/machines/foundation/messages.ts';
import { type PodRecord, podsView } from '../../../src/machines/pods/manager/messages.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';
import { run, type Views, views } from '../harness.ts';

const pod = (uid: string) => ({ uid, name: `name-${uid}`, namespace: 'default' });
function start(registry: Views = views(), limits?: { perPodMax: number; nodeMax: number; podsMax: number }) {
  const ports = fakePorts();
  const actor = run<EventsEvent>(telemetrySpec(limits === undefined ? {} : { limits }), ports, registry);
  const record = (event: Partial<EventsEvent['event']>) =>
    actor.send({ type: 'event.record', event: { type: 'Normal', reason: 'Started', message: 'm', ...event } });
  const shown = async (): Promise<readonly RecordedEvent[]> => {
    await ports.settle();
    return registry.read(eventsView)?.value ?? [];
  };
  return { ports, actor, registry, record, shown };
}
const it = test.extend('t', () => start());
const wanted = (...uids: string[]) => ({ sourcesReady: true, records: new Map(uids.map((u) => [u, {} as PodRecord])) });

describe('telemetry', () => {
  it('counts a repeated event, keeps its first time, and moves it to the end', async ({ t }) => {
    t.record({ pod: pod('a'), message: 'back-off' });
    t.record({ pod: pod('a'), message: 'other' });
    const firstAtMs = t.ports.clock.wallMs();
    await t.ports.advance(5000);
    t.record({ pod: pod('a'), message: 'back-off' });
    expect(await t.shown()).toMatchObject([
      { message: 'other', count: 1 },
      { message: 'back-off', count: 2, firstAtMs, atMs: firstAtMs + 5000 },
    ]);
  });
  it('tells apart what differs in pod, container, type or reason', async ({ t }) => {
    t.record({ pod: pod('a') });
    t.record({ pod: pod('b') });
    t.record({ pod: pod('a'), fieldPath: 'spec.containers{web}' });
    t.record({ pod: pod('a'), type: 'Warning' });
    t.record({ pod: pod('a'), reason: 'Pulled' });
    t.record({});
    expect((await t.shown()).map((e) => e.count)).toEqual([1, 1, 1, 1, 1, 1]);
  });
  it('publishes a burst once', async ({ t }) => {
    for (let i = 0; i < 100; i++) t.record({ message: `m${i}` });
    await t.shown();
    expect(t.registry.read(eventsView)?.version).toBe(1);
  });
  it('logs each new event once: of a pod its warnings for information, all else for debugging; of the node as it is', async ({ t }) => {
    for (let i = 0; i < 3; i++) t.record({ pod: pod('a'), type: 'Warning', reason: 'BackOff', message: 'again' });
    t.record({ pod: pod('a'), reason: 'Pulled', message: 'pulled' });
    t.record({ type: 'Warning', reason: 'Rebooted', message: 'booted' });
    t.record({ reason: 'Starting', message: 'hello' });
    expect(t.ports.lines).toEqual([
      { level: 'info', msg: 'again', fields: { reason: 'BackOff', uid: 'a', pod: 'default/name-a' } },
      { level: 'debug', msg: 'pulled', fields: { reason: 'Pulled', uid: 'a', pod: 'default/name-a' } },
      { level: 'warn', msg: 'booted', fields: { reason: 'Rebooted' } },
      { level: 'info', msg: 'hello', fields: { reason: 'Starting' } },
    ]);
  });
  it('keeps the newest 50 of a pod and 200 of the node', async ({ t }) => {
    for (let i = 0; i < 300; i++) {
      t.record({ pod: pod('a'), message: `p${i}` });
      t.record({ message: `n${i}` });
    }
    const all = await t.shown();
    expect(all.filter((e) => e.pod !== undefined).map((e) => e.message)).toEqual(Array.from({ length: 50 }, (_, i) => `p${250 + i}`));
    expect(all.filter((e) => e.pod === undefined)).toHaveLength(200);
  });
  it('forgets the quietest pod when there are too many', async () => {
    const t = start(views(), { perPodMax: 50, nodeMax: 200, podsMax: 2 });
    t.record({});
    for (const uid of ['a', 'b', 'a', 'c']) t.record({ pod: pod(uid) });
    expect((await t.shown()).map((e) => e.pod?.uid)).toEqual([undefined, 'a', 'c']);
  });
  it('forgets a pod 10 minutes after it went, and not before', async ({ t }) => {
    t.registry.set(podsView, wanted('a', 'b'));
    t.record({ pod: pod('a') });
    t.record({ pod: pod('b') });
    await t.ports.advance(60_000);
    t.registry.set(podsView, wanted('b'));
    await t.ports.advance(600_000);
    expect(await t.shown()).toHaveLength(2);
    await t.ports.advance(60_000);
    expect((await t.shown()).map((e) => e.pod?.uid)).toEqual(['b']);
  });
  it('forgets nothing before the sources have spoken', async ({ t }) => {
    t.registry.set(podsView, { sourcesReady: false, records: new Map() });
    t.record({ pod: pod('a') });
    await t.ports.advance(3_600_000);
    expect(await t.shown()).toHaveLength(1);
  });
  it('killed and started again, goes on from what it had published', async ({ t }) => {
    t.record({ pod: pod('a') });
    const before = await t.shown();
    t.actor.abort();
    expect(t.ports.pendingTimers()).toBe(0);
    const again = start(t.registry);
    again.record({ pod: pod('a') });
    expect(await again.shown()).toMatchObject([{ ...before[0], count: 2, atMs: expect.any(Number) }]);
  });
  it('cuts an endless message', async ({ t }) => {
    t.record({ message: 'x'.repeat(5000) });
    expect((await t.shown())[0]?.message).toHaveLength(1024);
  });
});
