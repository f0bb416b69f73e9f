/** References of pods to objects, the chart of one object, and the age of tokens. */
import { describe, expect, it } from 'vitest';
import { type AnyActorLogic, createActor, fromCallback, fromPromise, setup } from 'xstate';
import { type ObjectIo, objectLogic } from '../../../src/actors/services/objects/objects.ts';
import { lookout } from '../../../src/actors/supervision/looks/lookout.ts';
import { type KubeObject, kubePath } from '../../../src/machines/kube/request.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import type { ObjectRef } from '../../../src/machines/pod/volumes/references.ts';
import type { PodsView } from '../../../src/machines/pods/manager/messages.ts';
import type { WorkerSummary } from '../../../src/machines/pods/workers/messages.ts';
import {
  type Fetched,
  type ObjectReply,
  type ObjectStrategy,
  objectMachine,
  type Question,
} from '../../../src/machines/services/objects/objectMachine.ts';
import { OBJECT_WATCHES_MAX, objectsMachine, retake } from '../../../src/machines/services/objects/objectsMachine.ts';
import { provided } from '../../../src/machines/xstate/provide.ts';
import { virtualTime } from '../../integration/virtualTime.ts';
import { container, pod } from '../pods/fixtures.ts';

function naming(uid: string, ...secrets: string[]): Pod {
  const envFrom = secrets.map((name) => ({ secretRef: { name } }));
  return pod({ containers: [container('main', { envFrom })] }, { metadata: { uid } });
}
const EMPTY = { entries: new Map(), pods: new Map(), lastId: 0, strategy: 'Watch' as const };

describe('references of pods', () => {
  it('that stay over an update of the pod keep their watch (trap 66)', () => {
    const first = retake(EMPTY, { pods: [naming('a', 's', 't')], gone: [] });
    expect(first.added.map((e) => e.ref.name)).toEqual(['s', 't']);
    const second = retake({ ...EMPTY, ...first }, { pods: [naming('a', 's', 'u')], gone: [] });
    expect(second.added.map((e) => e.ref.name)).toEqual(['u']);
    expect(second.dropped).toEqual(['secret ns/t#2']);
    expect(second.renewed).toEqual([]);
  });

  it('are counted: the last pod that goes takes the object along, and a new pod has it looked at anew', () => {
    const first = retake(EMPTY, { pods: [naming('a', 's')], gone: [] });
    const second = retake({ ...EMPTY, ...first }, { pods: [naming('b', 's')], gone: ['a'] });
    expect([second.added, second.renewed, second.dropped]).toEqual([[], ['secret ns/s#1'], []]);
    const third = retake({ ...EMPTY, ...second }, { pods: [], gone: ['b', 'never-seen'] });
    expect(third.dropped).toEqual(['secret ns/s#1']);
    expect([third.entries.size, third.pods.size]).toEqual([0, 0]);
  });

  it('beyond the limit of watches are asked for instead, and a watch that ended makes room', () => {
    const many = Array.from({ length: OBJECT_WATCHES_MAX + 3 }, (_, i) => `s${i}`);
    const first = retake(EMPTY, { pods: [naming('a', ...many)], gone: [] });
    expect(first.added.filter((e) => e.watched)).toHaveLength(OBJECT_WATCHES_MAX);
    const second = retake({ ...EMPTY, ...first }, { pods: [naming('a', ...many.slice(1))], gone: [] });
    const third = retake({ ...EMPTY, ...second }, { pods: [naming('b', 'other', 'another')], gone: [] });
    expect(third.added.map((e) => e.watched)).toEqual([true, false]);
  });
});

const REF: ObjectRef = { kind: 'secret', namespace: 'ns', name: 's' };
const object = (version: string, value = `v${version}`, more: object = {}): KubeObject => ({
  metadata: { name: 's', namespace: 'ns', uid: 'u', resourceVersion: version },
  data: { k: btoa(value) },
  ...more,
});

/** One object; `answers` are given to its questions in order. */
function bench(strategy: ObjectStrategy, answers: Fetched[] = []) {
  const time = virtualTime();
  let seen: (o: KubeObject | null) => void = () => {};
  const fetches: boolean[] = [];
  const told: string[] = [];
  let watched = 0;
  const logic: AnyActorLogic = fromCallback(() => {
    watched += 1;
    return () => {
      watched -= 1;
    };
  });
  const io: ObjectIo = {
    watch: (_, tell) => {
      seen = tell;
      return { logic, input: undefined };
    },
    fetch: async (_, { fromCache }) => {
      fetches.push(fromCache);
      return answers.shift() ?? { ok: false, failure: { code: 500, reason: 'InternalError', message: 'broken', outcome: 'failed' } };
    },
  };
  let changes = 0;
  let asks = 0;
  const heard = new Map<number, string>();
  const reply = ({ ask, result: r }: ObjectReply): void => {
    const answer =
      r.kind === 'found' ? new TextDecoder().decode(r.value.data.k as Uint8Array) : `${r.kind}: ${'message' in r ? r.message : ''}`;
    told.push(answer);
    heard.set(ask, answer);
  };
  // Changes are told to a parent.
  const parent = setup({ actors: { object: objectLogic(io, reply, () => ({ ttlMs: 60_000 })) } }).createMachine({
    invoke: { id: 'object', src: 'object', input: { ref: REF, strategy } },
    on: {
      'object.changed': {
        actions: () => {
          changes += 1;
        },
      },
    },
  });
  const root = createActor(parent, {
    clock: time.clock,
  });
  root.start();
  const actor = root.getSnapshot().children.object;
  if (actor === undefined) throw new Error('no chart');
  return {
    time,
    fetches,
    see: (o: KubeObject | null) => seen(o),
    watched: () => watched,
    changes: () => changes,
    renew: () => actor.send({ type: 'object.renew' }),
    /** What the next asker is told; asked now, read after `ms`. */
    async ask(ms = 0): Promise<string> {
      asks += 1;
      const ask = asks;
      actor.send({ type: 'object.ask', ask });
      await time.advance(ms);
      return heard.get(ask) ?? 'nothing';
    },
    told,
  };
}
const found = (o: KubeObject): Fetched => ({ ok: true, object: o });

describe('an object that is watched', () => {
  it('with data that cannot be decoded is an error that shows none of it', async () => {
    const b = bench('Watch');
    b.see({ ...object('5'), data: { k: 'hunter2!' } });
    expect(await b.ask()).toBe('failed: secret "s" holds data that is not base64 text');
  });
});

describe('an object that is kept for a while', () => {
  it('is asked for once more where that pod came while the question was under way', async () => {
    const b = bench('Cache', [found(object('5')), found(object('6'))]);
    const first = b.ask();
    b.renew();
    await b.time.advance(1);
    await first;
    expect(await b.ask(1)).toBe('v6');
    expect(b.told).toEqual(['v5', 'v6']);
    expect(b.fetches).toEqual([false, false]);
  });
});

it('a name with half of a surrogate pair is one that is not there', () => {
  expect(kubePath.secret('ns', '\ud800')).toBe('/api/v1/namespaces/ns/secrets/%EF%BF%BD');
});

describe('the objects of a node', () => {
  /** A pod that asks for its object; `worker`: what the pod manager shows of its worker meanwhile. */
  function asking(worker: WorkerSummary | null) {
    const asker = naming('a', 's');
    const records = new Map([
      ['a', { pod: asker, source: 'api', state: { is: 'running', listed: null }, seenAtMs: 0, worker }],
    ]) as PodsView['records'];
    const time = virtualTime();
    const kept: number[] = [];
    const told: ObjectReply[] = [];
    const fetch = fromPromise<Fetched, Question>(async () => found(object('5')));
    const child = provided(objectMachine, { actors: { fetch }, actions: { reply: (_, r) => told.push(r), follow: () => {} } }, () => ({
      ttlMs: 60_000,
    }));
    const actions = {
      hold: (_: unknown, { ask }: { ask: number }) => kept.push(ask),
      reply: (_: unknown, r: ObjectReply) => told.push(r),
      markPods: () => {},
    };
    const looks = lookout(time.clock, () => true);
    const logic = provided(objectsMachine, { actors: { object: child, lookout: looks }, actions }, () => ({
      pods: { records, sourcesReady: true },
    }));
    const { clock } = time;
    const actor = createActor(logic, { clock, input: { strategy: 'Get' } }).start();
    actor.send({ type: 'object.get', pod: asker, ref: REF, replyTo: {} as never });
    return { time, told, named: () => actor.getSnapshot().context.entries.size };
  }
  const summary = (phase: WorkerSummary['phase']) => ({
    phase,
    state: '',
    reason: '',
    message: '',
    sinceMs: 0,
    containers: [],
    causes: [],
  });

  it('answers a pod whose worker nobody has heard of yet, and keeps what it names', async () => {
    const b = asking(null);
    await b.time.advance(10_000);
    expect(b.told.map(({ result }) => result.kind)).toEqual(['found']);
    expect(b.named()).toBe(1);
  });

  it('answers a pod that is over by now, and drops what it named afterwards', async () => {
    const b = asking(summary('terminated'));
    await b.time.advance(0);
    expect(b.told.map(({ result }) => result.kind)).toEqual(['found']);
    expect(b.named()).toBe(1);
    await b.time.advance(2_001);
    expect(b.named()).toBe(0);
  });
});
