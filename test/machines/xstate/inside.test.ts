/** One test for each inside of xstate that `src/machines/xstate` uses: a release that changes it fails here. */
import { describe, expect, it, vi } from 'vitest';
import {
  type AnyStateMachine,
  assign,
  createActor,
  fromCallback,
  fromPromise,
  type InspectionEvent,
  raise,
  StateMachine,
  setup,
} from 'xstate';
import { rememberNamedEventsAlone } from '../../../src/machines/xstate/candidates.ts';
import { reading } from '../../../src/machines/xstate/facts.ts';
import { activeStates, childrenOf, invokedAs, logicOf, noting, parentOf, takenIn } from '../../../src/machines/xstate/inside.ts';
import { provided, unprovided, unprovidedAction } from '../../../src/machines/xstate/provide.ts';
import { supervisable } from '../../../src/machines/xstate/supervisable.ts';

const never = fromPromise<void>(() => new Promise(() => {}));
const machine = setup({
  types: { context: {} as { n: number }, events: {} as { type: 'go' } | { type: 'fall' } | { type: 'hint' } },
  actors: { wait: unprovided<void>(), follow: fromCallback(() => {}) },
  actions: { say: unprovidedAction() },
}).createMachine({
  id: 'm',
  context: { n: 0 },
  initial: 'a',
  states: {
    a: { meta: { reason: 'A' }, on: { go: { target: 'b.c', actions: 'say' } } },
    b: {
      initial: 'c',
      invoke: { src: 'wait' },
      states: { c: { meta: { reason: 'C' }, invoke: { id: 'tail', src: 'follow' } } },
      on: {
        fall: {
          actions: assign(() => {
            throw new Error('fallen');
          }),
        },
        hint: { actions: raise({ type: 'fall' }) },
      },
    },
  },
});
const given = { actors: { wait: never }, actions: { say: () => {} } };

describe('an actor', () => {
  it('keeps its active states in _nodes of its snapshot, with path and meta', () => {
    const actor = createActor(provided(machine, given)).start();
    actor.send({ type: 'go' });
    expect(activeStates(actor.getSnapshot()).map(({ id, path, meta }) => [id, path, meta?.reason])).toEqual([
      ['m', [], undefined],
      ['m.b', ['b'], undefined],
      ['m.b.c', ['b', 'c'], 'C'],
    ]);
    expect(activeStates(createActor(never).getSnapshot())).toEqual([]);
  });

  it('knows its logic, its parent and its children', () => {
    const wired = provided(machine, given);
    const actor = createActor(wired).start();
    actor.send({ type: 'go' });
    expect(logicOf(actor)).toBe(wired);
    const { tail } = childrenOf(actor);
    expect(tail).toBeDefined();
    expect(tail === undefined ? null : parentOf(tail)).toBe(actor);
    expect(parentOf(actor)).toBeUndefined();
  });

  it('finds the source of an invocation by the id that xstate gave it, in idMap', () => {
    const actor = createActor(provided(machine, given)).start();
    actor.send({ type: 'go' });
    const [id = ''] = Object.keys(childrenOf(actor)).filter((name) => name !== 'tail');
    expect(id).toBe('0.m.b');
    expect(invokedAs(actor, id)).toBe('wait');
    expect(invokedAs(actor, '1.m.b')).toBeUndefined();
  });

  it('tells an inspector which transitions of the definition it took, in _transitions', () => {
    const taken: unknown[] = [];
    const wired = provided(machine, given);
    const actor = createActor(wired, { inspect: (e: InspectionEvent) => taken.push(...takenIn(e)) }).start();
    taken.length = 0;
    actor.send({ type: 'go' });
    expect(taken).toHaveLength(1);
    expect(taken[0]).toBe((wired as AnyStateMachine).root.states.a?.transitions.get('go')?.[0]);
  });
});

describe('a machine', () => {
  it('binds these methods to itself when it is made, and keeps what it was given in implementations', () => {
    const own = Object.keys(machine).filter((key) => typeof Reflect.get(machine, key) === 'function');
    expect(own.sort()).toEqual(['getInitialSnapshot', 'getPersistedSnapshot', 'restoreSnapshot', 'start', 'transition']);
    const wired = provided(machine, given);
    expect(wired).toBeInstanceOf(StateMachine);
    expect(wired.implementations.actors).toMatchObject(given.actors);
    expect(machine.implementations.actors).not.toMatchObject(given.actors);
    // The states are shared: a copy of them for each pod would be the larger part of its memory.
    expect(wired.root).toBe(machine.root);
  });

  it('takes every step through transition and its first through getInitialSnapshot, also as a child', () => {
    const read: string[] = [];
    const types: string[] = [];
    const child = reading(provided(machine, given), (event) => {
      read.push((event as { type: string } | undefined)?.type ?? 'first');
      return {};
    });
    const parent = setup({ actors: { child } }).createMachine({ invoke: { id: 'child', src: 'child' } });
    const actor = createActor(noting(provided(parent, {}), (type) => types.push(type))).start();
    childrenOf(actor).child?.send({ type: 'go' });
    expect(read).toEqual(['first', 'go']);
    actor.send({ type: 'any' });
    expect(types).toEqual(['any']);
  });
});

describe('a system', () => {
  it('registers, unregisters and relays through three functions, and leaves the children of an actor that throws', () => {
    let disposed = 0;
    const follow = fromCallback(() => () => {
      disposed += 1;
    });
    const actor = createActor(provided(machine, { ...given, actors: { ...given.actors, follow } }));
    const alive = supervisable(actor, (step) => step());
    actor.subscribe({ error: () => {} });
    actor.start();
    actor.send({ type: 'go' });
    expect(alive.count()).toBe(3);
    actor.send({ type: 'hint' });
    expect(actor.getSnapshot().status).toBe('error');
    expect([alive.count(), disposed]).toEqual([0, 1]);
  });

  it('relays what a promise that settled leads to', async () => {
    let steps = 0;
    const actor = createActor(provided(machine, { ...given, actors: { wait: fromPromise(async () => {}) } }));
    supervisable(actor, (step) => {
      steps += 1;
      step();
    });
    actor.start();
    actor.send({ type: 'go' });
    const before = steps;
    await new Promise((resolve) => setImmediate(resolve));
    // What the promise tells its own actor, and what that tells its parent.
    expect(steps).toBe(before + 2);
  });

  it('runs the dispose function of a callback that threw on xstate.stop alone', () => {
    let disposed = 0;
    const falls = fromCallback<{ type: 'x' }>(({ receive }) => {
      receive(() => {
        throw new Error('fallen');
      });
      return () => {
        disposed += 1;
      };
    });
    const actor = createActor(falls);
    supervisable(actor, (step) => step());
    actor.subscribe({ error: () => {} });
    actor.start();
    actor.send({ type: 'x' });
    expect(disposed).toBe(1);
  });

  it('that has none of them is refused', () => {
    expect(() => supervisable({ system: {} } as never, (step) => step())).toThrow('this version of xstate');
  });
});

it('a state remembers what it does about the types that it names, and about no other', () => {
  rememberNamedEventsAlone();
  rememberNamedEventsAlone();
  const child = fromPromise<void>(() => Promise.resolve());
  const many = setup({
    types: { context: {} as { ended: number; other: number }, events: {} as { type: string } },
    actors: { child },
  }).createMachine({
    context: { ended: 0, other: 0 },
    initial: 'a',
    states: { a: {}, b: {} },
    on: {
      'xstate.done.actor.*': { actions: assign(({ context }) => ({ ended: context.ended + 1 })) },
      named: '.b',
    },
  });
  const { a } = many.states;
  const looks = [many.root.transitions, a?.transitions ?? new Map()].map((transitions) => vi.spyOn(transitions, 'keys'));
  const actor = createActor(many).start();
  for (let i = 0; i < 5; i++) actor.send({ type: 'xstate.done.actor.default/web' });
  actor.send({ type: 'unheard of' });
  expect(actor.getSnapshot()).toMatchObject({ context: { ended: 5 }, value: 'a' });
  // It is found out anew each time, and where no name has an end of its own not even that.
  expect(looks.map((look) => look.mock.calls.length)).toEqual([7, 1]);
  actor.send({ type: 'named' });
  expect(actor.getSnapshot().value).toBe('b');
});
