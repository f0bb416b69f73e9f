/** Turns for the few places there are: fair by peer, bounded, and never for ever. */
import { describe, expect, it } from 'vitest';
import { createTurns, type Turn } from '../../../src/actors/edge/https/turns.ts';
import { createClock } from '../../../src/boot/dependencies/clock.ts';

const never = new AbortController().signal;
const place = (turn: Turn): Extract<Turn, { kind: 'place' }> => {
  if (turn.kind !== 'place') throw new Error(turn.kind);
  return turn;
};

describe('turns', () => {
  it('go round among peers, whoever asks most', async () => {
    const turns = createTurns({ atOnceMax: 1, waitingMax: 100, waitMs: 60_000 }, createClock());
    const first = place(await turns('a', never));
    const order: string[] = [];
    const ask = (peer: string) =>
      turns(peer, never).then((turn) => {
        order.push(peer);
        place(turn).leave();
      });
    const all = [...Array.from({ length: 4 }, () => ask('a')), ask('b'), ask('c'), ask('b')];
    first.leave();
    await Promise.all(all);
    expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a']);
  });

  it('are refused to a peer of whom too many wait, and to nobody else', async () => {
    const turns = createTurns({ atOnceMax: 1, waitingMax: 2, waitMs: 60_000 }, createClock());
    const first = place(await turns('a', never));
    const waiting = [turns('a', never), turns('a', never)];
    expect(await turns('a', never)).toEqual({ kind: 'crowded' });
    waiting.push(turns('b', never));
    first.leave();
    await Promise.all(waiting.map(async (one) => place(await one).leave()));
    place(await turns('a', never)).leave();
  });

  it('that do not come in time, or whose caller gave up, are over, and their place in the row is free', async () => {
    const turns = createTurns({ atOnceMax: 1, waitingMax: 1, waitMs: 30 }, createClock());
    const first = place(await turns('a', never));
    expect(await turns('b', never)).toEqual({ kind: 'late' });
    const gone = new AbortController();
    const given = turns('b', gone.signal);
    gone.abort();
    expect(await given).toEqual({ kind: 'late' });
    expect(await turns('b', gone.signal)).toEqual({ kind: 'late' });
    const next = turns('b', never);
    first.leave();
    first.leave();
    const second = place(await next);
    expect(await turns('a', never)).toEqual({ kind: 'late' });
    second.leave();
  });
});
