/** The same memory and hints as the kubelet of 1.36, whose answers are recorded in `memory136.json`: one sequence for each machine. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { decodeMemoryState, encodeMemoryState, openMemoryState } from '../../../src/machines/allocation/memory/file.ts';
import { memoryHintsOf } from '../../../src/machines/allocation/memory/hints.ts';
import { firstMemory, grantMemory, releaseMemory, releaseUnnamedMemory } from '../../../src/machines/allocation/memory/ledger.ts';
import { type MemoryLedger, machineOf, mistakeIn } from '../../../src/machines/allocation/memory/machine.ts';
import type { ResourceHints } from '../../../src/machines/allocation/messages.ts';
import { lastingOf } from '../../../src/machines/allocation/podContainers.ts';
import type { Pod } from '../../../src/machines/kube/types.ts';
import { podOf } from './pods.ts';

const MI = 2 ** 20;
const HUGE = 'hugepages-2Mi';

/** A pod (`p`, each container `c`, `i`nit or `s`idecar with memory and huge pages in MiB), its release (`r`), or its app containers start (`s`). */
interface Step {
  p?: string[];
  m?: number[];
  f?: boolean;
  r?: number;
  s?: number;
  a?: string[];
  e?: string;
  h?: string[];
  t: string;
}
interface Case {
  nodes: { id: number; memory: number; huge?: number; reserved?: number }[];
  ops: Step[];
  file?: string;
}
const CASES = JSON.parse(readFileSync(new URL('../../reference/recorded/allocation/memory136.json', import.meta.url), 'utf8')) as Case[];

const short = (resource: string): string => (resource === HUGE ? 'h' : resource);
const nodesText = (nodes: readonly number[]): string => nodes.join('+');

function amountsOf(asked: string): Record<string, string> {
  const [memory = '0', huge = '0'] = asked.split('/');
  return { cpu: '1', memory: `${memory}Mi`, ...(huge === '0' ? {} : { [HUGE]: `${huge}Mi` }) };
}

function hintsText(hints: readonly ResourceHints[]): string {
  const one = ({ resource, hints: sets }: ResourceHints) =>
    `${short(resource)}=${(sets ?? []).map((h) => `${nodesText(h.nodes)}${h.preferred ? '!' : ''}`).join(' ')}`;
  return [...hints]
    .sort((a, b) => (a.resource < b.resource ? -1 : 1))
    .map(one)
    .join(';');
}

/** Which node of a group gave how much is nobody's business: the reference's program does it in any order. */
function stateText({ machine }: MemoryLedger): string {
  return [...machine]
    .sort(([a], [b]) => a - b)
    .map(([id, { assignments, cells, tables }]) => {
      const free = (resource: string) => `/${(tables.get(resource)?.free ?? 0) / MI}`;
      return `${id}:${assignments}/${nodesText(cells)}${free('memory')}${free(HUGE)}`;
    })
    .join(' ');
}

function admit(ledger: MemoryLedger, of: Pod, near: { nodes: number[] | null; preferred: boolean }) {
  const names = lastingOf(of).map((c) => c.container.name);
  const h = [hintsText(memoryHintsOf(ledger, of, null))];
  const affinity = new Map<string, typeof near>();
  let now = ledger;
  for (const name of names) {
    h.push(hintsText(memoryHintsOf(now, of, name)));
    affinity.set(name, near);
    const got = grantMemory(now, of, { affinity, started: new Set() });
    // What its containers before got comes back.
    if (!got.ok) return { ledger: releaseMemory(now, [of.metadata.uid]), step: { h, e: got.refusal.message } };
    now = got.ledger;
  }
  const blocks = now.entries.get(of.metadata.uid);
  const text = (name: string) =>
    (blocks?.get(name) ?? [])
      .map((b) => `${short(b.resource)}:${b.size / MI}@${nodesText(b.nodes)}`)
      .sort()
      .join(',');
  return { ledger: now, step: { h, a: names.map(text) } };
}

describe('memory as the reference gives it', () => {
  it.each(CASES.map((c, i) => [`${i}: ${JSON.stringify(c.nodes)}`, c] as const))('%s', (_, c) => {
    const numa = c.nodes.map(({ id, memory, huge = 0 }) => ({
      id,
      memoryBytes: memory * MI,
      hugePages: [{ pageBytes: 2 * MI, count: huge / 2 }],
      distances: null,
    }));
    const reserved = new Map(c.nodes.map(({ id, reserved: of = 0 }) => [id, new Map([['memory', of * MI]])]));
    const place = { nodes: machineOf(numa, reserved), aligned: true };
    let ledger = firstMemory(place);
    const pods: Pod[] = [];
    for (const [i, { p, m, f, r, s, a, e, h, t }] of c.ops.entries()) {
      if (r !== undefined) ledger = releaseMemory(ledger, [`p${r}`]);
      else if (s !== undefined) {
        const of = pods[s];
        if (of !== undefined) ledger = releaseUnnamedMemory(ledger, of, new Set(of.spec.containers.map((one) => one.name)));
      } else {
        const of = podOf(pods.length, p ?? [], amountsOf);
        pods.push(of);
        const got = admit(ledger, of, { nodes: m ?? null, preferred: f === true });
        ledger = got.ledger;
        const expected = e === undefined ? { h, a } : { h, e: `Allocate failed due to ${e}, which is unexpected` };
        expect({ i, ...got.step }).toEqual({ i, ...expected });
      }
      expect({ i, t: stateText(ledger) }).toEqual({ i, t });
      expect(mistakeIn(ledger, place)).toBe(null);
    }
    if (c.file === undefined) return;
    // Its checksum is right, and what is written of it is the same.
    const read = decodeMemoryState(c.file);
    expect(read.ok ? encodeMemoryState(read.ledger) : read.why).toBe(c.file);
    expect(openMemoryState(c.file, { place, file: '/f' })).toMatchObject({ ok: true, isNew: false });
    expect(openMemoryState(encodeMemoryState(ledger), { place, file: '/f' })).toMatchObject({ ok: true, isNew: false });
  });
});

it('asked again, as after a restart, a pod of several containers has its memory from where they have theirs', () => {
  const numa = [0, 1].map((id) => ({ id, memoryBytes: 4096 * MI, hugePages: [], distances: null }));
  const ledger = firstMemory({ nodes: machineOf(numa, new Map()), aligned: true });
  const of = podOf(0, ['c1024', 'c512'], amountsOf);
  const { ledger: held } = admit(ledger, of, { nodes: [1], preferred: true });
  expect(hintsText(memoryHintsOf(held, of, null))).toBe('memory=1!');
  // One of them is to have another amount now.
  const other = { ...podOf(0, ['c1024', 'c768'], amountsOf), metadata: of.metadata };
  expect(hintsText(memoryHintsOf(held, other, null))).toBe('');
});
