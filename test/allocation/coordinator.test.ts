/** The coordinator of allocation, with providers of the test. */
import { describe, expect, it } from 'vitest';
import { coordinatorSpec } from '../../src/actors/allocation/coordinator/coordinator.ts';
import type { TopologyPlan } from '../../src/machines/allocation/coordinator/topologyPolicy.ts';
import { type AllocationAnswer, type AllocationEvent, allocationAddr } from '../../src/machines/allocation/messages.ts';
import type { Pod } from '../../src/machines/kube/types.ts';
import { type Answer, address, type ReplyTo } from '../../src/machines/supervision/address.ts';
import { actor, layer, receiver, rig } from '../supervision/helpers.ts';

type Admit = Extract<AllocationEvent, { type: 'allocation.admit' }>;
const pod = (name: string, wants: string) =>
  ({
    metadata: { name, namespace: 'default', uid: `uid-${name}`, labels: { wants } },
    spec: { containers: [{ name: 'main' }] },
    status: {},
  }) as unknown as Pod;
const granted: AllocationAnswer = { kind: 'granted' };
const refused: AllocationAnswer = { kind: 'refused', reason: 'No', message: 'there is none' };

const PLAN: TopologyPlan = { policy: 'best-effort', scope: 'container', map: { nodes: [0, 1], distances: null } };

/** `drafting`: they answer drafts, and under PLAN they have hints. */
async function node(names: readonly string[], o: { plan?: TopologyPlan; drafting?: boolean } = {}) {
  const open: { by: string; event: Admit }[] = [];
  const said: string[] = [];
  const providers = names.map((name) => ({
    address: address<AllocationEvent>(`node/allocation/${name}`),
    timeoutMs: 30_000,
    wants: ({ metadata }: Pod) => metadata.labels?.wants?.includes(name) === true,
    ...(o.drafting === true ? { hints: true as const, drafts: true as const } : {}),
  }));
  const actors = names.map((name) =>
    actor(name, () =>
      receiver((e) => {
        const event = e as unknown as AllocationEvent;
        const draft = event.type === 'allocation.admit' && event.draft === true ? ' draft' : '';
        said.push(`${name} ${event.type}${draft} ${event.type === 'allocation.forget' ? event.uid : event.pod.metadata.name}`);
        if (event.type === 'allocation.hints') event.replyTo({ now: [], soon: [] });
        if (event.type === 'allocation.admit') open.push({ by: name, event });
      }),
    ),
  );
  const r = rig(layer('node', [layer('allocation', [...actors, coordinatorSpec(providers, o.plan ?? null)])]));
  r.tree.start();
  await r.ports.settle();
  const answers: Answer<AllocationAnswer>[] = [];
  return {
    ...{ r, said, open, answers },
    async ask(of: Pod, signal = new AbortController().signal) {
      const question = (replyTo: ReplyTo<AllocationAnswer>) => ({
        type: 'allocation.admit' as const,
        pod: of,
        active: new Set<string>(),
        replyTo,
      });
      void r.tree.registry.ask(allocationAddr, question, { timeoutMs: 60_000, signal }).then((answer) => answers.push(answer));
      await r.ports.settle();
    },
    async reply(by: string, answer: AllocationAnswer) {
      open
        .splice(
          open.findIndex((o) => o.by === by),
          1,
        )[0]
        ?.event.replyTo(answer);
      await r.ports.settle();
    },
    children: () => {
      const snapshot = r.tree.actorAt(allocationAddr.path)?.getSnapshot() as { children?: object } | undefined;
      return Object.keys(snapshot?.children ?? {});
    },
  };
}

describe('the coordinator', () => {
  it('asks those that the pod is to have something of, one after the other', async () => {
    const n = await node(['devices', 'memory', 'cpus']);
    await n.ask(pod('web', 'devices cpus'));
    expect(n.said).toEqual(['devices allocation.admit web']);
    await n.reply('devices', granted);
    expect(n.said).toEqual(['devices allocation.admit web', 'cpus allocation.admit web']);
    expect([n.answers, n.children()]).toEqual([[], ['1']]);
    await n.reply('cpus', granted);
    expect([n.answers, n.children()]).toEqual([[{ kind: 'reply', value: granted }], []]);
  });

  it('answers with the first that does not grant, asks no other, and tells all of them when the pod is not admitted', async () => {
    const n = await node(['devices', 'cpus', 'memory']);
    await n.ask(pod('web', 'devices cpus memory'));
    await n.reply('devices', granted);
    await n.reply('cpus', refused);
    expect(n.answers).toEqual([{ kind: 'reply', value: refused }]);
    n.r.tree.registry.send(allocationAddr, { type: 'allocation.forget', uid: 'uid-web' });
    await n.r.ports.settle();
    expect(n.said.slice(2)).toEqual([
      'devices allocation.forget uid-web',
      'cpus allocation.forget uid-web',
      'memory allocation.forget uid-web',
    ]);
  });

  it('asks about one pod while a provider takes its time with another', async () => {
    const n = await node(['devices', 'cpus']);
    await n.ask(pod('slow', 'devices'));
    await n.ask(pod('quick', 'cpus'));
    await n.reply('cpus', granted);
    expect([n.answers.length, n.children()]).toEqual([1, ['1']]);
  });

  it('weighs the next pod once this one is drafted, and answers when all is on disk', async () => {
    const n = await node(['cpus', 'memory'], { plan: PLAN, drafting: true });
    await n.ask(pod('one', 'cpus memory'));
    await n.ask(pod('two', 'memory'));
    expect(n.said).toEqual(['cpus allocation.hints one', 'memory allocation.hints one', 'cpus allocation.admit draft one']);
    await n.reply('cpus', granted);
    await n.reply('memory', granted);
    expect(n.said.slice(3).sort()).toEqual([
      'cpus allocation.admit one',
      'memory allocation.admit draft one',
      'memory allocation.admit draft two',
      'memory allocation.admit one',
      'memory allocation.hints two',
    ]);
    await n.reply('memory', granted);
    await n.reply('memory', granted);
    expect(n.answers).toEqual([]);
    await n.reply('cpus', granted);
    expect(n.answers).toEqual([{ kind: 'reply', value: granted }]);
  });

  it('lets the next pod have its turn when this one is refused, and answers what a provider says that does not keep its draft', async () => {
    const n = await node(['cpus', 'memory'], { plan: PLAN, drafting: true });
    await n.ask(pod('one', 'cpus memory'));
    await n.ask(pod('two', 'memory'));
    await n.reply('cpus', refused);
    expect([n.answers, n.said.slice(3)]).toEqual([
      [{ kind: 'reply', value: refused }],
      ['memory allocation.hints two', 'memory allocation.admit draft two'],
    ]);
    await n.reply('memory', granted);
    await n.reply('memory', refused);
    expect([n.answers[1], n.children()]).toEqual([{ kind: 'reply', value: refused }, []]);
  });

  it('grants at once what no provider has to allocate', async () => {
    const n = await node(['devices']);
    await n.ask(pod('plain', ''));
    expect([n.said, n.answers, n.children()]).toEqual([[], [{ kind: 'reply', value: granted }], []]);
  });

  it('gives the question to the provider up when the pod manager does, and asks no other', async () => {
    const n = await node(['devices', 'cpus']);
    const stop = new AbortController();
    await n.ask(pod('web', 'devices cpus'), stop.signal);
    stop.abort();
    expect(n.open[0]?.event.replyTo.signal.aborted).toBe(true);
    await n.reply('devices', granted);
    expect([n.said, n.answers[0]?.kind, n.children()]).toEqual([['devices allocation.admit web'], 'lost', []]);
  });

  it('says later when a provider ends with the question, and is refused nothing for it', async () => {
    const n = await node(['devices']);
    await n.ask(pod('web', 'devices'));
    n.r.tree.kill('node/allocation/devices', 'the test');
    await n.r.ports.settle();
    expect(n.answers).toEqual([{ kind: 'reply', value: { kind: 'later', why: expect.any(String) } }]);
  });

  it('says later when a provider does not answer in time', async () => {
    const n = await node(['devices']);
    await n.ask(pod('web', 'devices'));
    await n.r.ports.advance(30_000);
    expect(n.answers).toEqual([{ kind: 'reply', value: { kind: 'later', why: 'no answer within 30000 ms' } }]);
  });
});
