/** Wiring a machine: its facts, its effects. The lines that must not compile are held by the type check. */
import { describe, expect, it } from 'vitest';
import { type AnyActorLogic, assign, createActor, fromPromise, initialTransition, setup as plain, raise, toPromise } from 'xstate';
import { readingOf, withFacts } from '../../../src/machines/xstate/facts.ts';
import { noting } from '../../../src/machines/xstate/inside.ts';
import {
  type Own,
  provided,
  providedForMany,
  unprovided,
  unprovidedAction,
  unprovidedCallback,
} from '../../../src/machines/xstate/provide.ts';
import { type Ready, setupWith } from '../../../src/machines/xstate/setup.ts';

const { setup, facts } = setupWith<{ readonly ms: number }>();

const effects = setup({
  types: {
    context: {} as { beganMs: number; seen: readonly number[] },
    events: {} as { type: 'look' } | { type: 'again' } | { type: 'scan' },
  },
  actors: { scan: unprovided<readonly string[]>(), follow: unprovidedCallback<{ type: 'none' }>() },
  actions: { say: unprovidedAction<{ text: string }>() },
});
const machine = effects
  .extend({
    actions: {
      note: assign({ seen: ({ context }) => [...context.seen, facts().ms] }),
      tell: effects.enqueueActions(({ context, enqueue }) => {
        enqueue({ type: 'say', params: { text: `${context.seen.join()} at ${facts().ms}` } });
        // @ts-expect-error an effect that was not declared
        enqueue({ type: 'shout', params: { text: '' } });
      }),
    },
    guards: { late: () => facts().ms > 100 },
    delays: { wait: () => facts().ms },
  })
  .createMachine({
    id: 'wired',
    context: () => ({ beganMs: facts().ms, seen: [] }),
    initial: 'resting',
    states: {
      resting: {
        on: {
          look: { actions: ['note', raise({ type: 'again' })] },
          again: { guard: 'late', actions: ['note', { type: 'say', params: ({ context }) => ({ text: context.seen.join() }) }] },
          scan: 'scanning',
        },
      },
      scanning: {
        invoke: {
          src: 'scan',
          onDone: { target: 'over', actions: { type: 'say', params: ({ event }) => ({ text: event.output.join() }) } },
        },
      },
      over: { type: 'final' },
    },
  });
const quiet = { actions: { say: () => {} } };

describe('facts', () => {
  it('are read once a step, and events that the machine raises have those of the step', () => {
    let ms = 7;
    let reads = 0;
    const said: string[] = [];
    const read = () => {
      reads += 1;
      return { ms };
    };
    const actor = createActor(provided(machine, { actions: { say: (_, { text }) => said.push(text) } }, read)).start();
    expect(actor.getSnapshot().context.beganMs).toBe(7);
    actor.send({ type: 'look' });
    expect(actor.getSnapshot().context.seen).toEqual([7]);
    ms = 200;
    actor.send({ type: 'look' });
    expect(actor.getSnapshot().context.seen).toEqual([7, 200, 200]);
    expect(said).toEqual(['7,200,200']);
    expect(reads).toBe(3);
  });

  it('of a child that begins within a step are its own, and the step goes on with those before', () => {
    const seen: number[] = [];
    const child = provided(machine, quiet, () => ({ ms: 1 }));
    const parent = setup({ types: { context: {} as { after: number } }, actors: { child } }).createMachine({
      context: ({ spawn }) => {
        seen.push(facts().ms, spawn('child').getSnapshot().context.beganMs, facts().ms);
        return { after: 0 };
      },
    });
    createActor(provided(parent, {}, () => ({ ms: 2 }))).start();
    expect(seen).toEqual([2, 1, 2]);
  });

  it('are no one else’s: outside of a step asking for them is an error, also after a step that threw', () => {
    expect(() => facts()).toThrow('outside of a step');
    expect(() =>
      withFacts({ ms: 1 }, () => {
        throw new Error('thrown');
      }),
    ).toThrow('thrown');
    expect(() => facts()).toThrow('outside of a step');
  });

  it('are checked where a machine is wired', () => {
    const started = (logic: AnyActorLogic & Ready) => logic;
    started(provided(machine, quiet, () => ({ ms: 1 })));
    // @ts-expect-error it still needs facts
    started(machine);
    // @ts-expect-error a reader of something else
    provided(machine, quiet, () => ({ seconds: 1 }));
    // @ts-expect-error no reader
    provided(machine, quiet);
    // @ts-expect-error another output
    provided(machine, { actors: { scan: fromPromise<number>(async () => 1) } }, () => ({ ms: 1 }));
    const parent = plain({ actors: { child: machine } }).createMachine({ invoke: { src: 'child' } });
    provided(parent, { actors: { child: provided(machine, quiet, () => ({ ms: 1 })) } });
    // @ts-expect-error a child that still needs facts
    provided(parent, { actors: { child: machine } });
    // @ts-expect-error a reader where none is needed
    provided(parent, {}, () => ({ ms: 1 }));
    expect(readingOf(parent)).toBeNull();
  });
});

describe('effects', () => {
  it('are found by all actors of a machine that many share, each its own', async () => {
    const wire = providedForMany(machine, (io: Own<{ name: string; say(text: string): void }>) => ({
      actors: { scan: fromPromise(async (of) => [io(of).name]) },
      actions: { say: (of, { text }) => io(of).say(text) },
    }));
    const said: string[] = [];
    const start = (name: string) => createActor(wire({ name, say: (text) => said.push(`${name}: ${text}`) }, () => ({ ms: 200 }))).start();
    const actors = [start('a'), start('b')];
    for (const actor of actors) actor.send({ type: 'look' });
    for (const actor of actors) actor.send({ type: 'scan' });
    await Promise.all(actors.map(toPromise));
    expect(said).toEqual(['a: 200,200', 'b: 200,200', 'a: a', 'b: b']);
  });

  it('of each are noted apart, and the machine and its reader can be taken apart', () => {
    const wire = providedForMany(machine, (io: Own<{ say(text: string): void }>) => ({
      actors: { scan: fromPromise<readonly string[]>(async () => []) },
      actions: { say: (of, { text }) => io(of).say(text) },
    }));
    const said: string[] = [];
    const noted: string[] = [];
    const start = (name: string) => {
      const one = wire({ say: (text) => said.push(`${name}: ${text}`) }, () => ({ ms: 200 }));
      return createActor(noting(one, (type) => noted.push(`${name}: ${type}`))).start();
    };
    const [a, b] = [start('a'), start('b')];
    a.send({ type: 'look' });
    b.send({ type: 'look' });
    expect(noted).toEqual(['a: look', 'b: look']);
    expect(readingOf(a.logic)?.read()).toEqual({ ms: 200 });
    const bare = readingOf(a.logic)?.machine;
    expect(bare && readingOf(bare)).toBeNull();
    expect(said).toEqual(['a: 200,200', 'b: 200,200']);
  });

  it('can be given in turns: the later ones are added', () => {
    const said: string[] = [];
    const first = provided(machine, { actions: { say: (_, { text }) => said.push(text) } }, () => ({ ms: 300 }));
    const both = provided(first, { actors: { scan: fromPromise<readonly string[]>(async () => []) } });
    createActor(both).start().send({ type: 'look' });
    expect(said).toEqual(['300,300']);
    expect(readingOf(both)?.read()).toEqual({ ms: 300 });
  });

  it('fail until they are provided', async () => {
    await expect(toPromise(createActor(unprovided<number>()).start())).rejects.toThrow('no effects were provided');
    expect(() => unprovidedAction<{ n: number }>()({}, { n: 1 })).toThrow('no effects were provided');
    const callback = createActor(unprovidedCallback());
    callback.subscribe({ error: () => {} });
    callback.start();
    expect(callback.getSnapshot()).toMatchObject({ status: 'error', error: new Error('no effects were provided') });
  });

  it('are no part of a step: xstate’s pure functions take one with the machine as it was declared', () => {
    const [snapshot] = withFacts({ ms: 5 }, () => initialTransition(machine));
    expect(snapshot.context.beganMs).toBe(5);
  });
});
