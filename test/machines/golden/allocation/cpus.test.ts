/** CPUs that containers have alone (resources and volumes 2.1, 2.2): who gets some, which, how they come back, what the file says. */
import { formatCpuSet, parseCpuSet } from '../../../../src/machines/allocation/cpuSet.ts';
import { cpuStateChecksum, encodeCpuState, olderCpuStateChecksum, openCpuState } from '../../../../src/machines/allocation/cpus/file.ts';
import {
  type CpuLedger,
  type CpuPlace,
  firstLedger,
  grant,
  mistakeIn,
  release,
  releaseUnnamed,
} from '../../../../src/machines/allocation/cpus/ledger.ts';
import { exclusiveCpus, misplacedOption, readPolicyOptions, reservedCpus } from '../../../../src/machines/allocation/cpus/policy.ts';
import { type TakeOptions, takeCpus } from '../../../../src/machines/allocation/cpus/take.ts';
import { type CpuInfo, topologyOf } from '../../../../src/machines/allocation/cpus/topology.ts';
import type { Container } from '../../../../src/machines/kube/podTable.ts';
import type { Pod } from '../../../../src/machines/kube/types.ts';
import { fnv1a32 } from '../../../../src/machines/text/checksum.ts';
import { container, pod, sidecar } from '../../pods/fixtures.ts';
import { goldenTable } from '../table.ts';

/** Threads of a core are numbered as kernels do: first all first threads, then all second ones. */
function machine(o: { sockets: number; cores: number; threads: number; nodesPerSocket?: number }): CpuInfo[] {
  const cores = o.sockets * o.cores;
  const infos: CpuInfo[] = [];
  for (let id = 0; id < cores * o.threads; id++) {
    const core = id % cores;
    const socket = Math.floor(core / o.cores);
    const perNode = o.cores / (o.nodesPerSocket ?? 1);
    const siblings = Array.from({ length: o.threads }, (_, t) => core + t * cores);
    infos.push({ id, socket, siblings, node: Math.floor(core / perNode) });
  }
  return infos;
}
const FLAT = topologyOf(machine({ sockets: 1, cores: 4, threads: 1 }));
const SMT = topologyOf(machine({ sockets: 1, cores: 4, threads: 2 }));
const DUAL = topologyOf(machine({ sockets: 2, cores: 4, threads: 2 }));
const SPLIT = topologyOf(machine({ sockets: 1, cores: 4, threads: 2, nodesPerSocket: 2 }));

const set = (text: string) => parseCpuSet(text) ?? [];
const take =
  (topology: CpuPlace['topology'], free: string, n: number, o: TakeOptions = {}) =>
  () => {
    const got = takeCpus(topology, { free: set(free), n }, o);
    return got.ok ? formatCpuSet(got.cpus) : got.why;
  };

const place = (topology: CpuPlace['topology'], reserved: string, policy: Partial<CpuPlace['policy']> = {}): CpuPlace => ({
  topology,
  policy,
  reserved: set(reserved),
});
const whole = (cpu: string, memory = '1Gi') => ({ resources: { requests: { cpu, memory }, limits: { cpu, memory } } });
const guaranteed = (...cpus: string[]): Pod => pod({ containers: cpus.map((cpu, i) => container(`c${i}`, whole(cpu))) });
const asks =
  (of: Pod, c: Container | undefined = of.spec.containers[0]) =>
  () =>
    c === undefined ? null : exclusiveCpus(of, c);

const shown = (ledger: CpuLedger) => ({
  shared: formatCpuSet(ledger.shared),
  entries: Object.fromEntries(
    [...ledger.entries].map(([uid, cs]) => [uid, Object.fromEntries([...cs].map(([n, c]) => [n, formatCpuSet(c)]))]),
  ),
});
const ledger = (shared: string, entries: Record<string, Record<string, string>> = {}): CpuLedger => ({
  shared: set(shared),
  entries: new Map(Object.entries(entries).map(([uid, cs]) => [uid, new Map(Object.entries(cs).map(([n, c]) => [n, set(c)]))])),
});
const granted =
  (at: CpuPlace, of: Pod, from = firstLedger(at)) =>
  () => {
    const result = grant(from, of, at);
    return result.ok ? shown(result.ledger) : result.refusal;
  };
const FOUR = place(FLAT, '0');
const CORES = place(SMT, '0,4', { fullCoresOnly: true });
const opened =
  (text: string | null, at: CpuPlace | null = FOUR) =>
  () => {
    const result = openCpuState(text, { place: at, file: '/root/cpu_manager_state' });
    return result.ok ? { ...result, ledger: result.ledger === null ? null : shown(result.ledger) } : result.message;
  };
const file = (o: { policy?: string; shared?: string; entries?: Record<string, Record<string, string>>; checksum?: number }) => {
  const texts = { policyName: o.policy ?? 'static', defaultCpuSet: o.shared ?? '0-3', entries: o.entries ?? {} };
  return JSON.stringify({ ...texts, checksum: o.checksum ?? cpuStateChecksum(texts) });
};
const reserved = (topology: CpuPlace['topology'], o: { list?: string; kube?: string; system?: string }) => () => {
  const kubeReserved = o.kube === undefined ? {} : { cpu: o.kube };
  const systemReserved = o.system === undefined ? {} : { cpu: o.system };
  const result = reservedCpus(topology, { kubeReserved, systemReserved, reservedSystemCPUs: o.list ?? '' }, {});
  return result.ok ? formatCpuSet(result.cpus) : result.message;
};
const options =
  (given: Record<string, string>, gates: readonly string[] = ['CPUManagerPolicyBetaOptions']) =>
  () =>
    readPolicyOptions(given, (gate) => gates.includes(gate));

const VECTOR = { policyName: 'none', defaultCpuSet: '', entries: {} };

goldenTable('CPUs of their own', 'allocation/cpus', {
  'checksum: nothing was hashed': () => fnv1a32(''),
  'checksum: policy none, which allocates nothing (trap 26)': () => cpuStateChecksum(VECTOR) === 1_353_318_690,
  'checksum: two containers of a pod (trap 26)': () =>
    cpuStateChecksum({ ...VECTOR, defaultCpuSet: '1-3', entries: { pod: { container2: '1-3', container1: '4-6' } } }) === 3_610_638_499,
  'checksum: no entries (trap 26)': () => cpuStateChecksum({ ...VECTOR, defaultCpuSet: '4-6' }) === 354_655_845,
  'checksum: the older file, by ids of containers (trap 26)': () =>
    olderCpuStateChecksum({ ...VECTOR, defaultCpuSet: '1-3', entries: { containerID1: '4-6', containerID2: '1-3' } }) === 3_680_390_589,
  'checksum: the older file without entries (trap 26)': () => olderCpuStateChecksum({ ...VECTOR, defaultCpuSet: '1-3' }) === 1_694_838_852,

  'list: empty': () => parseCpuSet(''),
  'list: of ranges and single ones, twice named and out of order': () => parseCpuSet('7,0-3,2'),
  'list: backwards': () => parseCpuSet('3-1'),
  'list: with a gap': () => parseCpuSet('1,,2'),
  'list: not of numbers': () => parseCpuSet('a-b'),
  'list: longer than any machine': () => parseCpuSet('0-99999'),
  'text: runs of two are ranges': () => formatCpuSet([0, 1, 3, 5, 6, 7]),
  'text: none': () => formatCpuSet([]),

  'alone: whole CPUs of a Guaranteed pod': asks(guaranteed('2')),
  'alone: 1500m share (trap 21)': asks(guaranteed('1500m')),
  'alone: 2000m are two': asks(guaranteed('2000m')),
  'alone: a Burstable pod shares': asks(pod({ containers: [container('c0', { resources: { requests: { cpu: '2' } } })] })),
  'alone: a container that shares makes no other of its pod share': asks(
    guaranteed('500m', '2'),
    guaranteed('500m', '2').spec.containers[1],
  ),
  'alone: resources of the pod as a whole share': asks(pod({ resources: whole('2').resources, containers: [container('c0', whole('2'))] })),

  'take: more than there are': take(FLAT, '1-3', 4),
  'take: none': take(FLAT, '0-3', 0),
  'take: the first free ones where all cores have one thread': take(FLAT, '1-3', 2),
  'take: a whole core for two': take(SMT, '0-7', 2),
  'take: a core that is free, not the rest of two others': take(SMT, '1-6', 2),
  'take: the rest of a core for one': take(SMT, '1-7', 1),
  'take: a core and a thread': take(SMT, '0-7', 3),
  'take: the whole socket': take(DUAL, '0-15', 8),
  'take: the socket that is all free': take(DUAL, '1-15', 8),
  'take: a socket and a core of the other': take(DUAL, '0-15', 10),
  'take: cores of the socket with fewer of them': take(DUAL, '0-3,6-7,8-11,14-15', 4),
  'take: the last thread beside what was taken': take(DUAL, '0-15', 11),
  'take: single threads from the socket with less left': take(DUAL, '0-3,5', 1),
  'take: a memory node before cores of two': take(SPLIT, '1-7', 4),
  'take: no core with two threads before each has one (distribute-cpus-across-cores)': take(SMT, '0-7', 4, { acrossCores: true }),
  'take: second threads when there are no others (distribute-cpus-across-cores)': take(SMT, '0-7', 6, { acrossCores: true }),

  'reserved: a list': reserved(SMT, { list: '0,4' }),
  'reserved: a list with CPUs that are not there': reserved(SMT, { list: '0,8-9' }),
  'reserved: what system and kubelet ask for, rounded up': reserved(SMT, { kube: '500m', system: '1' }),
  'reserved: nothing': reserved(SMT, {}),
  'reserved: more than there is': reserved(FLAT, { system: '5' }),

  'options: none': options({}),
  'options: full-pcpus-only': options({ 'full-pcpus-only': 'true' }, []),
  'options: switched off': options({ 'full-pcpus-only': 'false', 'align-by-socket': 'false' }, ['CPUManagerPolicyAlphaOptions']),
  'options: beta, without its gate': options({ 'distribute-cpus-across-numa': 'true' }, []),
  'options: alpha, without its gate': options({ 'align-by-socket': 'true' }),
  'options: stable': options({ 'strict-cpu-reservation': 'true', 'prefer-align-cpus-by-uncorecache': '1' }, []),
  'options: alpha, with its gate': options({ 'distribute-cpus-across-cores': 'true' }, ['CPUManagerPolicyAlphaOptions']),
  'options: two that contradict': options({ 'full-pcpus-only': 'true', 'distribute-cpus-across-cores': 'true' }, [
    'CPUManagerPolicyAlphaOptions',
  ]),
  'options: distribute-cpus-across-numa': options({ 'distribute-cpus-across-numa': 'true' }),
  'options: each other pair that contradicts': options(
    { 'distribute-cpus-across-numa': 'true', 'distribute-cpus-across-cores': 'true', 'prefer-align-cpus-by-uncorecache': 'true' },
    ['CPUManagerPolicyAlphaOptions', 'CPUManagerPolicyBetaOptions'],
  ),
  'options: align-by-socket with single-numa-node': () => misplacedOption({ bySocket: true }, DUAL, 'single-numa-node'),
  'options: align-by-socket with more sockets than NUMA nodes': () =>
    misplacedOption({ bySocket: true }, topologyOf(machine({ sockets: 2, cores: 2, threads: 1 }).map((c) => ({ ...c, node: 0 }))), 'none'),
  'options: unknown': options({ 'full-cpus': 'true' }),
  'options: not true or false': options({ 'full-pcpus-only': 'yes' }),

  'grant: two containers': granted(FOUR, guaranteed('1', '2')),
  'grant: one that shares takes none': granted(FOUR, guaranteed('1500m', '1')),
  'grant: never what is reserved': granted(FOUR, guaranteed('4')),
  'grant: all or none': granted(FOUR, guaranteed('2', '2')),
  'grant: again is the same': granted(FOUR, guaranteed('1'), ledger('0-2', { 'uid-1': { c0: '3' } })),
  'grant: another number takes others': granted(FOUR, guaranteed('2'), ledger('0-2', { 'uid-1': { c0: '3' } })),
  'grant: what init containers held is used again (trap 23)': granted(
    FOUR,
    pod({ initContainers: [container('i0', whole('3')), container('i1', whole('1'))], containers: [container('c0', whole('3'))] }),
  ),
  'grant: what a sidecar holds is its own (trap 23)': granted(
    FOUR,
    pod({ initContainers: [{ ...sidecar('s0'), ...whole('1') }], containers: [container('c0', whole('3'))] }),
  ),
  'grant: a sidecar may have what an init container before it held': granted(
    FOUR,
    pod({ initContainers: [container('i0', whole('2')), { ...sidecar('s0'), ...whole('1') }], containers: [container('c0', whole('2'))] }),
  ),
  'grant: parts of a core, where whole ones are wanted': granted(CORES, guaranteed('1')),
  'grant: a whole core': granted(CORES, guaranteed('2')),
  'grant: the one core that is whole': granted(CORES, guaranteed('2'), ledger('0-4,6', { x: { a: '5,7' } })),
  'grant: no core is whole': granted(CORES, guaranteed('2'), ledger('0-4', { x: { a: '5-7' } })),
  'grant: from what is not strictly reserved': granted(place(FLAT, '0', { strictReservation: true }), guaranteed('3')),

  'release: a pod': () => shown(release(ledger('0', { a: { x: '1', y: '2' }, b: { z: '3' } }), ['a', 'c'])),
  'release: containers that are no longer named keep nothing': () => {
    const of = guaranteed('1');
    return shown(releaseUnnamed(ledger('0', { 'uid-1': { c0: '1', old: '1-3' } }), of));
  },

  'kept: as it should be': () => mistakeIn(ledger('0-1', { a: { x: '2-3' } }), FOUR),
  'kept: nothing is left to share': () => mistakeIn(ledger('', { a: { x: '0-3' } }), FOUR),
  'kept: nothing is left to share beside strictly reserved ones': () =>
    mistakeIn(ledger('', { a: { x: '1-3' } }), place(FLAT, '0', { strictReservation: true })),
  'kept: others are reserved now': () => mistakeIn(ledger('1-3', { a: { x: '0' } }), FOUR),
  'kept: shared and allocated': () => mistakeIn(ledger('0-2', { a: { x: '2-3' } }), FOUR),
  'kept: a CPU has come': () => mistakeIn(ledger('0-2'), FOUR),
  'kept: a CPU has gone': () => mistakeIn(ledger('0-4'), FOUR),
  'kept: strictly reserved ones were shared': () => mistakeIn(ledger('0-3'), place(FLAT, '0', { strictReservation: true })),
  'kept: strictly reserved ones are nobody else has': () => mistakeIn(ledger('1-3'), place(FLAT, '0', { strictReservation: true })),

  'file: policy none': () => encodeCpuState(null),
  'file: with entries': () => encodeCpuState(ledger('0', { b: { x: '3' }, a: { z: '2', y: '1' } })),
  'open: none, first start': opened(null),
  'open: none, policy none': opened(null, null),
  'open: an empty one': opened(''),
  'open: as it was left': opened(encodeCpuState(ledger('0-1', { a: { x: '2-3' } }))),
  'open: keys in another case': opened('{"PolicyName":"static","DefaultCPUSet":"0-3","Checksum":0}'),
  'open: begun and never used': opened(file({ shared: '' })),
  'open: of policy none, under static (trap 25)': opened(encodeCpuState(null)),
  'open: of policy static, under none (trap 25)': opened(encodeCpuState(ledger('0-3')), null),
  'open: of policy none, under none': opened(encodeCpuState(null), null),
  'open: altered': opened(file({ checksum: 7 })),
  'open: without a checksum': opened(file({ checksum: 0 })),
  'open: not JSON': opened('{'),
  'open: another thing': opened('[]'),
  'open: of other CPUs': opened(encodeCpuState(ledger('0-7'))),
  'open: no list of CPUs': opened(file({ shared: '0-' })),
  'open: by ids of containers': opened(
    JSON.stringify({
      policyName: 'static',
      defaultCpuSet: '0-2',
      entries: { c1: '3' },
      checksum: olderCpuStateChecksum({ policyName: 'static', defaultCpuSet: '0-2', entries: { c1: '3' } }),
    }),
  ),
});
