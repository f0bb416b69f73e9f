/**
 * When the node is registered and reported, and when its lease is renewed (boot-and-node 9.1, 9.3, 9.8): each row is what is
 * asked of the API server over a while, with the second at which it is, where chance adds nothing.
 */
import { createActor, fromPromise, type PromiseActorLogic } from 'xstate';
import { type LeaseOutcome, leaseMachine } from '../../../../src/machines/api/leaseMachine.ts';
import { type NodeOutcome, nodeStatusMachine } from '../../../../src/machines/api/nodeStatusMachine.ts';
import { momentOf } from '../../../../src/machines/xstate/facts.ts';
import { provided } from '../../../../src/machines/xstate/provide.ts';
import { virtualTime } from '../../../integration/virtualTime.ts';
import { goldenTable } from '../table.ts';

const SECOND = 1_000;
const failure = { code: 500, reason: 'InternalError', message: 'broken', outcome: 'failed' as const };
const NO = { ok: false as const, failure };
const READY: NodeOutcome = { ok: true, ready: true };
const UNREADY: NodeOutcome = { ok: true, ready: false };
const HELD: LeaseOutcome = { ok: true };
const REFUSED: LeaseOutcome = { ok: false, conflict: false, failure };
const told = { code: 429, reason: 'TooManyRequests', message: 'busy', outcome: 'failed' as const, retryAfterMs: 3 * SECOND };
const TOLD = { ok: false as const, conflict: false, failure: told };
const CONFLICT: LeaseOutcome = { ok: false, conflict: true, failure };

/** The last answer goes on. */
function telling<T, I = unknown>(say: (what: string) => void, what: string, answers: readonly T[]): PromiseActorLogic<T, I> {
  let n = 0;
  return fromPromise<T, I>(async (): Promise<T> => {
    say(what);
    return answers[Math.min(n++, answers.length - 1)] as T;
  });
}
function watched() {
  const time = virtualTime();
  const said: string[] = [];
  const say = (what: string) => said.push(`${(time.clock.monoMs() / SECOND).toFixed(1)} s: ${what}`);
  const { clock } = time;
  return { time, said, say, clock };
}

/** `events`: what is told it, by the second. */
const status =
  (
    o: {
      register?: boolean;
      registered?: NodeOutcome[];
      reported?: NodeOutcome[];
      events?: [number, 'api.found' | 'node.report'][];
      random?: number;
    },
    seconds: number,
  ) =>
  async () => {
    const { time, said, say, clock } = watched();
    const machine = provided(
      nodeStatusMachine,
      {
        actors: { register: telling(say, 'register', o.registered ?? [READY]), report: telling(say, 'report', o.reported ?? [READY]) },
        actions: { failing: (_, { failures }) => void say(`failed ${failures} in a row`) },
      },
      momentOf({ clock: time.clock, rng: { next: () => o.random ?? 0 } }),
    );
    const input = {
      name: 'n1',
      register: o.register ?? true,
      updateFrequencyMs: 10 * SECOND,
    };
    const actor = createActor(machine, {
      input,
      clock,
    }).start();
    let at = 0;
    for (const [second, type] of [...(o.events ?? [])]) {
      await time.advance((second - at) * SECOND);
      at = second;
      actor.send({ type, why: '' } as { type: 'node.report'; why: string });
    }
    await time.advance((seconds - at) * SECOND);
    actor.stop();
    return said;
  };
const lease =
  (o: { acquired?: LeaseOutcome[]; renewed?: LeaseOutcome[]; foundAt?: number; random?: number }, seconds: number) => async () => {
    const { time, said, say, clock } = watched();
    const machine = provided(
      leaseMachine,
      {
        actors: { acquire: telling(say, 'acquire', o.acquired ?? [HELD]), renew: telling(say, 'renew', o.renewed ?? [HELD]) },
        actions: { failing: (_, { failures }) => void say(`failed ${failures} in a row`) },
      },
      momentOf({ clock: time.clock, rng: { next: () => o.random ?? 0 } }),
    );
    const actor = createActor(machine, {
      input: { durationMs: 40 * SECOND },
      clock,
    }).start();
    if (o.foundAt !== undefined) {
      await time.advance(o.foundAt * SECOND);
      actor.send({ type: 'api.found' });
    }
    await time.advance((seconds - (o.foundAt ?? 0)) * SECOND);
    actor.stop();
    return said;
  };

goldenTable('what is asked of the API server for the node, and when, is as recorded', 'node/cadence', {
  'status: registered, then reported every 10 s': status({}, 31),
  'status: not ours to register': status({ register: false }, 11),
  'status: reported every 10.4 s at most': status({ random: 1 }, 31),
  'status: registered in the end: 0.1 s doubled to 7 s': status({ registered: [...Array.from({ length: 10 }, () => NO), READY] }, 42),
  'status: looked at twice a second until it was Ready, for 30 s at most': status({ reported: [UNREADY, UNREADY, UNREADY, READY] }, 13),
  'status: five tries in a row, then a rest': status({ reported: [READY, NO, NO, NO, NO, NO, READY] }, 31),
  'status: one failure, then it goes on': status({ reported: [READY, NO, READY] }, 21),
  'status: told to wait for 3 s': status({ reported: [READY, TOLD, TOLD, READY] }, 21),
  'status: told five times to wait, then a rest': status({ reported: [READY, TOLD, TOLD, TOLD, TOLD, TOLD, READY] }, 45),
  'status: told to wait for 3 s before it is registered': status({ registered: [TOLD, READY] }, 5),
  'status: at once when something has changed': status({ events: [[12, 'node.report']] }, 23),
  'status: registered at once when the API server is found': status(
    { registered: [NO, NO, NO, NO, NO, NO, READY], events: [[4, 'api.found']] },
    5,
  ),
  'lease: renewed every 10 s, a quarter of its 40': lease({}, 31),
  'lease: renewed every 10.4 s at most': lease({ random: 1 }, 32),
  'lease: held in the end: 0.2 s doubled to 7 s': lease({ acquired: [...Array.from({ length: 8 }, () => REFUSED), HELD] }, 30),
  'lease: one failure, then it goes on': lease({ renewed: [REFUSED, HELD] }, 21),
  'lease: five tries in a row, then it is looked up anew': lease({ renewed: [REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, HELD] }, 21),
  'lease: told to wait for 3 s': lease({ acquired: [TOLD, HELD], renewed: [TOLD, TOLD, HELD] }, 31),
  'lease: somebody else wrote it, which is no failure': lease({ renewed: [CONFLICT, HELD] }, 21),
  'lease: renewed at once when the API server is found': lease({ foundAt: 4 }, 15),
});
