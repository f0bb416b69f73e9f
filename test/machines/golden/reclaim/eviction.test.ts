/**
 * Eviction (resources and volumes 3): what thresholds are in force, when they are met, who goes first, what is said and who
 * is let in, a row for each line of the tables there.
 */
import { SIGNAL_FACTS, SIGNALS, type Signal, type StarvedResource } from '../../../../src/machines/config/evictionSignals.ts';
import type { PodSpec, Toleration } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { NODE_PRESSURES, type NodePressure } from '../../../../src/machines/nodeFacts.ts';
import { isCritical } from '../../../../src/machines/pod/phase.ts';
import { pressureRefusal } from '../../../../src/machines/reclaim/eviction/admission.ts';
import { EMPTY_LEDGER, type Met, type Observations, pass } from '../../../../src/machines/reclaim/eviction/pass.ts';
import { evictionGraceSeconds, evictionMessage, type PodUsage, rank, type Usage } from '../../../../src/machines/reclaim/eviction/rank.ts';
import { type Threshold, type ThresholdConfig, thresholdsOf } from '../../../../src/machines/reclaim/eviction/thresholds.ts';
import { container, NO_THRESHOLDS, pod, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

const MIB = 1024 ** 2;
const parsed = (over: Partial<ThresholdConfig>) => () => {
  try {
    return thresholdsOf({ ...NO_THRESHOLDS, ...over });
  } catch (error) {
    return String(error);
  }
};
const thresholds = (over: Partial<ThresholdConfig>): Threshold[] => thresholdsOf({ ...NO_THRESHOLDS, ...over }).thresholds;

/** Two looks, the second 10 s later: what each comes to. Capacity is 1000 of everything. */
const looked = (over: Partial<ThresholdConfig>, first: Partial<Record<Signal, number>>, then?: Partial<Record<Signal, number>>) => () => {
  const look = (ledger: typeof EMPTY_LEDGER, nowMs: number, available: Partial<Record<Signal, number>>) => {
    const observations: Observations = new Map(
      Object.entries(available).map(([signal, n]) => [signal as Signal, { available: n, capacity: 1000, atMs: nowMs }]),
    );
    return pass(ledger, { thresholds: thresholds(over), observations, nowMs, transitionMs: 300_000 });
  };
  const told = ({ pressures, due }: ReturnType<typeof pass>) => ({ pressures, due: due.map((d) => d.threshold.signal) });
  const one = look(EMPTY_LEDGER, 0, first);
  return then === undefined ? told(one) : [told(one), told(look(one.ledger, 10_000, then))];
};
const HARD = { evictionHard: { 'memory.available': '100' } };
const SOFT = { evictionSoft: { 'memory.available': '100' }, evictionSoftGracePeriod: { 'memory.available': '10s' } };
const RECLAIM = { ...HARD, evictionMinimumReclaim: { 'memory.available': '50' } };

const named = (uid: string, spec: Partial<PodSpec> = {}): Pod => pod(spec, { metadata: { name: uid, uid } });
const asks = (resource: string, amount: string) => ({
  containers: [container('web', { resources: { requests: { [resource]: amount } } })],
});
const ranked = (resource: StarvedResource, pods: [Pod, Usage | null][]) => () => {
  const usage = new Map(
    pods.flatMap(([p, u]): [string, PodUsage][] => (u === null ? [] : [[p.metadata.uid, { ...u, containers: new Map() }]])),
  );
  return rank(
    pods.map(([p]) => p),
    usage,
    resource,
  ).map((p) => p.metadata.name);
};
const bytes = (n: number) => ({ memoryBytes: n * MIB });
const disk = (n: number) => ({ diskBytes: n * MIB });

const met = (signal: Signal, o: { soft?: boolean; value?: Threshold['value']; available?: number; capacity?: number } = {}): Met => ({
  threshold: { signal, value: o.value ?? { kind: 'quantity', text: '100Mi' }, graceMs: o.soft === true ? 60_000 : 0, minReclaim: null },
  observation: { available: o.available ?? 50 * MIB, capacity: o.capacity ?? 1000 * MIB, atMs: 0 },
});
const web = container('web', { resources: { requests: { memory: '64Mi', 'ephemeral-storage': '1Gi' } } });
const proxy = sidecar('proxy', { resources: { requests: { memory: '10Mi' } } });
const VICTIM = pod({ initContainers: [proxy, container('init')], containers: [web, container('log')] });
const WHOLE = pod({
  resources: { requests: { memory: '1G' } },
  containers: [container('web', { resources: { requests: { memory: '100M' } } })],
});
const USAGE: PodUsage = {
  memoryBytes: 300 * MIB,
  containers: new Map([
    ['web', { memoryBytes: 200 * MIB, diskBytes: 5 * MIB }],
    ['log', { memoryBytes: 0, diskBytes: 7 * MIB }],
    ['proxy', { memoryBytes: 20 * MIB, diskBytes: 0 }],
    ['init', { memoryBytes: 900 * MIB, diskBytes: 900 * MIB }],
  ]),
};
const grace = (soft: boolean, maxSeconds: number, own?: number) => () => {
  const { terminationGracePeriodSeconds: _, ...spec } = pod().spec;
  const p = { ...pod(), spec: { ...spec, ...(own === undefined ? {} : { terminationGracePeriodSeconds: own }) } };
  return evictionGraceSeconds(p, met('memory.available', { soft }), maxSeconds);
};

const MIRROR = { 'kubernetes.io/config.source': 'api', 'kubernetes.io/config.mirror': 'x' };
const tolerant = (toleration: Toleration) => pod({ tolerations: [toleration] });
const MEMORY_TAINT = 'node.kubernetes.io/memory-pressure';
const burstable = pod(asks('memory', '1Mi'));
const guaranteed = pod({
  containers: [container('web', { resources: { limits: { cpu: '1', memory: '1Mi' }, requests: { cpu: '1', memory: '1Mi' } } })],
});
const admitted =
  (p: Pod, ...pressures: NodePressure[]) =>
  () =>
    pressureRefusal(p, pressures);

goldenTable('eviction is as recorded', 'reclaim/eviction', {
  ...Object.fromEntries(
    SIGNALS.map((signal) => [
      `signal: ${signal}`,
      () => ({ resource: SIGNAL_FACTS[signal].resource, pressure: SIGNAL_FACTS[signal].pressure }),
    ]),
  ),
  'pressures, in the order in which they are told': () => NODE_PRESSURES,

  'threshold: a quantity': parsed({ evictionHard: { 'memory.available': '100Mi' } }),
  'threshold: a share': parsed({ evictionHard: { 'nodefs.available': '7.5%' } }),
  'threshold: 0% is off (resources trap 1)': parsed({ evictionHard: { 'imagefs.available': '0%' } }),
  'threshold: 100% is off (resources trap 1)': parsed({ evictionHard: { 'imagefs.available': '100%' } }),
  'threshold: neither': parsed({ evictionHard: { 'memory.available': 'much' } }),
  'threshold: soft, with its grace': parsed(SOFT),
  'threshold: soft, without a grace': parsed({ evictionSoft: { 'memory.available': '100' } }),
  'threshold: soft, with a grace of zero': parsed({ ...SOFT, evictionSoftGracePeriod: { 'memory.available': '0s' } }),
  'threshold: soft, with a grace below zero': parsed({ ...SOFT, evictionSoftGracePeriod: { 'memory.available': '-1s' } }),
  'threshold: what is to be reclaimed is of both': parsed({ ...RECLAIM, ...SOFT }),
  'threshold: of what only groups tell': parsed({ evictionHard: { 'allocatableMemory.available': '1Gi' } }),
  'threshold: of what only groups tell, where there are none': parsed({
    ...{ evictionHard: { 'allocatableMemory.available': '1Gi' }, cgroupsPerQOS: false },
  }),
  'threshold: hard memory, where pods are held to what is allocatable': parsed({ ...HARD, ...SOFT, enforceNodeAllocatable: ['pods'] }),
  'threshold: of a third file system': parsed({ evictionHard: { 'containerfs.available': '5%' } }),

  'met: as much as the threshold': looked(HARD, { 'memory.available': 100 }),
  'met: less than the threshold': looked(HARD, { 'memory.available': 99 }),
  'met: less than the share': looked({ evictionHard: { 'nodefs.available': '10%' } }, { 'nodefs.available': 99 }),
  'met: nothing is known of it': looked(HARD, { 'nodefs.available': 1 }),
  'met: no more, the pressure stays': looked(HARD, { 'memory.available': 99 }, { 'memory.available': 100 }),
  'met: soft, within its grace': looked(SOFT, { 'memory.available': 99 }),
  'met: soft, when its grace is over': looked(SOFT, { 'memory.available': 99 }, { 'memory.available': 99 }),
  'met: never, with something to reclaim': looked(RECLAIM, { 'memory.available': 149 }),
  'met: before, and what is to be reclaimed is not there': looked(RECLAIM, { 'memory.available': 99 }, { 'memory.available': 149 }),
  'met: before, and what is to be reclaimed is there': looked(RECLAIM, { 'memory.available': 99 }, { 'memory.available': 150 }),
  'met: memory comes first': looked(
    { evictionHard: { 'pid.available': '10', 'nodefs.inodesFree': '10', 'memory.available': '10' } },
    { 'pid.available': 1, 'nodefs.inodesFree': 1, 'memory.available': 1 },
  ),

  'memory: who is above what was asked for goes before who is not': ranked('memory', [
    [named('within', { ...asks('memory', '200Mi'), priority: -1 }), bytes(100)],
    [named('above', { ...asks('memory', '90Mi'), priority: 1 }), bytes(100)],
  ]),
  'memory: of those above, the lower priority': ranked('memory', [
    [named('much', { priority: 1 }), bytes(100)],
    [named('little', { priority: 0 }), bytes(1)],
  ]),
  'memory: of those above with one priority, the furthest above': ranked('memory', [
    [named('asked', asks('memory', '150Mi')), bytes(200)],
    [named('little'), bytes(60)],
  ]),
  'memory: as much as was asked for is not above': ranked('memory', [
    [named('exact', { ...asks('memory', '100Mi'), priority: -9 }), bytes(100)],
    [named('above'), bytes(1)],
  ]),
  'memory: of those within, the lower priority, then who is nearest': ranked('memory', [
    [named('far', asks('memory', '900Mi')), bytes(100)],
    [named('near', asks('memory', '110Mi')), bytes(100)],
    [named('low', { ...asks('memory', '900Mi'), priority: -1 }), bytes(1)],
  ]),
  'memory: who is not known goes first': ranked('memory', [
    [named('above'), bytes(100)],
    [named('unknown', { priority: 9 }), null],
  ]),
  'memory: no priority is 0': ranked('memory', [
    [named('one', { priority: 1 }), bytes(1)],
    [named('none'), bytes(1)],
    [named('minus', { priority: -1 }), bytes(1)],
  ]),
  'disk: who is above what was asked for, then the furthest above': ranked('ephemeral-storage', [
    [named('within', asks('ephemeral-storage', '1Gi')), disk(900)],
    [named('little'), disk(5)],
    [named('much', asks('ephemeral-storage', '1Mi')), disk(50)],
  ]),
  'inodes: nobody can ask for any': ranked('inodes', [
    [named('few', asks('ephemeral-storage', '1Gi')), { inodes: 5 }],
    [named('many', asks('ephemeral-storage', '1Gi')), { inodes: 500 }],
  ]),
  'processes: by priority, then by how many there are': ranked('pids', [
    [named('seven', { priority: 7 }), { tasks: 900 }],
    [named('unknown'), null],
    [named('few'), { tasks: 3 }],
    [named('many'), { tasks: 30 }],
    [named('minus', { priority: -1 }), {}],
  ]),

  'message: memory': () => evictionMessage(VICTIM, USAGE, met('memory.available')),
  'message: memory, a share of it': () =>
    evictionMessage(VICTIM, USAGE, met('memory.available', { value: { kind: 'percent', percent: 10 } })),
  'message: disk': () => evictionMessage(VICTIM, USAGE, met('nodefs.available', { available: 1_000_000 })),
  'message: disk of images': () => evictionMessage(VICTIM, USAGE, met('imagefs.available')),
  'message: inodes name no container': () => evictionMessage(VICTIM, USAGE, met('nodefs.inodesFree', { available: 7 })),
  'message: processes name no container': () => evictionMessage(VICTIM, USAGE, met('pid.available', { available: 7 })),
  'message: a pod with a request of its own, and amounts as they are written': () => evictionMessage(WHOLE, USAGE, met('memory.available')),
  'message: of one that is not known': () => evictionMessage(VICTIM, undefined, met('memory.available')),

  'grace: hard': grace(false, 60, 30),
  'grace: soft, the own one is less': grace(true, 60, 30),
  'grace: soft, the own one is more': grace(true, 5, 30),
  'grace: soft, none allowed': grace(true, 0, 30),
  'grace: soft, none of its own': grace(true, 60),

  'critical: a pod of the API': () => isCritical(pod()),
  'critical: a static pod': () => isCritical(pod({}, { source: 'file' })),
  'critical: a pod of a URL': () => isCritical(pod({}, { source: 'http' })),
  'critical: a mirror': () => isCritical(pod({}, { metadata: { annotations: MIRROR } })),
  'critical: priority 1999999999': () => isCritical(pod({ priority: 1_999_999_999 })),
  'critical: priority 2000000000': () => isCritical(pod({ priority: 2_000_000_000 })),

  'let in: without pressure': admitted(pod()),
  'let in: critical, under all of them': admitted(pod({}, { source: 'file' }), 'MemoryPressure', 'DiskPressure', 'PIDPressure'),
  'let in: BestEffort, memory': admitted(pod(), 'MemoryPressure'),
  'let in: Burstable, memory': admitted(burstable, 'MemoryPressure'),
  'let in: Guaranteed, memory': admitted(guaranteed, 'MemoryPressure'),
  'let in: BestEffort that tolerates it, memory': admitted(
    tolerant({ key: MEMORY_TAINT, operator: 'Exists', effect: 'NoSchedule' }),
    'MemoryPressure',
  ),
  'let in: BestEffort that tolerates another effect, memory': admitted(
    tolerant({ key: MEMORY_TAINT, operator: 'Exists', effect: 'NoExecute' }),
    'MemoryPressure',
  ),
  'let in: Burstable, disk': admitted(burstable, 'DiskPressure'),
  'let in: tolerates everything, disk': admitted(tolerant({ operator: 'Exists' }), 'DiskPressure'),
  'let in: Guaranteed, processes': admitted(guaranteed, 'PIDPressure'),
  'let in: Burstable, memory and disk': admitted(burstable, 'MemoryPressure', 'DiskPressure'),
  'let in: BestEffort that tolerates it, memory and disk (resources trap 11)': admitted(
    tolerant({ key: MEMORY_TAINT, operator: 'Exists', effect: 'NoSchedule' }),
    'MemoryPressure',
    'DiskPressure',
  ),
});
