import { describe, expect, test } from 'vitest';
import { TAP_HELD_MAX, TAP_REORDER_MS } from '../../../src/actors/supervision/mailbox/tap.ts';
import { type Answer, address, type ReplyTo } from '../../../src/machines/supervision/address.ts';
import type { MailboxTap, MailboxVerdict } from '../../../src/machines/supervision/mailboxTap.ts';
import { actor, layer, type Rig, receiver, rig, type Say } from '../helpers.ts';

type Ask = Say & { replyTo?: ReplyTo<number> };
const toA = address<Ask>('node/a');
const toB = address<Ask>('node/b');

interface Bench extends Rig {
  got: string[];
  say(to: typeof toA, n: number): string;
  taps: string[];
  verdict: (n: number, path: string) => MailboxVerdict;
  tap: MailboxTap;
}

async function bench(): Promise<Bench> {
  const got: string[] = [];
  const hear = (id: string) =>
    actor(
      id,
      () =>
        receiver((e) => {
          got.push(`${id}${e.n}`);
          (e as Ask).replyTo?.(e.n ?? 0);
        }),
      { mailbox: { lane: (e) => (e.type === 'resync' ? 'control' : 'data') } },
    );
  const r = rig(layer('node', [hear('a'), hear('b')]));
  void r.tree.start();
  await r.ports.settle();
  const taps: string[] = [];
  const own: Bench = {
    ...r,
    got,
    taps,
    say: (to, n) => r.tree.registry.send(to, { type: 'say', n }),
    verdict: () => 'pass',
    tap: (path, lane, event) => {
      const n = (event as Say).n ?? 0;
      taps.push(`${path} ${lane} ${n}`);
      return own.verdict(n, path);
    },
  };
  return own;
}
const it = test.extend('r', () => bench());

describe('a tap on the mailboxes', () => {
  it('sees each message with its address and lets it pass', async ({ r }) => {
    using _ = r.tree.tap(r.tap);
    expect(r.say(toA, 1)).toBe('delivered');
    await r.ports.settle();
    expect(r.got).toEqual(['a1']);
    expect(r.taps).toEqual(['node/a data 1']);
  });

  it('drops: a dead letter of its own reason, an ask is lost, the sender is not told', async ({ r }) => {
    using _ = r.tree.tap(r.tap);
    r.verdict = () => 'drop';
    expect(r.say(toA, 1)).toBe('queued');
    const answers: Answer<number>[] = [];
    const question = (replyTo: ReplyTo<number>): Ask => ({ type: 'say', n: 2, replyTo });
    void r.tree.registry.ask<Ask, number>(toA, question, { timeoutMs: 60_000 }).then((a) => answers.push(a));
    await r.ports.settle();
    expect(r.got).toEqual([]);
    expect(r.tree.registry.deadLetters()).toMatchObject({ total: 2, byReason: { injected: 2 } });
    expect(answers).toEqual([{ kind: 'lost', reason: 'an injected fault dropped the message to node/a' }]);
  });

  it('delays one mailbox and keeps its order; others are not held up', async ({ r }) => {
    using _ = r.tree.tap(r.tap);
    r.verdict = (n) => (n === 1 ? { delayMs: 500 } : 'pass');
    expect([r.say(toA, 1), r.say(toA, 2), r.say(toB, 3)]).toEqual(['queued', 'queued', 'delivered']);
    // The other lane of the same mailbox goes on.
    expect(r.tree.registry.send(toA, { type: 'resync', n: 8 })).toBe('delivered');
    await r.ports.advance(499);
    expect(r.got).toEqual(['b3', 'a8']);
    await r.ports.advance(1);
    expect(r.got).toEqual(['b3', 'a8', 'a1', 'a2']);
    expect(r.say(toA, 4)).toBe('delivered');
    await r.ports.settle();
    expect(r.got.at(-1)).toBe('a4');
  });

  it('reorders: the next one goes first; alone it arrives after its time', async ({ r }) => {
    using _ = r.tree.tap(r.tap);
    r.verdict = (n) => (n % 2 === 1 ? 'reorder' : 'pass');
    for (const n of [1, 2, 3]) r.say(toA, n);
    await r.ports.settle();
    expect(r.got).toEqual(['a2', 'a1']);
    await r.ports.advance(TAP_REORDER_MS);
    expect(r.got).toEqual(['a2', 'a1', 'a3']);
    // Two that would both be put aside: the second goes first.
    for (const n of [5, 7]) r.say(toA, n);
    await r.ports.settle();
    expect(r.got.slice(3)).toEqual(['a7', 'a5']);
  });

  it('hands over what it held, in order, when it is taken away, and leaves no timer', async ({ r }) => {
    const tap = r.tree.tap(r.tap);
    const timers = r.ports.pendingTimers();
    r.verdict = (n) => (n === 9 ? 'reorder' : { delayMs: 60_000 });
    for (const n of [1, 2, 9]) r.say(toA, n);
    await r.ports.settle();
    expect(r.got).toEqual([]);
    tap[Symbol.dispose]();
    await r.ports.settle();
    expect(r.got).toEqual(['a1', 'a2', 'a9']);
    expect(r.ports.pendingTimers()).toBe(timers);
    r.say(toA, 3);
    expect(r.taps).toHaveLength(3);
  });

  it('that throws lets the message pass and is logged', async ({ r }) => {
    using _ = r.tree.tap(r.tap);
    r.verdict = () => {
      throw new Error('bad tap');
    };
    expect(r.say(toA, 1)).toBe('delivered');
    await r.ports.settle();
    expect(r.got).toEqual(['a1']);
    expect(r.ports.lines.filter((l) => l.fields.about === 'mailbox tap')).toHaveLength(1);
  });

  it('holds back a bounded number; further ones pass in their turn', async ({ r }) => {
    using _ = r.tree.tap(r.tap);
    r.verdict = () => ({ delayMs: 1_000 });
    for (let n = 0; n < TAP_HELD_MAX; n++) r.say(toA, n);
    expect(r.say(toB, 1)).toBe('delivered');
    await r.ports.settle();
    expect(r.got).toEqual(['b1']);
  });

  it('ends with the tree: what it held becomes dead letters', async ({ r }) => {
    r.tree.tap(r.tap);
    r.verdict = () => ({ delayMs: 60_000 });
    r.say(toA, 1);
    const stopped = r.tree.stop();
    await r.ports.settle();
    await stopped;
    expect(r.tree.registry.deadLetters().byReason).toEqual({ stopped: 1 });
    expect(r.ports.pendingTimers()).toBe(0);
  });
});
