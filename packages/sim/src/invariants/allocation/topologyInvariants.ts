/** Invariants about NUMA nodes: what is on disk is whole and gives nothing twice, and satisfies the policy and the options. */

import { type CpuSet, formatCpuSet, shared, union } from '@actorlet/kubelet/machines/allocation/cpuSet.ts';
import { CPU_STATE_FILE, decodeCpuState } from '@actorlet/kubelet/machines/allocation/cpus/file.ts';
import type { CpuLedger } from '@actorlet/kubelet/machines/allocation/cpus/ledger.ts';
import { exclusiveCpus } from '@actorlet/kubelet/machines/allocation/cpus/policy.ts';
import type { CpuInfo } from '@actorlet/kubelet/machines/allocation/cpus/topology.ts';
import { CHECKPOINT_FILE, decodeCheckpoint } from '@actorlet/kubelet/machines/allocation/devices/checkpoint.ts';
import { type Allocation, deviceIds } from '@actorlet/kubelet/machines/allocation/devices/types.ts';
import { decodeMemoryState, MEMORY_STATE_FILE } from '@actorlet/kubelet/machines/allocation/memory/file.ts';
import { wantsMemory } from '@actorlet/kubelet/machines/allocation/memory/ledger.ts';
import { type MemoryLedger, totalOf } from '@actorlet/kubelet/machines/allocation/memory/machine.ts';
import { lastingOf } from '@actorlet/kubelet/machines/allocation/podContainers.ts';
import type { Pod } from '@actorlet/kubelet/machines/kube/types.ts';
import { cpusOfHost } from '@actorlet/world/src/host/cpus.ts';
import type { CpuTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { DEVICE_FOLDER, ROOT_DIR } from '@actorlet/world/src/paths.ts';
import { type Checker, podOf, type Scene } from '../checker.ts';
import { optionsUnheeded } from './cpuOptions.ts';

const FILES = {
  cpus: `${ROOT_DIR}/${CPU_STATE_FILE}`,
  memory: `${ROOT_DIR}/${MEMORY_STATE_FILE}`,
  devices: `${DEVICE_FOLDER}/${CHECKPOINT_FILE}`,
};
type Kept = keyof typeof FILES;

export function topologyCheckers(): Checker[] {
  return [placesAreSound(), topologyRefusesForReason()];
}

/** What is on disk; absent: there is no file. */
interface OnDisk {
  cpus?: CpuLedger;
  memory?: MemoryLedger;
  devices?: readonly Allocation[];
}
interface Seen {
  texts: Partial<Record<Kept, string>>;
  now: OnDisk;
}

/**
 * State files can be read at any time, also after a loss of power, and give no CPU, byte or device to two pods. A new allocation
 * satisfies the topology policy and the options of the CPU manager.
 */
function placesAreSound(): Checker {
  const seen = new Map<string, Seen>();
  return {
    name: 'places-are-sound',
    beat(s) {
      const { node } = s;
      if (node.tuning.cpus === null) return undefined;
      const before = seen.get(node.name) ?? { texts: {}, now: {} };
      const read = readAgain(node, before);
      if (typeof read === 'string') return `${node.name}: ${read}`;
      if (read === before) return undefined;
      seen.set(node.name, read);
      const found = givenTwice(read.now) ?? misplaced(s, node.tuning.cpus, { before: before.now, now: read.now });
      return found === undefined ? undefined : `${node.name}: ${found}`;
    },
  };
}

/** The same where no file changed; a text: one cannot be read. */
function readAgain(node: SimNode, before: Seen): Seen | string {
  const texts: Seen['texts'] = {};
  for (const kind of ['cpus', 'memory', 'devices'] as const) {
    const text = node.disk.textOf(FILES[kind]);
    if (text !== undefined) texts[kind] = text;
  }
  if ((['cpus', 'memory', 'devices'] as const).every((kind) => texts[kind] === before.texts[kind])) return before;
  const now: OnDisk = {};
  if (texts.cpus !== undefined) {
    const read = decodeCpuState(texts.cpus);
    if (!read.ok) return `${FILES.cpus} cannot be read: ${read.why}`;
    if (read.ledger !== null) now.cpus = read.ledger;
  }
  if (texts.memory !== undefined) {
    const read = decodeMemoryState(texts.memory);
    if (!read.ok) return `${FILES.memory} cannot be read: ${read.why}`;
    if (read.ledger !== null) now.memory = read.ledger;
  }
  if (texts.devices !== undefined) {
    try {
      now.devices = decodeCheckpoint(texts.devices).allocations;
    } catch (error) {
      return `${FILES.devices} cannot be read: ${String(error)}`;
    }
  }
  return { texts, now };
}

function givenTwice({ cpus, memory, devices = [] }: OnDisk): string | undefined {
  let given: CpuSet = cpus?.shared ?? [];
  for (const [uid, containers] of cpus?.entries ?? []) {
    const own = union(...containers.values());
    const twice = shared(own, given);
    if (twice.length > 0) return `CPUs ${formatCpuSet(twice)} of pod ${uid} are those of another, or shared`;
    given = union(given, own);
  }
  const holders = new Map<string, string>();
  for (const allocation of devices)
    for (const id of deviceIds(allocation)) {
      const holder = holders.get(id) ?? allocation.uid;
      if (holder !== allocation.uid) return `device ${id} is of pod ${holder} and of pod ${allocation.uid}`;
      holders.set(id, holder);
    }
  return memory === undefined ? undefined : bytesMiscounted(memory);
}

function bytesMiscounted({ machine, entries }: MemoryLedger): string | undefined {
  const given = new Map<string, number>();
  for (const containers of entries.values())
    for (const { resource, size } of [...containers.values()].flat()) given.set(resource, (given.get(resource) ?? 0) + size);
  for (const resource of new Set([...machine.values()].flatMap(({ tables }) => [...tables.keys()]))) {
    const [free, reserved, allocatable] = (['free', 'reserved', 'allocatable'] as const).map((of) =>
      totalOf(machine, machine.keys(), { resource, of }),
    );
    const held = given.get(resource) ?? 0;
    if (reserved !== held || (free ?? 0) + held !== allocatable)
      return `${held} bytes of ${resource} are given, ${reserved} are taken and ${free} of ${allocatable} are free`;
  }
  return undefined;
}

interface Change {
  before: OnDisk;
  now: OnDisk;
}

function misplaced(s: Scene, tuning: CpuTuning, { before, now }: Change): string | undefined {
  const infos = cpusOfHost(tuning).cpus?.() ?? [];
  const uids = [...(now.cpus?.entries.keys() ?? []), ...(now.memory?.entries.keys() ?? [])];
  for (const uid of new Set(uids)) {
    const pod = podOf(s, uid);
    const found = pod === undefined ? undefined : strayed(s.node, tuning, { pod, now, infos });
    if (found !== undefined) return `pod ${uid} (${pod?.metadata.name}) ${found}`;
  }
  return optionsUnheeded(tuning, { before: before.cpus, now: now.cpus, infos });
}

type Where = ReadonlyMap<'CPUs' | 'memory' | 'devices', readonly number[]>;
interface Placed {
  pod: Pod;
  now: OnDisk;
  infos: readonly CpuInfo[];
}

/** Where the policy does not allow what was chosen for a pod. */
function strayed(node: SimNode, tuning: CpuTuning, placed: Placed): string | undefined {
  const { numa } = tuning;
  if (numa === null || numa.policy === 'best-effort') return undefined;
  const bySocket = tuning.options.includes('align-by-socket');
  const names = lastingOf(placed.pod).map(({ container }) => container.name);
  const rounds = numa.scope === 'pod' ? [names] : names.map((name) => [name]);
  for (const round of rounds) {
    const where = placesOf(node, placed, round);
    const text = [...where].map(([what, nodes]) => `${what} of NUMA nodes ${formatCpuSet(nodes)}`).join(', ');
    const all = union(...where.values());
    if (numa.policy === 'single-numa-node' && all.length > 1) return `has under ${numa.policy} for ${round.join(', ')} ${text}`;
    const fewest = fewestFor(tuning, placed.pod, round);
    const used = where.get('CPUs') ?? [];
    if (!bySocket && used.length > fewest) return `has under ${numa.policy} for ${round.join(', ')} ${text}, and ${fewest} would do`;
  }
  return undefined;
}

/** NUMA nodes of what these containers have. Devices that are near to none in particular do not count. */
function placesOf(node: SimNode, { pod, now, infos }: Placed, names: readonly string[]): Where {
  const { uid } = pod.metadata;
  const cpus = union(...names.map((name) => now.cpus?.entries.get(uid)?.get(name) ?? []));
  const blocks = names.flatMap((name) => now.memory?.entries.get(uid)?.get(name) ?? []);
  const ids = (now.devices ?? []).filter((a) => a.uid === uid && names.includes(a.container)).flatMap(deviceIds);
  const near = node.tuning.devices?.plugins.flatMap((p) => ids.flatMap((id) => p.near[id] ?? [])) ?? [];
  const sorted = (nodes: Iterable<number>): number[] => [...new Set(nodes)].sort((a, b) => a - b);
  return new Map([
    ['CPUs', sorted(infos.filter((c) => cpus.includes(c.id)).map((c) => c.node))],
    ['memory', sorted(blocks.flatMap((block) => block.nodes))],
    ['devices', sorted(near)],
  ]);
}

/** NUMA nodes that have as many CPUs as these containers ask for, taken or not. */
function fewestFor({ count, nodes }: CpuTuning, pod: Pod, names: readonly string[]): number {
  const asked = lastingOf(pod).reduce((n, { container }) => (names.includes(container.name) ? n + exclusiveCpus(pod, container) : n), 0);
  return Math.max(1, Math.ceil(asked / (count / nodes)));
}

/** A pod is refused for topology only by a policy that refuses pods, and only where it is to have something of NUMA nodes. */
function topologyRefusesForReason(): Checker {
  const judged = new Set<string>();
  return {
    name: 'topology-refuses-for-reason',
    statuses(s, statuses) {
      for (const [uid, { status }] of statuses) {
        const key = `${s.node.name} ${uid}`;
        if (status.reason !== 'TopologyAffinityError' || judged.has(key)) continue;
        judged.add(key);
        const { cpus, devices } = s.node.tuning;
        const policy = cpus?.numa?.policy ?? 'none';
        if (policy === 'none' || policy === 'best-effort') return `${s.node.name}: pod ${uid} is refused for topology under ${policy}`;
        const pod = podOf(s, uid);
        if (pod === undefined || devices !== null) continue;
        const wants = lastingOf(pod).some(({ container }) => exclusiveCpus(pod, container) > 0) || wantsMemory(pod);
        if (!wants) return `${s.node.name}: pod ${uid} (${pod.metadata.name}) has nothing of NUMA nodes, and is refused for topology`;
      }
      return undefined;
    },
  };
}
