/** State files of another policy, another machine or another version, and machines with NUMA nodes that lack something. */
import { describe, expect, it } from 'vitest';
import { decide } from '../../../src/machines/allocation/coordinator/decision.ts';
import { cpuStateChecksum, encodeCpuState, openCpuState } from '../../../src/machines/allocation/cpus/file.ts';
import { cpuHints } from '../../../src/machines/allocation/cpus/hints.ts';
import { type CpuPlace, firstLedger, grant } from '../../../src/machines/allocation/cpus/ledger.ts';
import { topologyOf } from '../../../src/machines/allocation/cpus/topology.ts';
import { encodeMemoryState, openMemoryState } from '../../../src/machines/allocation/memory/file.ts';
import { memoryHintsOf } from '../../../src/machines/allocation/memory/hints.ts';
import { firstMemory, grantMemory } from '../../../src/machines/allocation/memory/ledger.ts';
import { type MemoryPlace, machineOf } from '../../../src/machines/allocation/memory/machine.ts';
import type { Affinity } from '../../../src/machines/allocation/messages.ts';
import type { NumaNode } from '../../../src/machines/allocation/numaNode.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { container, pod } from '../pods/fixtures.ts';

const MI = 2 ** 20;
const FILE = '/r/state';

const node = (id: number, mib: number, pages = 0): NumaNode => ({
  ...{ id, memoryBytes: mib * MI, distances: null },
  hugePages: [{ pageBytes: 2 * MI, count: pages }],
});
const memoryPlace = (nodes: NumaNode[]): MemoryPlace => ({
  nodes: machineOf(nodes, new Map([[nodes[0]?.id ?? 0, new Map([['memory', 100 * MI]])]])),
  aligned: true,
});
/** Each CPU a core, by NUMA node. */
const cpuPlace = (byNode: Record<number, number[]>, more: Partial<CpuPlace> = {}): CpuPlace => ({
  ...{ policy: {}, reserved: [0], aligned: true },
  topology: topologyOf(
    Object.entries(byNode).flatMap(([id, cpus]) => cpus.map((cpu) => ({ id: cpu, socket: 0, siblings: [cpu], node: Number(id) }))),
  ),
  ...more,
});
function asking(cpu: string, memory: string, more: Record<string, string> = {}): Pod {
  const amounts = { cpu, memory, ...more };
  const of = pod({ containers: [container('main', { resources: { requests: amounts, limits: amounts } })] });
  return { ...of, metadata: { ...of.metadata, uid: 'u' } };
}
const drain = (what: string, why: string): string =>
  `could not restore state from checkpoint: ${why}, please drain this node and delete the ${what} manager checkpoint file "${FILE}" before restarting Kubelet`;

describe('a state file of the memory manager', () => {
  const TWO = [node(0, 1_000, 8), node(1, 1_000, 8)];
  const granted = grantMemory(firstMemory(memoryPlace(TWO)), asking('1', '200Mi', { 'hugepages-2Mi': '4Mi' }), {
    affinity: new Map<string, Affinity>([['main', { nodes: [1], preferred: true }]]),
    started: new Set(),
  });
  const text = granted.ok ? encodeMemoryState(granted.ledger) : '';
  const opened = (of: string, nodes: NumaNode[] | null) => {
    const got = openMemoryState(of, { place: nodes === null ? null : memoryPlace(nodes), file: FILE });
    return got.ok ? (got.isNew ? 'new' : 'known') : got.message;
  };

  it('of this machine is gone on with; none, an empty one, and one of nothing are begun anew', () => {
    expect([opened(text, TWO), opened('', TWO), opened(' \n', TWO), opened(encodeMemoryState(null), null)]).toEqual([
      ...['known', 'new', 'new'],
      'known',
    ]);
  });
  it('of another policy ends the start, with pods running or without', () => {
    const differs = (configured: string, kept: string) =>
      drain('memory', `[memorymanager] configured policy "${configured}" differs from state checkpoint policy "${kept}"`);
    expect(opened(text, null)).toBe(differs('None', 'Static'));
    expect(opened(encodeMemoryState(null), TWO)).toBe(differs('Static', 'None'));
  });
  it.each([
    [
      'a NUMA node is gone',
      [node(0, 1_000, 8)],
      '[memorymanager] (pod: u, container: main) the memory assignment uses the NUMA that does not exist',
    ],
    ['one has come', [...TWO, node(2, 1_000, 8)], '[memorymanager] the expected machine state is different from the real one'],
    [
      'one has less memory',
      [node(0, 1_000, 8), node(1, 900, 8)],
      '[memorymanager] the expected machine state is different from the real one',
    ],
    [
      'its huge pages are others',
      [node(0, 1_000, 8), node(1, 1_000, 7)],
      '[memorymanager] the expected machine state is different from the real one',
    ],
    [
      'their numbers are others',
      [node(0, 1_000, 8), node(3, 1_000, 8)],
      '[memorymanager] (pod: u, container: main) the memory assignment uses the NUMA that does not exist',
    ],
  ])('of a machine on which %s ends the start', (_, nodes, why) => {
    expect(opened(text, nodes)).toBe(drain('memory', why));
  });
  it('that is torn, of another shape or changed by hand ends the start', () => {
    for (const bad of [
      text.slice(0, 40),
      '[]',
      'null',
      '{"policyName":7}',
      text.replace('"size":4194304', '"size":6291456'),
      '{"policyName":"Static","machineState":{"x":{}},"checksum":0}',
    ])
      expect(opened(bad, TWO)).toMatch(/^could not restore state from checkpoint: .+, please drain this node/);
  });
});

describe('a state file of the CPU manager', () => {
  const here = cpuPlace({ 0: [0, 1], 1: [2, 3] });
  const granted = grant(firstLedger(here), asking('2', '1Mi'), here, new Map([['main', { nodes: [1], preferred: true }]]));
  const text = granted.ok ? encodeCpuState(granted.ledger) : '';
  const opened = (of: string, place: CpuPlace | null) => {
    const got = openCpuState(of, { place, file: FILE });
    return got.ok ? (got.isNew ? 'new' : 'known') : got.message;
  };

  it.each([
    ['a CPU went offline', cpuPlace({ 0: [0, 1], 1: [2] }), 'current set of available CPUs "0-2" doesn\'t match with CPUs in state "0-3"'],
    ['a CPU came', cpuPlace({ 0: [0, 1], 1: [2, 3, 7] }), 'current set of available CPUs "0-3,7" doesn\'t match with CPUs in state "0-3"'],
    [
      'CPUs that a pod has are reserved now',
      cpuPlace({ 0: [0, 1], 1: [2, 3] }, { reserved: [3] }),
      'not all reserved cpus: "3" are present in defaultCpuSet: "0-1"',
    ],
    [
      'the reservation is strict now',
      cpuPlace({ 0: [0, 1], 1: [2, 3] }, { policy: { strictReservation: true } }),
      'some of strictly reserved cpus: "0" are present in defaultCpuSet: "0-1"',
    ],
  ])('of a machine on which %s ends the start', (_, place, why) => {
    expect(opened(text, place)).toBe(drain('CPU', why));
  });
  it('does not depend on NUMA nodes: these may be numbered anew', () => {
    expect([opened(text, here), opened(text, cpuPlace({ 4: [0, 1], 9: [2, 3] }))]).toEqual(['known', 'known']);
  });
  it('with a CPU in two hands ends the start', () => {
    const texts = { policyName: 'static', defaultCpuSet: '0-2', entries: { u: { main: '2-3' } } };
    const bad = JSON.stringify({ ...texts, checksum: cpuStateChecksum(texts) });
    expect(opened(bad, here)).toBe(drain('CPU', 'pod: u, container: main cpuset: "2-3" overlaps with default cpuset "0-2"'));
  });
});

describe('a machine with holes in the numbers of its NUMA nodes, one without memory, one without CPUs, and an offline CPU', () => {
  const memory = memoryPlace([node(0, 1_000), node(2, 0), node(5, 4_000)]);
  // CPU 1 is offline; node 5 has memory alone.
  const cpus = cpuPlace({ 0: [0, 3], 2: [4, 5] });
  const map = { nodes: [0, 2, 5], distances: null };
  const chosen = (policy: 'single-numa-node' | 'restricted' | 'best-effort', of: Pod) => {
    const hints = [cpuHints(firstLedger(cpus), of, { container: 'main', place: cpus }), memoryHintsOf(firstMemory(memory), of, 'main')];
    const weighed = hints.map((now, i) => ({ provider: ['cpus', 'memory'][i] ?? '', hints: { now, soon: now } }));
    const { outcome, affinity } = decide({ policy, scope: 'container', map }, weighed, 'main');
    return [outcome, affinity.nodes];
  };

  it('gives what one node has both of, and refuses what none has', () => {
    expect(chosen('single-numa-node', asking('1', '100Mi'))).toEqual(['admitted', [0]]);
    // Two CPUs are on the node without memory alone.
    expect(chosen('single-numa-node', asking('2', '100Mi'))[0]).toBe('refused');
    expect(chosen('best-effort', asking('2', '100Mi'))[0]).toBe('admitted');
    // No more than the other node has alone.
    expect(chosen('single-numa-node', asking('1', '3000Mi'))[0]).toBe('refused');
  });
  it('gives memory of a node without CPUs to a pod that shares CPUs', () => {
    const of = asking('100m', '3000Mi');
    expect(chosen('single-numa-node', of)).toEqual(['admitted', [5]]);
    const got = grantMemory(firstMemory(memory), of, {
      affinity: new Map([['main', { nodes: [5], preferred: true }]]),
      started: new Set(),
    });
    expect(got.ok && got.ledger.entries.get('u')?.get('main')?.[0]?.nodes).toEqual([5]);
  });
});
