/** Nodes that allocate CPUs, one in four: pods that ask for some, and trouble for the CPU manager. */
import { cpuSet } from '@actorlet/kubelet/machines/allocation/cpuSet.ts';
import { CPU_STATE_FILE } from '@actorlet/kubelet/machines/allocation/cpus/file.ts';
import type { CpuOption, CpuTuning } from '@actorlet/world/src/node/nodeTuning.ts';
import { ROOT_DIR } from '@actorlet/world/src/paths.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import type { Add } from '../../entries.ts';
import type { PodSource } from '../../faults.ts';
import { drawPod } from '../../workload/pods.ts';
import { type DrawnContainer, type PodDraw, withDraw } from '../pods/podDraw.ts';

const HANDS_OUT = 1 / 6;
const STRICT = 0.25;
const OPTIONS = [[], [], ['full-pcpus-only'], ['distribute-cpus-across-cores']] as const;
/**
 * Static pods are critical: room is made for them, and at each start anew. There are so many cores that all static pods
 * together never lack any; those of the API do.
 */
const CORES = 16;

export function drawCpus(rng: SimRng): CpuTuning | null {
  if (!rng.chance(HANDS_OUT)) return drawNumaMachine(rng.fork(NUMA_STREAM));
  const threads = rng.chance(0.5) ? 2 : 1;
  const count = CORES * threads;
  const byAmount = rng.chance(0.4);
  const sockets = rng.chance(0.4) ? 2 : 1;
  const some = rng.pick([[0], [0, CORES % count], [count - 1], [3, 4]] as const) ?? [0];
  return {
    count,
    threads,
    sockets,
    nodes: sockets,
    caches: 0,
    reserved: byAmount ? [0] : cpuSet(some),
    byAmount,
    options: [...(rng.pick(OPTIONS) ?? []), ...(rng.chance(STRICT) ? (['strict-cpu-reservation'] as const) : [])],
    everyMs: rng.pick([300, 1_000, 3_000, 10_000] as const) ?? 10_000,
    numa: sockets === 2 ? drawNuma(rng.fork('numa')) : null,
  };
}

/** With this number no seed of the tests gets such a machine that had none: its world stays what it was. */
const NUMA_STREAM = 'numa-machine-1301381';
/** Of all others, one in eight. */
const NUMA_MACHINE = 1 / 8;
const NUMA_POLICIES = ['none', 'none', 'best-effort', 'restricted', 'restricted', 'single-numa-node', 'single-numa-node'] as const;
/** Where nothing is aligned CPUs lie as the option says; else an option may not contradict the policy. */
const UNALIGNED_OPTIONS: readonly (readonly CpuOption[])[] = [
  ['distribute-cpus-across-numa'],
  ['distribute-cpus-across-cores'],
  ['prefer-align-cpus-by-uncorecache'],
];
const SOCKET_OPTIONS: readonly (readonly CpuOption[])[] = [[], ['full-pcpus-only'], ['align-by-socket'], ['align-by-socket']];
const NODE_OPTIONS: readonly (readonly CpuOption[])[] = [
  ...[[], []],
  ['full-pcpus-only', 'distribute-cpus-across-numa'],
  ['prefer-align-cpus-by-uncorecache'],
];
const OPTIONS_UNDER = {
  none: UNALIGNED_OPTIONS,
  'best-effort': SOCKET_OPTIONS,
  restricted: SOCKET_OPTIONS,
  'single-numa-node': NODE_OPTIONS,
};

/** A machine of several NUMA nodes, whose topology manager refuses pods. */
function drawNumaMachine(rng: SimRng): CpuTuning | null {
  if (!rng.chance(NUMA_MACHINE)) return null;
  const threads = rng.chance(0.5) ? 2 : 1;
  const policy = rng.pick(NUMA_POLICIES) ?? 'none';
  const options = rng.pick(OPTIONS_UNDER[policy]) ?? [];
  // With one NUMA node each, sockets are no larger than nodes.
  const nodes = rng.chance(0.5) || options.includes('align-by-socket') ? 4 : 2;
  return {
    ...{ count: CORES * threads, threads, sockets: 2, nodes, caches: CORES / 2, reserved: [0], byAmount: false },
    options,
    everyMs: rng.pick([300, 1_000, 3_000] as const) ?? 1_000,
    numa: policy === 'none' ? null : { policy, scope: rng.chance(0.5) ? 'pod' : 'container', memory: rng.chance(0.7) },
  };
}

const ALIGNS = 0.6;
function drawNuma(rng: SimRng): CpuTuning['numa'] {
  if (!rng.chance(ALIGNS)) return null;
  return { policy: 'best-effort', scope: rng.chance(0.5) ? 'pod' : 'container', memory: rng.chance(0.7) };
}

const WHOLE = 0.6;
const NEVER_FITS = 0.06;
/** More than any node has. */
const NEVER = '64';
const MEMORY = '16Mi';

/** A Guaranteed pod, some of whose containers are to have CPUs alone. */
export function drawWholeCpus({ count, threads, options, caches }: CpuTuning, source: PodSource): PodDraw {
  // On a machine whose topology manager refuses pods, those of files may be refused, too.
  const wide = source === 'api' || caches > 0;
  // Less than a core is refused where only whole ones are allocated.
  const one = options.includes('full-pcpus-only') ? threads : 1;
  const widths =
    caches > 0
      ? [one, 2 * one, 2 * one, 3 * one, count / 4, count / 2 + 2 * one, count / 2]
      : [1, one, one, 2 * one, 3, count / 4, count / 2];
  return (rng, { pod, manifest: { spec } }) => {
    const { containers, initContainers = [] } = spec;
    const asks = (c: DrawnContainer): boolean => c.resources?.requests?.cpu !== undefined;
    if (!rng.chance(WHOLE) || spec.priority !== undefined || containers.some(asks)) return {};
    const never = rng.chance(NEVER_FITS) && pod.fate === 'steady';
    const give = (c: DrawnContainer, cpu: string): void => {
      const amounts = { memory: MEMORY, ...c.resources?.requests, cpu };
      c.resources = { requests: { ...amounts }, limits: { ...c.resources?.limits, ...amounts } };
    };
    const whole = (): string => String(wide ? (rng.pick(widths) ?? one) : one);
    const part = (): string => (source === 'api' && rng.chance(0.3) ? '1500m' : '100m');
    for (const [i, c] of containers.entries()) {
      const alone = i === 0 || (source === 'api' && rng.chance(0.4));
      give(c, alone ? (never ? NEVER : whole()) : part());
    }
    // Init containers of a static pod have no CPU that its first container is not to have after them.
    for (const c of initContainers) give(c, rng.chance(0.6) && (source === 'api' || c.restartPolicy === undefined) ? whole() : part());
    return {};
  };
}

const FILES = [`${ROOT_DIR}/${CPU_STATE_FILE}`, `${ROOT_DIR}/.${CPU_STATE_FILE}.tmp`];
const MANAGER = 'node/allocation/cpus';
const UPDATES = { methods: ['UpdateContainerResources'] as const };
/** The pod whose CPUs are written down while something goes wrong. */
const NAME = 'cf';
const CHANCE = { probability: 1, select: {} } as const;

/** Trouble that is aimed at the state file, at its writer, and at how containers are told their sets. */
export function cpuTrouble(rng: SimRng, o: { spanMs: number; cpus: CpuTuning }, add: Add): void {
  const when = (): number => rng.next() * o.spanMs;
  const lasting = (): number => Math.round(rng.between(500, 10_000));
  const writes = { ops: ['write', 'rename'] as const, paths: FILES };
  if (rng.chance(0.5)) add(when(), { kind: 'disk.error', probability: rng.between(0.3, 1), select: writes, code: 'EIO' }, lasting());
  if (rng.chance(0.3)) add(when(), { kind: 'disk.full', probability: 1, select: { paths: FILES } }, lasting());
  if (rng.chance(0.4))
    add(when(), { kind: 'disk.slow', probability: 1, select: { paths: FILES }, delayMs: 50 + rng.int(3_000) }, lasting());
  for (let left = rng.int(3); left > 0; left--) {
    const action = rng.pick(['error', 'delay', 'late-effect', 'lost-without-effect', 'lost-with-effect'] as const) ?? 'error';
    // Longer than anybody waits for that, at times.
    const delayMs = Math.round(rng.between(100, 14_000));
    add(when(), { kind: 'cri', probability: rng.between(0.3, 1), select: UPDATES, action, delayMs, code: 13 }, lasting());
  }
  if (rng.chance(0.3)) {
    const select = { actors: [MANAGER] };
    add(when(), { kind: 'mailbox', action: 'delay', probability: 1, delayMs: Math.round(rng.between(1, 3_000)), select }, lasting());
  }
  for (let left = rng.int(4); left > 0; left--)
    add(when(), { kind: 'actor.kill', probability: 1, select: { actors: [MANAGER] }, pick: 'one' });
  if (rng.chance(0.6)) dies(rng.fork('dies'), o, add);
}

/** The node dies while a pod that it has only just seen is being allocated its CPUs. */
function dies(rng: SimRng, o: { spanMs: number; cpus: CpuTuning }, add: Add): void {
  const at = rng.next() * o.spanMs * 0.8;
  const drawn = drawPod(rng.fork('pod'), { name: NAME, rev: 0 });
  const pod = withDraw(drawWholeCpus(o.cpus, 'file'), rng.fork('whole'), drawn);
  add(at, { kind: 'pod.put', pod, source: 'file' });
  const action = rng.chance(0.7) ? 'power' : 'process';
  add(at + rng.between(10, 1_500), { kind: 'node.kill', ...CHANCE, action, downMs: Math.round(rng.between(0, 3_000)) });
}
