/** Steps without an actor are xstate's own steps, and inspection hears of them: this fails when xstate changes what they are built on. */
import { describe, expect, it } from 'vitest';
import { assign, createActor, createMachine, type InspectionEvent, initialTransition, setup, transition } from 'xstate';
import { inspectionOf, stepsOf } from '../../../src/machines/xstate/kept.ts';
import { unprovidedAction } from '../../../src/machines/xstate/provide.ts';

type Event = { type: 'open'; by: string } | { type: 'lock' } | { type: 'break' };
interface Context {
  by: string;
  turns: number;
}
const doorMachine = setup({
  types: { context: {} as Context, events: {} as Event },
  actions: {
    note: assign(({ context, event }) => ({ turns: context.turns + 1, by: event.type === 'open' ? event.by : context.by })),
    ring: unprovidedAction<{ by: string }>(),
  },
  guards: { known: ({ event }) => event.type === 'open' && event.by !== '' },
}).createMachine({
  id: 'door',
  initial: 'closed',
  context: { by: '', turns: 0 },
  states: {
    closed: {
      initial: 'free',
      on: {
        open: { guard: 'known', target: '#wide', actions: ['note', { type: 'ring', params: ({ context }) => ({ by: context.by }) }] },
        break: { target: 'broken' },
      },
      states: { free: { on: { lock: { target: 'locked' } } }, locked: { on: { lock: { actions: 'note' } } } },
    },
    wide: { id: 'wide', on: { lock: { target: 'closed.locked', actions: 'note' }, open: {} } },
    broken: { type: 'final' },
  },
});
type Ring = { type: 'ring'; params: { by: string } };
const step = stepsOf<typeof doorMachine, Ring>(doorMachine);
const EVENTS: readonly Event[] = [
  ...[{ type: 'lock' }, { type: 'lock' }, { type: 'open', by: '' }, { type: 'open', by: 'ann' }, { type: 'open', by: 'bob' }],
  ...[{ type: 'lock' }, { type: 'break' }],
] as Event[];

function innermost(value: object | string): string {
  return typeof value === 'string' ? value : innermost(Object.values(value)[0] as object | string);
}

describe('a step without an actor', () => {
  it('leads to the state, the context and the actions that xstate’s transition leads to', () => {
    let [snapshot] = initialTransition(doorMachine);
    let at: { state: string; context: Context } = { state: 'free', context: { by: '', turns: 0 } };
    for (const event of EVENTS) {
      const [next, actions] = transition(doorMachine, snapshot, event);
      const stepped = step(at, event);
      expect([stepped.state, stepped.context]).toEqual([innermost(next.value), next.context]);
      expect(stepped.actions).toEqual(actions.map(({ type, params }) => ({ type, params })));
      const moved = stepped.state !== at.state;
      expect(stepped.taken?.target?.map(({ key }) => key).at(0)).toEqual(moved ? expect.stringMatching(/wide|locked|broken/) : undefined);
      [snapshot, at] = [next, stepped];
    }
    expect(at).toMatchObject({ state: 'broken', context: { by: 'ann', turns: 3 } });
  });

  it('keeps the very context where nothing assigns', () => {
    const context = { by: '', turns: 0 };
    expect(step({ state: 'wide', context }, { type: 'open', by: 'ann' })).toMatchObject({ state: 'wide', actions: [], taken: null });
    expect(step({ state: 'wide', context }, { type: 'open', by: 'ann' }).context).toBe(context);
  });

  it('names the very transition of the machine that it took', () => {
    const { taken } = step({ state: 'locked', context: { by: '', turns: 0 } }, { type: 'open', by: 'ann' });
    expect(taken).toBe(doorMachine.root.states.closed?.transitions.get('open')?.[0]);
  });

  it('is told to the inspection of the actor within which it is taken', () => {
    const seen: InspectionEvent[] = [];
    const keeper = createMachine({
      on: {
        go: {
          actions: ({ system }) => void step({ state: 'free', context: { by: '', turns: 0 } }, { type: 'lock' }, inspectionOf(system)),
        },
      },
    });
    const actor = createActor(keeper, { inspect: (e) => seen.push(e) });
    actor.start();
    actor.send({ type: 'go' });
    const steps = seen.flatMap((e) => (e.type === '@xstate.microstep' && Reflect.get(e.actorRef, 'logic') === doorMachine ? [e] : []));
    expect(steps.map((e) => [innermost((e.snapshot as { value?: string }).value ?? ''), e._transitions.length])).toEqual([['locked', 1]]);
  });

  it('is of machines whose innermost states have names of their own', () => {
    const twice = createMachine({ id: 'twice', initial: 'a', states: { a: { initial: 'x', states: { x: {} } }, x: {} } });
    expect(() => stepsOf(twice)).toThrow('twice has two states x');
    expect(() => step({ state: 'ajar', context: { by: '', turns: 0 } }, { type: 'lock' })).toThrow('no innermost state ajar');
  });
});
