/**
 * Chains and rules that a node keeps in the host's packet filter (boot-and-node 1.8). Other programs need them: the hint
 * says which iptables (legacy or nftables) the host uses, KUBE-FIREWALL drops packets from elsewhere to a loopback address,
 * which kube-proxy's `route_localnet` would let in. Pure.
 */
import type { IpFamily } from './families.ts';

const HINT_CHAIN = 'KUBE-IPTABLES-HINT';
const FIREWALL_CHAIN = 'KUBE-FIREWALL';
/** Gone: somebody flushed the tables, and the rest went with it. */
const CANARY_CHAIN = 'KUBE-KUBELET-CANARY';
const CANARY_TABLES = ['mangle', 'nat', 'filter'] as const;

/** How long the program waits for the lock of the tables: the reference's value. */
const LOCK_SECONDS = '5';

/** An act on a table. A chain or rule that is there already is left alone. */
export type IptablesAct =
  | { kind: 'chain'; table: string; chain: string }
  | { kind: 'rule'; table: string; chain: string; at: 'first' | 'last'; rule: readonly string[] };

/** kube-proxy has the same rule, word for word: a change of it would leave both. */
const LOCALNET_RULE = [
  ...['-m', 'comment', '--comment', 'block incoming localnet connections'],
  ...['--dst', '127.0.0.0/8', '!', '--src', '127.0.0.0/8'],
  ...['-m', 'conntrack', '!', '--ctstate', 'RELATED,ESTABLISHED,DNAT'],
  ...['-j', 'DROP'],
];

export function actsOf(family: IpFamily): IptablesAct[] {
  const jump = (chain: string): IptablesAct => ({ kind: 'rule', table: 'filter', chain, at: 'first', rule: ['-j', FIREWALL_CHAIN] });
  const firewall: IptablesAct[] = [
    { kind: 'chain', table: 'filter', chain: FIREWALL_CHAIN },
    jump('OUTPUT'),
    jump('INPUT'),
    { kind: 'rule', table: 'filter', chain: FIREWALL_CHAIN, at: 'last', rule: LOCALNET_RULE },
  ];
  return [
    { kind: 'chain', table: 'mangle', chain: HINT_CHAIN },
    // The kernel routes no IPv6 packet to a loopback address.
    ...(family === 4 ? firewall : []),
    // Last: where they are, the rest is.
    ...CANARY_TABLES.map((table): IptablesAct => ({ kind: 'chain', table, chain: CANARY_CHAIN })),
  ];
}

const wait = ['-w', LOCK_SECONDS] as const;

/** Makes a chain, or with code 1 says that it is there. */
export const makeChain = (table: string, chain: string): string[] => [...wait, '-N', chain, '-t', table];
/** Code 0: the rule is there. 1: it is not. */
export const findRule = (a: { table: string; chain: string; rule: readonly string[] }): string[] => [
  ...[...wait, '-C', a.chain, '-t', a.table],
  ...a.rule,
];
export const addRule = (a: { table: string; chain: string; rule: readonly string[]; at: 'first' | 'last' }): string[] => [
  ...[...wait, a.at === 'first' ? '-I' : '-A', a.chain, '-t', a.table],
  ...a.rule,
];
/** Code 0: the chain is there. 1: it is not. */
const findChain = (table: string, chain: string): string[] => [...wait, '-S', chain, '-t', table];

/** Asks whether the host has this family at all. */
export const FIND_FAMILY = findChain('nat', 'POSTROUTING');
/** Canaries, the first of which is looked at. */
export const FIND_CANARY = findChain(CANARY_TABLES[0], CANARY_CHAIN);

export const NOT_THERE = 1;
/** Another program holds the lock of the tables. */
export const LOCK_HELD = 4;
/** The program did not end in time and was killed: what it did is not known. */
export const KILLED = -1;
