import { describe, expect, it } from 'vitest';
import { fromCallback } from 'xstate';
import type { ActorCtx, SupervisionEvent } from '../../src/actors/supervision/types.ts';
import { type Answer, address, type ReplyTo, viewKey } from '../../src/machines/supervision/address.ts';
import { actor, idle, layer, receiver, rig, type Say } from './helpers.ts';

describe('a view', () => {
  const key = viewKey<readonly string[]>('names');

  it('is undefined until published, then grows by one version each time and outlives its owner', async () => {
    const contexts: ActorCtx<Say>[] = [];
    const x = actor('x', (ctx) => {
      contexts.push(ctx);
      return idle();
    });
    const r = rig(layer('node', [x]));
    await r.up();
    const { registry } = r.tree;
    expect(registry.read(key)).toBeUndefined();
    const got: [readonly string[], number][] = [];
    const watch = registry.watch(key, (value, version) => got.push([value, version]));
    contexts[0]?.publish(key, ['a']);
    contexts[0]?.publish(key, ['a', 'b']);
    watch[Symbol.dispose]();
    watch[Symbol.dispose]();
    contexts[0]?.publish(key, []);
    r.tree.kill('node/x', 'the test');
    await r.ports.settle();
    contexts[0]?.publish(key, ['stale']);
    expect(registry.read(key)).toEqual({ version: 3, value: [] });
    expect(got).toEqual([
      [['a'], 1],
      [['a', 'b'], 2],
    ]);
  });
});

describe('an actor that asks', () => {
  it('loses its question when it ends, and the asked one is told', async () => {
    type Q = Say & { replyTo?: ReplyTo<number> };
    let asked: ReplyTo<number> | undefined;
    const answers: Answer<number>[] = [];
    const oracle = actor('oracle', () =>
      receiver((e) => {
        asked = (e as Q).replyTo;
      }),
    );
    const asker = actor('asker', (ctx) =>
      fromCallback(() => {
        if (ctx.incarnation > 1) return;
        const question = (replyTo: ReplyTo<number>) => ({ type: 'say' as const, replyTo });
        ctx.registry.ask<Q, number>(address<Q>('node/oracle'), question, { timeoutMs: 60_000 }).then((a) => answers.push(a));
      }),
    );
    const r = rig(layer('node', [oracle, asker]));
    await r.up();
    expect(asked?.signal.aborted).toBe(false);
    r.tree.kill('node/asker', 'the test');
    await r.ports.settle();
    expect(asked?.signal.aborted).toBe(true);
    expect(answers).toEqual([{ kind: 'lost', reason: 'the asker gave up' }]);
  });
});

describe('an observer', () => {
  it('hears messages with their causes until it is disposed of', async () => {
    const r = rig(layer('node', [actor('x', idle)]));
    const heard: SupervisionEvent[] = [];
    const observer = r.tree.observe((e) => heard.push(e));
    await r.up();
    heard.length = 0;
    const causes = [{ atMs: 5, by: 'test', what: 'why not' }];
    r.tree.registry.send(address<Say>('node/x'), { type: 'say', causes });
    expect(heard).toEqual([{ kind: 'message', atMs: r.ports.clock.wallMs(), to: 'node/x', type: 'say', causes }]);
    observer[Symbol.dispose]();
    r.tree.registry.send(address<Say>('node/x'), { type: 'say' });
    expect(heard).toHaveLength(1);
  });
});
