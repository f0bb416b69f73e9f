/** The chart that sends events, in virtual time: whom it lets go first, and for how long. */
import { expect, it } from 'vitest';
import { createActor, fromPromise, SimulatedClock } from 'xstate';
import {
  EVENT_YIELD_LOOK_MS,
  EVENT_YIELD_MS_MAX,
  type EventOutcome,
  type EventWriterFacts,
  eventWriterMachine,
} from '../../../src/machines/api/eventWriterMachine.ts';
import { provided } from '../../../src/machines/xstate/provide.ts';

function world() {
  const clock = new SimulatedClock();
  const w = { busy: false, waiting: 0, sent: [] as number[] };
  const facts: EventWriterFacts = {
    get waiting() {
      return w.waiting > 0;
    },
    get busy() {
      return w.busy;
    },
    get monoMs() {
      return clock.now();
    },
    wallMs: 0,
    random: 0,
  };
  const machine = provided(
    eventWriterMachine,
    {
      actors: {
        send: fromPromise<EventOutcome>(async () => {
          w.waiting -= 1;
          w.sent.push(clock.now());
          return 'settled';
        }),
      },
      actions: { keep: () => void w.waiting++ },
    },
    () => facts,
  );
  const actor = createActor(machine, { clock }).start();
  const event = {
    type: 'event.write',
    events: [{ type: 'Normal', reason: 'Started', message: 'm', count: 1, atMs: 0, firstAtMs: 0 }],
  } as const;
  const settle = () => new Promise<void>((wake) => setImmediate(wake));
  return {
    w,
    actor,
    async write() {
      actor.send(event);
      await settle();
    },
    /** In steps as small as its own timers. */
    async advance(ms: number) {
      for (let left = ms; left > 0; left -= EVENT_YIELD_LOOK_MS) {
        clock.increment(Math.min(left, EVENT_YIELD_LOOK_MS));
        await settle();
      }
    },
  };
}

it('sends at once while nobody has more need of the machine', async () => {
  const { w, actor, write } = world();
  await write();
  expect(w.sent).toEqual([0]);
  expect(actor.getSnapshot().value).toBe('idle');
});

it('keeps events while many pods have their turn, and sends them all when that is over', async () => {
  const { w, actor, write, advance } = world();
  w.busy = true;
  for (let i = 0; i < 3; i++) await write();
  await advance(10_000);
  expect(actor.getSnapshot().value).toBe('yielding');
  expect(w.sent).toEqual([]);
  w.busy = false;
  await advance(EVENT_YIELD_LOOK_MS);
  expect(w.sent).toHaveLength(3);
});

it('waits for no more than half a minute, and again the next time', async () => {
  const { w, write, advance } = world();
  w.busy = true;
  await write();
  await advance(EVENT_YIELD_MS_MAX - EVENT_YIELD_LOOK_MS);
  expect(w.sent).toHaveLength(0);
  await advance(EVENT_YIELD_LOOK_MS);
  expect(w.sent).toHaveLength(1);
  // Busy all along: what comes now is not kept.
  await write();
  expect(w.sent).toHaveLength(2);
  w.busy = false;
  await write();
  w.busy = true;
  await write();
  expect(w.sent).toHaveLength(3);
  await advance(EVENT_YIELD_MS_MAX);
  expect(w.sent).toHaveLength(4);
});
