/** Whether newly allocated CPUs are as the options of the CPU manager want them. */
import { type CpuSet, formatCpuSet, without } from '@actorlet/kubelet/machines/allocation/cpuSet.ts';
import type { CpuLedger } from '@actorlet/kubelet/machines/allocation/cpus/ledger.ts';
import type { CpuInfo } from '@actorlet/kubelet/machines/allocation/cpus/topology.ts';
import type { CpuOption, CpuTuning } from '@actorlet/world/src/node/nodeTuning.ts';

interface Change {
  before: CpuLedger | undefined;
  now: CpuLedger | undefined;
  infos: readonly CpuInfo[];
}
interface Taken {
  cpus: CpuSet;
  /** CPUs that were free before, these among them. */
  free: CpuSet;
  tuning: CpuTuning;
  infos: readonly CpuInfo[];
}

export function optionsUnheeded(tuning: CpuTuning, { before, now, infos }: Change): string | undefined {
  for (const { uid, name, taken } of newlyTaken(tuning, { before, now, infos }))
    for (const option of tuning.options) {
      const found = UNHEEDED[option]?.(taken);
      if (found !== undefined) return `container ${name} of pod ${uid} has CPUs ${formatCpuSet(taken.cpus)}: ${found}, under ${option}`;
    }
  return undefined;
}

/** Where more than one container got CPUs at a time, or some came back, nobody knows what had been free for each. */
function newlyTaken(tuning: CpuTuning, { before, now, infos }: Change): { uid: string; name: string; taken: Taken }[] {
  if (before === undefined || now === undefined) return [];
  const entries = (ledger: CpuLedger): [string, CpuSet][] =>
    [...ledger.entries].flatMap(([uid, containers]) =>
      [...containers].map(([name, cpus]): [string, CpuSet] => [`${uid} ${name} ${formatCpuSet(cpus)}`, cpus]),
    );
  const [had, has] = [new Map(entries(before)), entries(now)];
  const fresh = has.filter(([key]) => !had.has(key));
  const [one] = fresh;
  if (one === undefined || fresh.length > 1 || has.length !== had.size + 1) return [];
  const [uid = '', name = ''] = one[0].split(' ');
  return [{ uid, name, taken: { cpus: one[1], free: without(before.shared, tuning.reserved), tuning, infos } }];
}

/** How many of `of` lie in each unit. */
function counts(infos: readonly CpuInfo[], of: CpuSet, unit: (c: CpuInfo) => number): ReadonlyMap<number, number> {
  const those = infos.filter((c) => of.includes(c.id));
  return new Map([...Map.groupBy(those, unit)].map(([id, list]) => [id, list.length]));
}
const coreOf = (c: CpuInfo): number => Math.min(...c.siblings);
const cacheOf = (c: CpuInfo): number => c.cache ?? c.socket;
const isPacked = ({ tuning }: Taken): boolean => tuning.numa === null;

/** Each option's breach, where what was free lets no doubt. Under a topology policy CPUs come of some NUMA nodes alone: less is certain. */
const UNHEEDED: Partial<Record<CpuOption, (taken: Taken) => string | undefined>> = {
  'full-pcpus-only'(taken) {
    const { cpus, infos, tuning } = taken;
    const halvesOf = (set: CpuSet): number => [...counts(infos, set, coreOf).values()].filter((n) => n < tuning.threads).length;
    const halves = halvesOf(cpus);
    // As in the reference: where NUMA nodes were chosen, the other threads of cores that are reserved in part are given too.
    if (!isPacked(taken) && halvesOf(tuning.reserved) > 0) return undefined;
    return halves > 0 ? `${halves} cores are not whole` : undefined;
  },
  'distribute-cpus-across-cores'(taken) {
    const { cpus, free, infos, tuning } = taken;
    const cores = tuning.count / tuning.threads;
    const [socket, ...others] = counts(infos, cpus, (c) => c.socket).keys();
    // First threads have lower numbers than second ones.
    const firsts = infos.filter((c) => c.socket === socket && c.id < cores && free.includes(c.id)).length;
    if (!isPacked(taken) || others.length > 0 || firsts < cpus.length || cpus.length >= tuning.count / tuning.sockets) return undefined;
    return counts(infos, cpus, coreOf).size < cpus.length ? 'two threads of a core' : undefined;
  },
  'distribute-cpus-across-numa'(taken) {
    const { cpus, free, infos, tuning } = taken;
    const group = tuning.options.includes('full-pcpus-only') ? tuning.threads : 1;
    const perNode = tuning.count / tuning.nodes;
    const nodes = Math.ceil(cpus.length / perNode);
    const each = Math.ceil(cpus.length / nodes / group) * group;
    const there = counts(infos, free, (c) => c.node);
    const enough = [...there.values()].filter((n) => n >= each).length === tuning.nodes;
    const used = [...counts(infos, cpus, (c) => c.node).values()];
    if (!isPacked(taken) || nodes < 2 || !enough || cpus.length % group !== 0) return undefined;
    return Math.max(...used) - Math.min(...used) > group ? `${used.join(', ')} of ${used.length} NUMA nodes` : undefined;
  },
  'prefer-align-cpus-by-uncorecache'(taken) {
    const { cpus, free, infos, tuning } = taken;
    const size = tuning.count / tuning.caches;
    const whole = [...counts(infos, free, cacheOf).values()].some((n) => n === size);
    if (!isPacked(taken) || cpus.length > size || !whole) return undefined;
    const caches = counts(infos, cpus, cacheOf).size;
    return caches > 1 ? `of ${caches} caches, although one was free` : undefined;
  },
  'align-by-socket'({ cpus, infos, tuning }) {
    const sockets = counts(infos, cpus, (c) => c.socket).size;
    const strict = tuning.numa?.policy === 'restricted' && tuning.numa.scope === 'container';
    // What needs two NUMA nodes is as welcome on two of different sockets: there are as few of them.
    return strict && cpus.length <= tuning.count / tuning.nodes && sockets > 1 ? `of ${sockets} sockets` : undefined;
  },
};
