/** Faults of the managers that allocate CPUs, memory and devices of NUMA nodes. */
import type { Mutant } from './mutants.ts';

const CPUS = 'src/machines/allocation/cpus';

export const ALLOCATION_MUTANTS: readonly Mutant[] = [
  {
    id: 'a topology policy refuses nobody',
    file: 'src/machines/allocation/coordinator/merge.ts',
    find: "admitted: policy === 'best-effort' || affinity.preferred };",
    replace: 'admitted: true };',
  },
  {
    id: 'CPUs come from all NUMA nodes, whichever were chosen',
    file: `${CPUS}/ledger.ts`,
    find: 'const near = nodes === null ?',
    replace: 'const near = nodes !== undefined ?',
  },
  {
    id: 'memory comes from the best NUMA nodes, whichever were chosen',
    file: 'src/machines/allocation/memory/choose.ts',
    find: 'let { nodes, preferred } = affinity;',
    replace: 'let { nodes, preferred } = { ...affinity, nodes: null as Affinity["nodes"] };',
  },
  {
    id: 'devices come from all NUMA nodes, whichever were chosen',
    file: 'src/machines/allocation/devices/hints.ts',
    find: 'if (nodes === null || state === undefined || state.numa.size === 0) return plan;',
    replace: 'if (nodes !== undefined || state === undefined) return plan;',
  },
  {
    id: 'memory of a NUMA node is not freed with its pod',
    file: 'src/machines/allocation/memory/ledger.ts',
    find: 'machine = moved(machine, block, -1)',
    replace: 'machine = moved(machine, { ...block, size: 0 }, -1)',
  },
  {
    id: 'full-pcpus-only gives halves of cores',
    file: `${CPUS}/ledger.ts`,
    find: 'if (policy.fullCoresOnly === true && n % threads !== 0)',
    replace: 'if (policy.fullCoresOnly === undefined && n % threads === -1)',
  },
  {
    id: 'distribute-cpus-across-cores gives whole cores',
    file: `${CPUS}/take.ts`,
    find: "if (o.acrossCores !== true) taking.whole('core');",
    replace: "taking.whole('core');",
  },
  {
    id: 'prefer-align-cpus-by-uncorecache does not look at caches',
    file: `${CPUS}/take.ts`,
    find: 'if (o.byCache === true) taking.caches();',
    replace: '',
  },
  {
    id: 'strict-cpu-reservation shares the CPUs of the system',
    file: `${CPUS}/ledger.ts`,
    find: 'return { shared: policy.strictReservation === true ? without(all, reserved) : all, entries: new Map() };',
    replace: 'return { shared: all, entries: new Map() };',
  },
  {
    id: 'a change of a pod as a whole is granted unseen',
    file: 'src/machines/pods/resize/allocation.ts',
    find: ', [WHOLE_POD, amountsOf(pod.spec)]];',
    replace: '];',
  },
  {
    id: 'a pod as a whole is said to have what it had first',
    file: 'src/machines/pods/status/generate.ts',
    find: 'const resources = input.resizing === undefined ? granted : input.resizing.was;',
    replace: 'const resources = old.resources ?? granted;',
  },
];
