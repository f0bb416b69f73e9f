/** Whatever an actor must provide fails until it is provided, in every machine: a forgotten effect is no silent nothing. */
import { expect, it } from 'vitest';
import { type AnyActorLogic, type AnyStateMachine, createActor, StateMachine } from 'xstate';
import { nodeMachines } from '../../integration/kill/killTables.ts';

async function fails(logic: AnyActorLogic): Promise<boolean> {
  const actor = createActor(logic, { input: {} });
  const ended = new Promise<boolean>((done) => {
    actor.subscribe({ complete: () => done(false), error: (e) => done(e instanceof Error && e.message === 'no effects were provided') });
    setImmediate(() => done(false));
  });
  actor.start();
  return ended;
}

/** A plain function among the actions has an effect: what decides is made by `assign`, `raise`, `enqueueActions`. */
function isEffect(action: unknown): action is (args: object, params: object) => void {
  return typeof action === 'function' && !('resolve' in action);
}

function throws(run: () => void): boolean {
  try {
    run();
    return false;
  } catch {
    return true;
  }
}

it('a promise, a callback or an action that an actor provides', async () => {
  const found: string[] = [];
  for (const machine of await nodeMachines()) {
    const { root, implementations } = machine as unknown as AnyStateMachine;
    for (const [name, logic] of Object.entries(implementations.actors)) {
      if (!(logic instanceof StateMachine) && !(await fails(logic as AnyActorLogic))) found.push(`${root.id} actor ${name}`);
    }
    for (const [name, action] of Object.entries(implementations.actions)) {
      const args = { context: {}, event: { type: '', error: new Error('told') } };
      if (isEffect(action) && !throws(() => action(args, {}))) found.push(`${root.id} action ${name}`);
    }
  }
  expect(found).toEqual([]);
});
