/**
 * The list-watch chart in virtual time, against a scripted server: nothing is missed, nothing goes back, and a server
 * in trouble is not asked more than it bears.
 */
import { describe, expect, it } from 'vitest';
import { SimulatedClock as Clock, createActor, fromCallback, fromPromise, type SimulatedClock } from 'xstate';
import {
  INITIAL_SILENCE_MAX_MS,
  type Listed,
  listWatchMachine,
  QUIET_MAX_MS,
  SILENCE_MAX_MS,
  type WatchInput,
} from '../../../src/machines/api/listWatchMachine.ts';
import { decodeWatchLine, isOlder, type KubeFailure, type KubeObject, statusFailure } from '../../../src/machines/kube/request.ts';
import { provided } from '../../../src/machines/xstate/provide.ts';

const object = (name: string, o: { uid?: string; rv?: string } = {}): KubeObject => ({
  metadata: { name, namespace: 'd', uid: o.uid ?? `uid-${name}`, resourceVersion: o.rv ?? '1' },
});
const gone: KubeFailure = { code: 410, reason: 'Expired', message: 'too old', outcome: 'failed' };
const reset: KubeFailure = { code: 0, reason: 'ECONNRESET', message: 'reset', outcome: 'failed' };

async function world(lists: Listed[], o: { streams?: boolean } = {}) {
  const clock: SimulatedClock = new Clock();
  const asked: { fromCache: boolean }[] = [];
  const watched: string[] = [];
  const inputs: WatchInput[] = [];
  const delivered: { items: string[]; changed: string[] }[] = [];
  let send = (_: object): void => {};
  const machine = provided(
    listWatchMachine,
    {
      actors: {
        list: fromPromise(async ({ input }: { input: { fromCache: boolean } }) => {
          asked.push(input);
          return lists.shift() ?? { ok: false as const, failure: reset };
        }),
        watch: fromCallback<{ type: 'none' }, WatchInput>(({ input, sendBack }) => {
          watched.push(input.resourceVersion);
          inputs.push(input);
          send = (e) => sendBack(e as never);
        }),
      },
      actions: {
        deliver: (_, context) =>
          void delivered.push({
            items: [...context.items.values()].map((o) => `${o.metadata.name}=${o.metadata.uid}`),
            changed: context.changed.map((o) => `${o.metadata.name}=${o.metadata.uid}`),
          }),
      },
    },
    () => ({ wallMs: 0, monoMs: clock.now(), random: 0 }),
  );
  const actor = createActor(machine, { clock, input: { what: 'pods', streams: o.streams === true, quietMs: QUIET_MAX_MS } });
  const settle = () => new Promise<void>((wake) => setImmediate(wake));
  actor.start();
  await settle();
  return { clock, asked, watched, inputs, delivered, settle, actor, send: (e: object) => send(e) };
}
const listed = (items: KubeObject[], resourceVersion: string): Listed => ({ ok: true, items, resourceVersion });

describe('list and watch', () => {
  it('lists once, follows from that version, and opens the next watch where the last one ended', async () => {
    const w = await world([listed([object('a')], '10')]);
    expect(w.watched).toEqual(['10']);
    w.send({ type: 'watch.opened' });
    w.send({ type: 'watch.events', events: [{ type: 'ADDED', object: object('b', { rv: '11' }) }] });
    w.send({ type: 'watch.events', events: [{ type: 'BOOKMARK', object: { metadata: { name: '', resourceVersion: '15' } } }] });
    w.send({ type: 'watch.ended', failure: null });
    expect(w.watched).toEqual(['10', '15']);
    w.send({ type: 'watch.events', events: [{ type: 'DELETED', object: object('a', { rv: '16' }) }] });
    expect(w.delivered.map((d) => d.items)).toEqual([['a=uid-a'], ['a=uid-a', 'b=uid-b'], ['a=uid-a', 'b=uid-b'], ['b=uid-b']]);
    expect(w.asked).toEqual([{ fromCache: true }]);
  });
  it('names who lost a name to another UID', async () => {
    const w = await world([listed([object('a', { uid: 'one' })], '10')]);
    w.send({ type: 'watch.events', events: [{ type: 'ADDED', object: object('a', { uid: 'two', rv: '11' }) }] });
    expect(w.delivered.at(-1)).toEqual({ items: ['a=two'], changed: ['a=one', 'a=two'] });
  });
  it('lists anew and not from a cache when history has expired, and tells what went meanwhile', async () => {
    const w = await world([listed([object('a'), object('b')], '10'), listed([object('b')], '30')]);
    w.send({ type: 'watch.ended', failure: gone });
    await w.settle();
    expect(w.asked).toEqual([{ fromCache: true }, { fromCache: false }]);
    expect(w.delivered.at(-1)).toEqual({ items: ['b=uid-b'], changed: ['a=uid-a'] });
    expect(w.watched).toEqual(['10', '30']);
  });
  it('asks for pages, and not for what the cache has, where that was more than one answer may hold', async () => {
    const large: KubeFailure = { code: 0, reason: 'EFBIG', message: 'the answer is larger than 67108864 bytes', outcome: 'failed' };
    const w = await world([{ ok: false, failure: large }, listed([object('a')], '30')]);
    w.clock.increment(800);
    await w.settle();
    expect(w.asked).toEqual([{ fromCache: true }, { fromCache: false }]);
    expect(w.watched).toEqual(['30']);
  });
  it('does not spin when history expires at once again', async () => {
    const w = await world([listed([], '10'), listed([], '11'), listed([], '12')]);
    w.send({ type: 'watch.ended', failure: gone });
    await w.settle();
    w.send({ type: 'watch.ended', failure: gone });
    await w.settle();
    expect(w.actor.getSnapshot().value).toBe('backingOff');
    expect(w.asked).toHaveLength(2);
  });
  it('waits 0.8, 1.6, 3.2 s ... between failures, keeps what it knows, and goes on with the watch', async () => {
    const w = await world([listed([object('a')], '10')]);
    for (const ms of [800, 1_600, 3_200]) {
      w.send({ type: 'watch.ended', failure: reset });
      w.clock.increment(ms - 1);
      expect(w.actor.getSnapshot().value).toBe('backingOff');
      w.clock.increment(1);
      expect(w.actor.getSnapshot().matches('watching')).toBe(true);
    }
    expect(w.watched).toEqual(['10', '10', '10', '10']);
    expect(w.actor.getSnapshot().context.items.size).toBe(1);
  });
  it('waits as long as the server asks, and not at all when it is found again', async () => {
    const w = await world([listed([], '10')]);
    w.send({
      type: 'watch.ended',
      failure: { code: 429, reason: 'TooManyRequests', message: '', outcome: 'failed', retryAfterMs: 20_000 },
    });
    w.clock.increment(19_000);
    expect(w.actor.getSnapshot().value).toBe('backingOff');
    w.actor.send({ type: 'api.found' });
    expect(w.actor.getSnapshot().matches('watching')).toBe(true);
  });
  it('asks a server that is back, and refuses once more, again soon, however long it was away', async () => {
    const w = await world([listed([], '10')]);
    for (let i = 0; i < 8; i++) {
      w.send({ type: 'watch.ended', failure: reset });
      w.clock.increment(60_000);
    }
    w.send({ type: 'watch.ended', failure: reset });
    w.actor.send({ type: 'api.found' });
    const asked = w.watched.length;
    w.send({ type: 'watch.ended', failure: { code: 403, reason: 'Forbidden', message: 'not yet', outcome: 'failed' } });
    expect(w.actor.getSnapshot().value).toBe('backingOff');
    w.clock.increment(800);
    expect(w.watched.length).toBe(asked + 1);
  });
  const mark = { type: 'watch.events', events: [{ type: 'BOOKMARK', object: { metadata: { name: '', resourceVersion: '12' } } }] };
  it.each([
    ['has said something', [{ type: 'watch.opened' }, mark], ['10', '9']],
    ['was opened after a failure', [{ type: 'watch.ended', failure: reset }, { type: 'watch.opened' }], ['10', '10', '9']],
  ])('takes a watch for dead that %s and is silent then, and asks for all again', async (_, said, watched) => {
    const w = await world([listed([object('a')], '10'), listed([], '9')]);
    for (const e of said) {
      w.send(e);
      w.clock.increment(1_000);
    }
    w.clock.increment(SILENCE_MAX_MS - 1_001);
    expect(w.watched).toHaveLength(watched.length - 1);
    w.clock.increment(1);
    await w.settle();
    expect(w.delivered.at(-1)?.items).toEqual([]);
    expect(w.watched).toEqual(watched);
  });
  it('lets a watch be quiet from its beginning, as it is where nothing changes, and opens it anew after a while', async () => {
    const w = await world([listed([object('a')], '10')]);
    w.send({ type: 'watch.opened' });
    w.clock.increment(SILENCE_MAX_MS);
    w.clock.increment(QUIET_MAX_MS - SILENCE_MAX_MS - 1);
    expect(w.actor.getSnapshot().value).toEqual({ watching: 'quiet' });
    expect(w.watched).toEqual(['10']);
    w.clock.increment(1);
    expect([w.watched, w.asked.length]).toEqual([['10', '10'], 1]);
    w.send({ type: 'watch.opened' });
    w.clock.increment(SILENCE_MAX_MS);
    w.send(mark);
    w.clock.increment(SILENCE_MAX_MS);
    expect(w.asked).toHaveLength(2);
  });
  it('counts a watch that ends at once and unheard as a failure', async () => {
    const w = await world([listed([], '10')]);
    w.send({ type: 'watch.ended', failure: null });
    expect(w.actor.getSnapshot().value).toBe('backingOff');
  });
  it('believes the newest state that the server has, also where that is older: its etcd was restored from a backup', async () => {
    const w = await world([listed([object('a', { rv: '20' })], '20'), listed([], '7')]);
    w.send({ type: 'watch.ended', failure: gone });
    await w.settle();
    expect(w.asked).toEqual([{ fromCache: true }, { fromCache: false }]);
    expect(w.actor.getSnapshot().context.items.size).toBe(0);
    expect(w.watched).toEqual(['20', '7']);
  });
});

const refused: KubeFailure = { code: 422, reason: 'Invalid', message: 'sendInitialEvents is forbidden', outcome: 'failed' };
const added = (...objects: KubeObject[]) => ({
  type: 'watch.events',
  events: objects.map((object) => ({ type: 'ADDED' as const, object })),
});
const endAt = (resourceVersion: string) => ({
  type: 'watch.events',
  events: [{ type: 'BOOKMARK' as const, object: { metadata: { name: '', resourceVersion } }, initialEventsEnd: true as const }],
});

describe('initial events by a watch', () => {
  const streamed = (lists: Listed[] = []) => world(lists, { streams: true });
  const streaming = { watching: 'streaming initial events' };

  it('delivers nothing before their end, then all at once, and follows the same watch', async () => {
    const w = await streamed();
    expect(w.inputs).toEqual([{ resourceVersion: '', initial: true }]);
    w.send({ type: 'watch.opened' });
    expect(w.actor.getSnapshot().value).toEqual(streaming);
    // In no order of versions.
    w.send(added(object('b', { rv: '9' }), object('a', { rv: '3' })));
    w.send({ type: 'watch.events', events: [{ type: 'DELETED', object: object('b', { rv: '11' }) }] });
    w.send(added(object('c', { rv: '5' })));
    expect(w.delivered).toEqual([]);
    w.send(endAt('12'));
    expect(w.delivered).toEqual([{ items: ['a=uid-a', 'c=uid-c'], changed: ['a=uid-a', 'c=uid-c'] }]);
    expect(w.actor.getSnapshot().value).toEqual({ watching: 'listening' });
    w.send({ type: 'watch.events', events: [{ type: 'DELETED', object: object('a', { rv: '13' }) }] });
    w.send({ type: 'watch.ended', failure: null });
    expect(w.delivered.at(-1)?.items).toEqual(['c=uid-c']);
    expect(w.inputs.at(-1)).toEqual({ resourceVersion: '13', initial: false });
    expect(w.asked).toEqual([]);
  });
  it('delivers an empty node once, unheard, as a first list', async () => {
    const w = await streamed();
    w.send(endAt('4'));
    expect(w.delivered).toEqual([{ items: [], changed: [] }]);
    expect(w.actor.getSnapshot().context).toMatchObject({ heard: false, resourceVersion: '4', arriving: null });
  });
  it('may be followed by nothing, as a list may', async () => {
    const w = await streamed();
    w.send({ type: 'watch.opened' });
    w.send(added(object('a')));
    w.send(endAt('4'));
    w.clock.increment(SILENCE_MAX_MS);
    expect([w.actor.getSnapshot().value, w.inputs.length]).toEqual([{ watching: 'quiet' }, 1]);
  });
  it('takes a line that comes twice once', async () => {
    const w = await streamed();
    w.send(added(object('a'), object('a')));
    w.send(added(object('a')));
    w.send(endAt('4'));
    expect(w.delivered).toEqual([{ items: ['a=uid-a'], changed: ['a=uid-a'] }]);
  });
  it('forgets half a stream, however it broke off, and keeps what it knew', async () => {
    const w = await streamed([listed([object('a')], '40')]);
    w.send(added(object('a'), object('b')));
    w.send(endAt('10'));
    w.send({ type: 'watch.ended', failure: gone });
    // Not older than anything: the version that was known has expired.
    expect(w.inputs.at(-1)).toEqual({ resourceVersion: '', initial: true });
    w.send(added(object('b')));
    w.send({ type: 'watch.ended', failure: null });
    expect(w.actor.getSnapshot().value).toBe('backingOff');
    expect([...w.actor.getSnapshot().context.items.keys()]).toEqual(['d/a', 'd/b']);
    w.clock.increment(5_000);
    expect(w.inputs.at(-1)?.initial).toBe(true);
    w.send(added(object('c')));
    w.send(endAt('30'));
    expect(w.delivered.at(-1)?.items).toEqual(['c=uid-c']);
    expect(w.asked).toEqual([]);
  });
  it('lists where streams broke off twice in a row, and streams again after that', async () => {
    const w = await streamed([listed([object('a')], '10')]);
    for (let i = 0; i < 2; i++) {
      w.send(added(object('a')));
      w.send({ type: 'watch.ended', failure: reset });
      w.clock.increment(10_000);
    }
    await w.settle();
    expect(w.asked).toEqual([{ fromCache: true }]);
    expect(w.inputs.at(-1)).toEqual({ resourceVersion: '10', initial: false });
    w.send({ type: 'watch.ended', failure: gone });
    w.clock.increment(10_000);
    expect(w.inputs.at(-1)).toEqual({ resourceVersion: '', initial: true });
  });
  it('asks for the newest state where the server has never had its version', async () => {
    const w = await streamed();
    w.send(added(object('a'), object('b')));
    w.send(endAt('20'));
    const status = {
      ...{ kind: 'Status', code: 504, reason: 'Timeout', message: 'Timeout: Too large resource version: 20, current: 9' },
      details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }], retryAfterSeconds: 1 },
    };
    const told = decodeWatchLine(JSON.stringify({ type: 'ERROR', object: status }));
    if (told.ok) throw new Error('that is no event');
    expect(told.failure).toMatchObject({ code: 504, reason: 'ResourceVersionTooLarge', retryAfterMs: 1_000 });
    w.send({ type: 'watch.ended', failure: told.failure });
    expect(w.inputs.at(-1)).toEqual({ resourceVersion: '', initial: true });
    w.send(added(object('a')));
    w.send(endAt('9'));
    expect(w.delivered.at(-1)).toMatchObject({ items: ['a=uid-a'] });
    expect(w.actor.getSnapshot().context.resourceVersion).toBe('9');
  });
  it('does not spin when history expires at once after each stream', async () => {
    const w = await streamed();
    w.send(endAt('4'));
    w.send({ type: 'watch.ended', failure: gone });
    w.send(endAt('5'));
    w.send({ type: 'watch.ended', failure: gone });
    expect(w.actor.getSnapshot().value).toBe('backingOff');
    expect(w.inputs).toHaveLength(2);
  });
  it('lists at once where the server refuses, and does not ask it again before a list has come', async () => {
    const w = await streamed([{ ok: false, failure: reset }, listed([object('a')], '10')]);
    w.send({ type: 'watch.ended', failure: refused });
    await w.settle();
    expect(w.actor.getSnapshot().value).toBe('backingOff');
    w.clock.increment(10_000);
    await w.settle();
    expect(w.asked).toHaveLength(2);
    expect(w.inputs).toEqual([
      { resourceVersion: '', initial: true },
      { resourceVersion: '10', initial: false },
    ]);
    expect(w.delivered.map((d) => d.items)).toEqual([['a=uid-a']]);
  });
  it.each([
    ['without an answer', reset],
    ['unauthorized', { ...refused, code: 401 }],
    ['with too many requests', { ...refused, code: 429 }],
  ])('backs off and streams again after a first failure %s', async (_, failure) => {
    const w = await streamed();
    w.send({ type: 'watch.ended', failure });
    expect(w.actor.getSnapshot().value).toBe('backingOff');
    w.clock.increment(5_000);
    expect(w.inputs).toHaveLength(2);
    expect(w.asked).toEqual([]);
  });
  it('lists where the end does not come, though ordinary bookmarks do', async () => {
    const w = await streamed([listed([object('a')], '10')]);
    w.send({ type: 'watch.opened' });
    w.send(added(object('a')));
    w.clock.increment(INITIAL_SILENCE_MAX_MS - 1);
    w.send({ type: 'watch.events', events: [{ type: 'BOOKMARK', object: { metadata: { name: '', resourceVersion: '7' } } }] });
    w.clock.increment(INITIAL_SILENCE_MAX_MS - 1);
    expect(w.actor.getSnapshot().value).toEqual(streaming);
    w.clock.increment(1);
    await w.settle();
    expect(w.asked).toEqual([{ fromCache: true }]);
    expect(w.delivered.map((d) => d.items)).toEqual([['a=uid-a']]);
  });
  it('begins anew when the server is found again in the middle', async () => {
    const w = await streamed();
    w.send(added(object('a')));
    w.actor.send({ type: 'api.found' });
    w.send(added(object('b')));
    w.send(endAt('9'));
    expect(w.delivered.at(-1)?.items).toEqual(['b=uid-b']);
  });
  it('asks for all not older than what is known when a watch said nothing more for too long', async () => {
    const w = await streamed();
    w.send(added(object('a')));
    w.send(endAt('19'));
    w.send(added(object('a', { rv: '20' })));
    w.clock.increment(SILENCE_MAX_MS);
    expect(w.inputs.slice(1)).toEqual([{ resourceVersion: '20', initial: true }]);
    expect(w.actor.getSnapshot().context.items.size).toBe(1);
  });
  it('believes an end that is older than what was seen', async () => {
    const w = await streamed();
    w.send(added(object('a')));
    w.send(endAt('20'));
    w.send({ type: 'watch.ended', failure: gone });
    expect(w.inputs.at(-1)).toEqual({ resourceVersion: '', initial: true });
    w.send(endAt('7'));
    expect(w.delivered.at(-1)).toEqual({ items: [], changed: ['a=uid-a'] });
  });
});

describe('a line of a watch', () => {
  it('is an event, a bookmark, or says what is wrong', () => {
    expect(decodeWatchLine('{"type":"ADDED","object":{"metadata":{"name":"a"}}}')).toMatchObject({ ok: true, event: { type: 'ADDED' } });
    expect(decodeWatchLine('{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5"}}}')).toMatchObject({ ok: true });
    expect(
      decodeWatchLine(
        '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}',
      ),
    ).toMatchObject({ event: { initialEventsEnd: true } });
    expect(decodeWatchLine('{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"m"}}')).toMatchObject({
      ok: false,
      failure: { code: 410, reason: 'Expired' },
    });
    for (const line of ['{"type":"ADDED","object":{}}', '{"type":"ADDED","object":5}', '{"type":"BOOKMARK","object":{}}'])
      expect(decodeWatchLine(line), line).toEqual({ ok: true, event: null });
    for (const line of ['{"type":"ADD', '[]', '{"type":"NEW","object":{}}'])
      expect(decodeWatchLine(line), line).toMatchObject({ ok: false, failure: { reason: 'MalformedWatchEvent' } });
  });
});

describe('a failure', () => {
  it('takes its words from the Status, and says when a gateway does not know', () => {
    expect(
      statusFailure({ kind: 'Status', code: 429, reason: 'TooManyRequests', message: 'm', details: { retryAfterSeconds: 2 } }, 429),
    ).toEqual({
      code: 429,
      reason: 'TooManyRequests',
      message: 'm',
      outcome: 'failed',
      retryAfterMs: 2_000,
    });
    expect(statusFailure('<html>', 504)).toMatchObject({ code: 504, outcome: 'unknown' });
    expect(isOlder('9', '10')).toBe(true);
    expect(isOlder('x', '10')).toBe(false);
  });
});
