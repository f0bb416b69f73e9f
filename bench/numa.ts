/**
 * Admission of pods on a machine of 8 NUMA nodes and 256 CPUs, under policy best-effort: hints of CPUs, memory, huge pages and
 * devices, their merge, and what the providers decide to allocate. Without disks and messages, which every admission has. In
 * processor time: other programs do not change it. `firstCpuMs`: the first pods, while V8 compiles beside them.
 * With --rounds=N also the daemon on the hollow runtime, with static policies of CPUs and memory and without, in turns.
 * Options: --rounds=N --pods=1000 --burst=100 --settle-seconds=10 --out=FILE
 */
import { decide } from '../src/machines/allocation/coordinator/decision.ts';
import type { TopologyPlan } from '../src/machines/allocation/coordinator/topologyPolicy.ts';
import { cpuHints } from '../src/machines/allocation/cpus/hints.ts';
import { type CpuPlace, firstLedger, grant, release } from '../src/machines/allocation/cpus/ledger.ts';
import { topologyOf } from '../src/machines/allocation/cpus/topology.ts';
import { deviceHints } from '../src/machines/allocation/devices/hints.ts';
import type { DeviceLedger } from '../src/machines/allocation/devices/types.ts';
import { memoryHintsOf } from '../src/machines/allocation/memory/hints.ts';
import { firstMemory, grantMemory, releaseMemory } from '../src/machines/allocation/memory/ledger.ts';
import { machineOf } from '../src/machines/allocation/memory/machine.ts';
import type { Affinity } from '../src/machines/allocation/messages.ts';
import type { Pod } from '../src/machines/kube/types.ts';
import { compareManagers } from './lib/managers.ts';
import { numberOption, option, report, summary } from './lib/report.ts';

const podsWanted = numberOption('pods', 1000);
const NODES = 8;
const CPUS = 256;
const MI = 2 ** 20;
const HELD = 24;
const GPU = 'example.com/gpu';

const ids = Array.from({ length: NODES }, (_, id) => id);
const nodeOf = (cpu: number): number => Math.floor(((cpu % (CPUS / 2)) * NODES) / (CPUS / 2));
const topology = topologyOf(
  Array.from({ length: CPUS }, (_, id) => ({
    id,
    socket: Math.floor(nodeOf(id) / 4),
    siblings: [id % (CPUS / 2), (id % (CPUS / 2)) + CPUS / 2],
    node: nodeOf(id),
    cache: Math.floor((id % (CPUS / 2)) / 8),
  })),
);
const cpuPlace: CpuPlace = { topology, policy: {}, reserved: [0], aligned: true };
const memoryPlace = {
  aligned: true,
  nodes: machineOf(
    ids.map((id) => ({ id, memoryBytes: 65_536 * MI, hugePages: [{ pageBytes: 2 * MI, count: 4_096 }], distances: null })),
    new Map([[0, new Map([['memory', 1_024 * MI]])]]),
  ),
};
const gpus = Array.from({ length: 64 }, (_, i) => `gpu-${i}`);
const devices: DeviceLedger = {
  gone: new Set(),
  allocations: [],
  resources: new Map([
    [GPU, { healthy: new Set(gpus), unhealthy: new Set(), numa: new Map(gpus.map((id, i) => [id, [i % NODES]])), returning: false }],
  ]),
};
const plan: TopologyPlan = { policy: 'best-effort', scope: 'container', map: { nodes: ids, distances: null } };

function podOf(i: number): Pod {
  const amounts = {
    cpu: String(1 + ((i * 7) % 40)),
    memory: `${256 * (1 + (i % 9))}Mi`,
    'hugepages-2Mi': '64Mi',
    [GPU]: String(1 + (i % 4)),
  };
  const container = { name: 'main', image: 'i', resources: { requests: amounts, limits: amounts } };
  return { metadata: { name: `p${i}`, namespace: 'n', uid: `u${i}` }, spec: { containers: [container] }, status: {} } as unknown as Pod;
}

let cpus = firstLedger(cpuPlace);
let memory = firstMemory(memoryPlace);
const tookMs: number[] = [];
for (let i = 0; i < podsWanted; i++) {
  const pod = podOf(i);
  const from = process.cpuUsage();
  const of = { container: 'main', nodes: ids, reserved: new Map() };
  const hints = [
    deviceHints(devices, pod, of),
    cpuHints(cpus, pod, { container: 'main', place: cpuPlace }),
    memoryHintsOf(memory, pod, 'main'),
  ];
  const decision = decide(
    plan,
    hints.map((now, at) => ({ provider: String(at), hints: { now, soon: now } })),
    'main',
  );
  const affinity = new Map<string, Affinity>([['main', decision.affinity]]);
  const [c, m] = [grant(cpus, pod, cpuPlace, affinity), grantMemory(memory, pod, { affinity, started: new Set() })];
  const { user, system } = process.cpuUsage(from);
  tookMs.push((user + system) / 1_000);
  if (c.ok && m.ok) [cpus, memory] = [c.ledger, m.ledger];
  const over = [...cpus.entries.keys()].slice(0, Math.max(0, cpus.entries.size - HELD));
  cpus = release(cpus, over);
  memory = releaseMemory(memory, over);
}
const FIRST = 100;
const rounds = option('rounds') === undefined ? 0 : numberOption('rounds', 1);
const managers =
  rounds === 0
    ? null
    : await compareManagers({ rounds, pods: numberOption('burst', 100), settleSeconds: numberOption('settle-seconds', 10) });
await report('numa', {
  nodes: NODES,
  cpus: CPUS,
  pods: podsWanted,
  allCpuMs: summary(tookMs),
  admissionCpuMs: summary(tookMs.slice(FIRST)),
  firstCpuMs: summary(tookMs.slice(0, FIRST)),
  managers,
});
