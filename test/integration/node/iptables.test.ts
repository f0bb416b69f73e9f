/** The node's chains in the packet filter of its host, in a whole node. */
import { expect, it } from 'vitest';
import { type VirtualNode, virtualNode } from '../virtualNode.ts';

const path = 'node/services/iptables';
const options = { iptables: true };
const LOCALNET =
  '-m comment --comment block incoming localnet connections --dst 127.0.0.0/8 ! --src 127.0.0.0/8 -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';
const words = (h: { lines: { msg: string }[] }, text: string): number => h.lines.filter((l) => l.msg.includes(text)).length;

it('makes the hint, the firewall chain and the canaries, once', async () => {
  await using h = await virtualNode(options);
  await h.until('they are there', () => h.state(path) === 'watching');
  for (const family of [4, 6] as const) {
    expect(h.iptables.rules(family, 'mangle', 'KUBE-IPTABLES-HINT')).toEqual([]);
    for (const table of ['mangle', 'nat', 'filter']) expect(h.iptables.rules(family, table, 'KUBE-KUBELET-CANARY')).toEqual([]);
  }
  expect(h.iptables.rules(4, 'filter', 'KUBE-FIREWALL')).toEqual([LOCALNET]);
  expect(h.iptables.rules(6, 'filter', 'KUBE-FIREWALL')).toBeNull();
  for (const chain of ['INPUT', 'OUTPUT']) expect(h.iptables.rules(4, 'filter', chain)).toEqual(['-j KUBE-FIREWALL']);
  expect(h.iptables.runs.every((run) => run.includes('-w 5'))).toBe(true);
  await h.restart();
  await h.until('they are there again', () => h.state(path) === 'watching');
  expect(h.iptables.rules(4, 'filter', 'INPUT')).toEqual(['-j KUBE-FIREWALL']);
  expect(h.iptables.rules(4, 'filter', 'KUBE-FIREWALL')).toEqual([LOCALNET]);
});

it('makes them again within a minute after another program flushed a family', async () => {
  await using h = await virtualNode(options);
  await h.until('they are there', () => h.state(path) === 'watching');
  h.iptables.flush(6);
  await h.until('they are there again', () => h.iptables.rules(6, 'mangle', 'KUBE-IPTABLES-HINT') !== null, 62_000);
  expect(words(h, 'another program removed the iptables chains')).toBe(1);
  const { length } = h.iptables.runs;
  await h.advance(600_000);
  // A look of each family a minute, and nothing else.
  expect(h.iptables.runs.length - length).toBeLessThanOrEqual(2 * 10 + 2 * 6);
});

it('keeps the family that works, and says once why the other does not', async () => {
  const before = (n: VirtualNode) => {
    n.iptables.refused = 'KUBE-FIREWALL';
  };
  await using h = await virtualNode({ ...options, before });
  await h.until('it failed', () => h.state(path) === 'failed');
  await h.advance(300_000);
  expect(h.iptables.rules(6, 'mangle', 'KUBE-IPTABLES-HINT')).toEqual([]);
  expect(h.actor(path)?.message).toContain('IPv4: chain KUBE-FIREWALL in table filter: exit code 4: Another app');
  expect(words(h, 'iptables chains of this node cannot be made')).toBe(1);
  h.iptables.refused = '';
  await h.until('both are there', () => h.state(path) === 'watching', 61_000);
  expect(h.iptables.rules(4, 'filter', 'KUBE-FIREWALL')).toEqual([LOCALNET]);
});

it('leaves a host without iptables alone, and finds it later', async () => {
  await using h = await virtualNode({ ...options, before: (n) => n.iptables.families.clear() });
  await h.until('there is none', () => h.state(path) === 'absent');
  await h.advance(1_200_000);
  expect(words(h, 'this host has no iptables')).toBe(1);
  h.iptables.families.add(4);
  await h.until('it was found', () => h.state(path) === 'watching', 601_000);
});

it.each([
  ['locked', 'IPv4: looking for the tables: exit code 4: Another app is currently holding the xtables lock.'],
  ['hang', 'IPv4: looking for the tables: it did not end within 10 s and was killed'],
] as const)('does not take a family for absent whose tables cannot be looked at (%s)', async (verdict, message) => {
  const before = (n: VirtualNode) => {
    n.iptables.trouble = () => verdict;
  };
  await using h = await virtualNode({ ...options, before });
  await h.until('it failed', () => h.state(path) === 'failed');
  expect(h.actor(path)?.message).toContain(message);
  h.iptables.trouble = () => 'pass';
  await h.until('both are there', () => h.state(path) === 'watching', 61_000);
  expect(h.iptables.rules(4, 'filter', 'KUBE-FIREWALL')).toEqual([LOCALNET]);
  expect(h.iptables.rules(6, 'mangle', 'KUBE-IPTABLES-HINT')).toEqual([]);
});

it('finds a family that was not there at first within eleven minutes', async () => {
  await using h = await virtualNode({ ...options, before: (n) => n.iptables.families.delete(4) });
  await h.until('the other one is there', () => h.state(path) === 'watching');
  h.iptables.families.add(4);
  await h.until('both are there', () => words(h, 'iptables chains of this node are there') === 2, 660_000);
  expect(h.iptables.rules(4, 'filter', 'KUBE-FIREWALL')).toEqual([LOCALNET]);
});

it('is not there with makeIPTablesUtilChains: false', async () => {
  await using h = await virtualNode({ ...options, config: { makeIPTablesUtilChains: false } });
  await h.advance(5_000);
  expect(h.actor(path)).toBeUndefined();
  expect(h.iptables.runs).toEqual([]);
});
