/** Hints are merged as the kubelet of 1.36 merges them, whose answers are recorded in `topology136.json`. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { mergeHints, type NumaMap, type TopologyPolicy } from '../../../src/machines/allocation/coordinator/merge.ts';
import type { ResourceHints } from '../../../src/machines/allocation/messages.ts';
import { subsetsOf } from '../../../src/machines/allocation/nodeSets.ts';

interface Case {
  nodes: number[];
  distances: number[][];
  /** By resource: `any`, or sets of nodes, `!` the preferred ones. */
  providers: Record<string, string>[];
  /** By policy, with `closest` or without. */
  answers: Record<string, string>;
}
const CASES = JSON.parse(readFileSync(new URL('../../reference/recorded/allocation/topology136.json', import.meta.url), 'utf8')) as Case[];

function hintsOf(provider: Record<string, string>): ResourceHints[] {
  return Object.entries(provider).map(([resource, text]) => {
    if (text === 'any') return { resource, hints: null };
    const sets = text === '' ? [] : text.split(' ');
    return { resource, hints: sets.map((s) => ({ nodes: s.replace('!', '').split('+').map(Number), preferred: s.endsWith('!') })) };
  });
}
function merged(policy: string, map: NumaMap, providers: readonly ResourceHints[][]): string {
  const { affinity, admitted } = mergeHints(policy as TopologyPolicy, map, providers);
  return `${affinity.nodes?.join('+') ?? 'any'}${affinity.preferred ? '!' : ''}${admitted ? '' : ' refused'}`;
}

describe('hints as the reference merges them', () => {
  it.each(CASES.map((c, i) => [`${i}: ${JSON.stringify(c.nodes)} ${JSON.stringify(c.providers)}`, c] as const))('%s', (_, c) => {
    const providers = c.providers.map(hintsOf);
    const got = Object.keys(c.answers).map((key) => {
      const [policy = '', closest] = key.split(' ');
      const distances = closest === undefined ? null : new Map(c.nodes.map((node, i) => [node, c.distances[i] ?? []]));
      return [key, merged(policy, { nodes: c.nodes, distances }, providers)];
    });
    expect(Object.fromEntries(got)).toEqual(c.answers);
  });

  it('takes time that grows with the hints, not with their product', () => {
    const nodes = Array.from({ length: 8 }, (_, i) => i);
    const hints = [...subsetsOf(nodes)].map((set) => ({ nodes: set, preferred: set.length === 1 }));
    const providers = [Array.from({ length: 6 }, (_, i) => ({ resource: `r${i}`, hints }))];
    // 255 to the 6th ways.
    expect(merged('best-effort', { nodes, distances: null }, providers)).toBe('0!');
  });
});
