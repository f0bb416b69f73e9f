/** The actor of a node: when its daemon is made, and what becomes of one that fails. In virtual time, on machines that only count. */
import type { ReplyTo } from '@actorlet/kubelet/machines/supervision/address.ts';
import { expect, it } from 'vitest';
import { fakePorts } from '../../../test/supervision/fakePorts.ts';
import { type NodeAnswer, type NodeEvent, nodesAddr } from '../src/nodes/messages.ts';
import { type NodeMachine, nodesSpec } from '../src/nodes/node.ts';
import { Leases } from '../src/pace/leases.ts';
import { startsSpec } from '../src/pace/starts.ts';
import { fleetTree } from '../src/tree.ts';

/** A machine whose daemon can be told to fail. */
class Machine implements NodeMachine {
  readonly name: string;
  on = true;
  failure: string | null = null;
  /** Why the next daemons cannot be made. */
  broken = '';
  /** It does not end by itself. */
  slow = false;
  /** Daemons that are made or run. */
  daemons = 0;
  most = 0;
  readonly madeMs: number[] = [];
  #fail = (_: Error): void => {};
  readonly #nowMs: () => number;

  constructor(name: string, nowMs: () => number) {
    this.name = name;
    this.#nowMs = nowMs;
  }
  async make(): Promise<void> {
    this.madeMs.push(this.#nowMs());
    if (this.broken !== '') throw new Error(this.broken);
    this.daemons += 1;
    this.most = Math.max(this.most, this.daemons);
    if (this.slow) await new Promise(() => {});
  }
  fails(): Promise<never> {
    return new Promise((_, reject) => {
      this.#fail = reject;
    });
  }
  async end(): Promise<void> {
    this.daemons = 0;
  }
  note({ on = this.on, failure = this.failure }: { on?: boolean; failure?: string | null }): void {
    this.on = on;
    this.failure = failure;
  }
  fail(why: string): void {
    this.daemons = 0;
    this.#fail(new Error(why));
  }
}

function lab() {
  const ports = fakePorts();
  const { clock } = ports;
  const n = new Machine('n', clock.monoMs);
  const ended: string[] = [];
  const m = new Machine('m', clock.monoMs);
  const nodes = nodesSpec({
    member: (name) => [n, m].find((one) => one.name === name),
    nodesMax: 2,
    stopMs: 20_000,
    onEnd: (node) => void ended.push(node),
  });
  const tree = fleetTree([startsSpec({ leases: new Leases(clock), nodes: 2 }), nodes], { ...ports, stopMs: 20_000 });
  void tree.start();
  const ask = async (type: 'node.on' | 'node.off' | 'node.restart'): Promise<NodeAnswer> => {
    const question = (replyTo: ReplyTo<NodeAnswer>): NodeEvent => ({ type, node: 'n', replyTo });
    const answer = await tree.registry.ask<NodeEvent, NodeAnswer>(nodesAddr, question, { timeoutMs: 1e9 });
    return answer.kind === 'reply' ? answer.value : `${answer.kind}: ${answer.reason}`;
  };
  const done = async (type: Parameters<typeof ask>[0]): Promise<NodeAnswer> => {
    const answer = ask(type);
    await ports.settle();
    return answer;
  };
  const shown = () => {
    const state = tree.stateAt('fleet/nodes/n');
    return [state?.lifecycle, state?.state, state?.reason, state?.lastError];
  };
  return { ...ports, n, ended, tree, ask, done, shown };
}

it('a node is off, runs, restarts, and is off again, with one daemon at a time', async () => {
  const { n, ended, done, shown } = lab();
  expect(await done('node.on')).toBe(null);
  expect(shown().slice(0, 3)).toEqual(['running', 'running', 'Running']);
  expect(await done('node.restart')).toBe(null);
  expect(await done('node.on')).toBe(null);
  expect([n.madeMs.length, n.most, ended]).toEqual([2, 1, ['n']]);
  expect(await done('node.off')).toBe(null);
  expect([shown().slice(0, 3), n.on, n.daemons]).toEqual([['running', 'off', 'Off'], false, 0]);
  // What is off stays off.
  expect(await done('node.restart')).toBe(null);
  expect([await done('node.off'), n.daemons]).toEqual([null, 0]);
});

it('a daemon that fails is made again after 2 s, then after longer', async () => {
  const { n, done, shown, settle, advance } = lab();
  await done('node.on');
  n.fail('the root gave up');
  await settle();
  expect([shown(), n.failure]).toEqual([['restarting', '', '', 'the root gave up'], 'the root gave up']);
  await advance(1_900);
  expect(n.madeMs.length).toBe(1);
  await advance(400);
  expect([n.madeMs.length, shown().slice(0, 2), n.failure]).toEqual([2, ['running', 'running'], null]);
  n.fail('again');
  await advance(3_900);
  expect(n.madeMs.length).toBe(2);
  await advance(600);
  expect(n.madeMs.length).toBe(3);
});

it('a node that cannot be made says why, is tried again, and is set aside over the limit until a person starts it', async () => {
  const { n, done, shown, advance, lines } = lab();
  n.broken = 'no room';
  expect(await done('node.on')).toBe('no room');
  await advance(15 * 60_000);
  const waits = n.madeMs.slice(1).map((ms, i) => ms - (n.madeMs[i] ?? 0));
  expect(waits.length).toBe(10);
  expect(waits.every((ms, i) => ms >= Math.min(2_000 * 2 ** i, 60_000) && ms <= 1.1 * 60_000)).toBe(true);
  expect(shown().slice(0, 3)).toEqual(['quarantined', '', 'Quarantined']);
  expect(n.failure).toBe('crashed more than 10 times in 600000 ms; last: no room');
  expect(lines.filter((l) => l.msg.includes('quarantined')).length).toBe(1);
  n.broken = '';
  expect(await done('node.on')).toBe(null);
  expect([shown().slice(0, 2), n.failure]).toEqual([['running', 'running'], null]);
});

it('a node that is switched off while its failed daemon waits for its restart stays off', async () => {
  const { n, ask, done, shown, advance } = lab();
  await done('node.on');
  n.fail('broken');
  const off = ask('node.off');
  await advance(10_000);
  expect([await off, n.madeMs.length, n.on, shown()[1]]).toEqual([null, 1, false, 'off']);
  await advance(600_000);
  expect(n.madeMs.length).toBe(1);
});

it('a step that comes while the daemon is made ends it first; a killed actor finds its machine as it is', async () => {
  const { n, tree, ask, done, shown, advance, settle } = lab();
  n.slow = true;
  const on = ask('node.on');
  await settle();
  expect(shown().slice(0, 2)).toEqual(['running', 'making']);
  n.slow = false;
  expect([await done('node.restart'), await on]).toEqual([null, null]);
  expect([n.madeMs.length, n.most]).toEqual([2, 1]);
  tree.kill('fleet/nodes/n', 'a test');
  await advance(3_000);
  expect([shown().slice(0, 2), n.madeMs.length]).toEqual([['running', 'running'], 3]);
  n.slow = true;
  const restarting = ask('node.restart');
  await settle();
  expect(await done('node.off')).toBe(null);
  expect([await restarting, shown()[1], n.daemons]).toEqual([null, 'off', 0]);
});

it('the end of the fleet ends daemons in every state, and answers those who wait', async () => {
  const { n, tree, ask, settle, ended } = lab();
  n.slow = true;
  const on = ask('node.on');
  await settle();
  const stopped = tree.stop();
  await settle();
  await stopped;
  expect([await on, n.daemons, ended]).toEqual([null, 0, ['n']]);
});
