/** The same CPUs and hints as the kubelet of 1.36, whose answers are recorded in `cpus136.json`: one sequence for each machine and options. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatCpuSet, parseCpuSet } from '../../../src/machines/allocation/cpuSet.ts';
import { cpuHints } from '../../../src/machines/allocation/cpus/hints.ts';
import { type CpuLedger, type CpuPlace, firstLedger, grant, release } from '../../../src/machines/allocation/cpus/ledger.ts';
import { readPolicyOptions, reservedCpus } from '../../../src/machines/allocation/cpus/policy.ts';
import { type CpuInfo, type Topology, topologyOf } from '../../../src/machines/allocation/cpus/topology.ts';
import type { Affinities, ResourceHints } from '../../../src/machines/allocation/messages.ts';
import { lastingOf } from '../../../src/machines/allocation/podContainers.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { fnv1a32 } from '../../../src/machines/text/checksum.ts';
import { podOf } from './pods.ts';

interface Machine {
  sockets: number;
  nodes: number;
  cores: number;
  threads: number;
  caches: number;
  style: 'last' | 'adjacent' | 'inter';
  missing?: number[];
  nodeIds?: number[];
}
/** A pod (`p`, each container `c`, `i`nit or `s`idecar with its CPUs; `m`: NUMA nodes chosen), or the release of one (`r`). */
interface Step {
  p?: string[];
  m?: number[];
  r?: number;
  a?: string[];
  e?: string;
  k?: string;
  h?: string[];
}
interface Case {
  topo: Machine;
  options: string[];
  reserved: string;
  count?: number;
  ops: Step[];
}
const CASES = JSON.parse(readFileSync(new URL('../../reference/recorded/allocation/cpus136.json', import.meta.url), 'utf8')) as Case[];

function machine(o: Machine): Topology {
  const perSocket = o.cores / o.sockets;
  const infos: CpuInfo[] = [];
  for (let core = 0; core < o.cores; core++) {
    const [socket, at] =
      o.style === 'inter' ? [core % o.sockets, Math.floor(core / o.sockets)] : [Math.floor(core / perSocket), core % perSocket];
    const part = (units: number): number => {
      const each = units / o.sockets;
      return units >= o.sockets ? socket * each + Math.floor((at * each) / perSocket) : Math.floor((socket * units) / o.sockets);
    };
    const node = o.nodeIds?.[part(o.nodes)] ?? part(o.nodes);
    const ids = Array.from({ length: o.threads }, (_, t) => (o.style === 'adjacent' ? core * o.threads + t : t * o.cores + core));
    const siblings = ids.filter((id) => o.missing?.includes(id) !== true);
    for (const id of siblings) infos.push({ id, socket, siblings, node, ...(o.caches > 0 ? { cache: part(o.caches) } : {}) });
  }
  return topologyOf(infos);
}

const amountsOf = (cpu: string) => ({ cpu, memory: '1Gi' });

function hintText([first]: readonly ResourceHints[]): string {
  if (first === undefined) return '-';
  const all = (first.hints ?? []).map((h) => `${h.nodes.join('+')}${h.preferred ? '!' : ''}`);
  return all.join(' ').length > 60 ? `${all.length}:${fnv1a32(all.join(' '))}` : all.join(' ');
}

/** What becomes of one pod, container by container as the topology manager asks. */
function admit(ledger: CpuLedger, of: Pod, { place, nodes }: { place: CpuPlace; nodes: number[] | null }) {
  const names = lastingOf(of).map((c) => c.container.name);
  const h = [hintText(cpuHints(ledger, of, { container: null, place }))];
  const affinity = new Map<string, { nodes: number[] | null; preferred: boolean }>();
  let now = ledger;
  for (const name of names) {
    h.push(hintText(cpuHints(now, of, { container: name, place })));
    affinity.set(name, { nodes, preferred: nodes !== null });
    const got = grant(now, of, place, affinity satisfies Affinities);
    if (!got.ok) return { ledger, step: { h, e: got.refusal.message, k: got.refusal.reason } };
    now = got.ledger;
  }
  const a = names.map((name) => formatCpuSet(now.entries.get(of.metadata.uid)?.get(name) ?? []));
  return { ledger: now, step: { h, a } };
}

/** An error without a type is wrapped on its way to the pod. */
function expected({ h, a, e, k }: Step) {
  if (e === undefined) return { h, a };
  return k === undefined ? { h, e: `Allocate failed due to ${e}, which is unexpected`, k: 'UnexpectedAdmissionError' } : { h, e, k };
}

describe('CPUs as the reference gives them', () => {
  it.each(CASES.map((c, i) => [`${i}: ${JSON.stringify(c.topo)} ${c.options.join(' ')}`, c] as const))('%s', (_, c) => {
    const topology = machine(c.topo);
    const { policy, mistakes } = readPolicyOptions(Object.fromEntries(c.options.map((o) => [o, 'true'])), () => true);
    expect(mistakes).toEqual([]);
    const by =
      c.count === undefined ? { reservedSystemCPUs: c.reserved } : { reservedSystemCPUs: '', systemReserved: { cpu: String(c.count) } };
    const reserved = reservedCpus(topology, { kubeReserved: {}, systemReserved: {}, ...by }, policy);
    expect(reserved).toEqual({ ok: true, cpus: parseCpuSet(c.reserved) });
    const place: CpuPlace = { topology, policy, reserved: parseCpuSet(c.reserved) ?? [], aligned: true };
    let ledger = firstLedger(place);
    let pods = 0;
    for (const [i, step] of c.ops.entries()) {
      if (step.r !== undefined) {
        ledger = release(ledger, [`p${step.r}`]);
        continue;
      }
      const got = admit(ledger, podOf(pods, step.p ?? [], amountsOf), { place, nodes: step.m ?? null });
      pods += 1;
      ledger = got.ledger;
      const ours = { i, ...got.step, h: got.step.h.slice(0, step.h?.length) };
      const mended = MENDED.find(({ option }) => c.options.includes(option));
      if (mended !== undefined && ours.a !== undefined && step.a !== undefined && JSON.stringify(ours.a) !== JSON.stringify(step.a)) {
        // What is free differs from here on.
        const counts = (sets: readonly string[]) => sets.map((text) => parseCpuSet(text)?.length);
        expect(counts(ours.a)).toEqual(counts(step.a));
        expect(unitsOf(ours.a, topology, mended.level)).toBeGreaterThanOrEqual(unitsOf(step.a, topology, mended.level));
        return;
      }
      expect(ours).toEqual({ i, ...expected(step) });
    }
  });
});

/** Newer releases spread CPUs over more of these: kubernetes/kubernetes#139456 and #140766. */
const MENDED = [
  { option: 'distribute-cpus-across-numa', level: 'node' },
  { option: 'distribute-cpus-across-cores', level: 'core' },
] as const;

function unitsOf(sets: readonly string[], { cpus }: Topology, level: 'node' | 'core'): number {
  const own = new Set(sets.flatMap((text) => parseCpuSet(text) ?? []));
  return new Set(cpus.filter((c) => own.has(c.id)).map((c) => c[level])).size;
}

describe('CPUs as newer releases give them', () => {
  const of = (o: Machine, options: readonly string[], spec: { cpus: number; nodes: number[] | null; reserved?: string }) => {
    const topology = machine(o);
    const { policy } = readPolicyOptions(Object.fromEntries(options.map((name) => [name, 'true'])), () => true);
    const place: CpuPlace = { topology, policy, reserved: parseCpuSet(spec.reserved ?? '') ?? [], aligned: true };
    const { step } = admit(firstLedger(place), podOf(0, [`c${spec.cpus}`], amountsOf), { place, nodes: spec.nodes });
    const cpus = parseCpuSet(step.a?.[0] ?? '') ?? [];
    const levels = (level: 'node' | 'socket' | 'core') => topology.cpus.filter((c) => cpus.includes(c.id)).map((c) => c[level]);
    return {
      cpus: formatCpuSet(cpus),
      nodes: new Set(levels('node')).size,
      sockets: new Set(levels('socket')).size,
      cores: new Set(levels('core')).size,
    };
  };
  const FOUR: Machine = { sockets: 2, nodes: 4, cores: 16, threads: 2, caches: 0, style: 'last' };

  it('on as many NUMA nodes as the topology manager chose, as long as there are CPUs for each', () => {
    const numa = ['distribute-cpus-across-numa'];
    expect(of(FOUR, numa, { cpus: 12, nodes: [0, 1, 2, 3] }).nodes).toBe(4);
    expect(of(FOUR, numa, { cpus: 12, nodes: null }).nodes).toBe(2);
    expect(of(FOUR, numa, { cpus: 2, nodes: [0, 1, 2, 3] }).nodes).toBe(2);
    expect(of(FOUR, [...numa, 'full-pcpus-only'], { cpus: 12, nodes: [0, 1, 2], reserved: '0,4,8' }).cpus.length).toBeGreaterThan(0);
  });

  it('on a thread of each core first, whatever numbers threads have', () => {
    const adjacent: Machine = { sockets: 1, nodes: 1, cores: 4, threads: 2, caches: 0, style: 'adjacent' };
    expect(of(adjacent, ['distribute-cpus-across-cores'], { cpus: 4, nodes: null }).cpus).toBe('0,2,4,6');
    expect(of(adjacent, ['distribute-cpus-across-cores'], { cpus: 6, nodes: null }).cpus).toBe('0-4,6');
  });

  it('on one socket where that has enough, under align-by-socket', () => {
    const large: Machine = { sockets: 2, nodes: 8, cores: 128, threads: 2, caches: 0, style: 'last' };
    const options = ['distribute-cpus-across-cores', 'align-by-socket'];
    const reserved = '48,176,112,240';
    expect(of(large, options, { cpus: 120, nodes: null, reserved }).sockets).toBe(1);
    expect(of(large, options, { cpus: 130, nodes: null, reserved }).sockets).toBe(2);
  });
});
