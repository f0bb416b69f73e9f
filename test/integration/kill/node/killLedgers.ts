/** The CPU manager and the memory manager, killed in each of the states of their ledgers. */
import { pod, type VirtualNode, type VirtualNodeOptions } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

interface Ledger {
  /** Of the actor, and the first word of its states. */
  name: 'cpus' | 'memory';
  /** Of the states of the ledger. */
  prefix: string;
  file: string;
  words: string;
  options: VirtualNodeOptions;
  requests: Readonly<Record<string, string>>;
  rests(h: VirtualNode): boolean;
}
const CPUS: Ledger = {
  ...{ name: 'cpus', prefix: 'serving.ledger.', file: 'cpu_manager_state', words: 'the record of allocated CPUs' },
  options: { config: { cpuManagerPolicy: 'static', reservedSystemCPUs: '0' } },
  requests: { cpu: '1', memory: '64Mi' },
  rests: (h) => h.running('subject')[0]?.resources?.cpusetCpus === '1' && h.phase('subject') === 'Running',
};
const MEMORY: Ledger = {
  ...{ name: 'memory', prefix: '', file: 'memory_manager_state', words: 'the record of allocated memory' },
  options: {
    config: {
      memoryManagerPolicy: 'Static',
      systemReserved: { memory: '412Mi' },
      evictionHard: { 'memory.available': '100Mi' },
      reservedMemory: [{ numaNode: 0, limits: { memory: '512Mi' } }],
    },
  },
  requests: { cpu: '100m', memory: '64Mi' },
  rests: (h) => h.running('subject')[0]?.resources?.cpusetMems === '0' && h.phase('subject') === 'Running',
};

function casesOf({ name, prefix, file, words, options, requests, rests }: Ledger) {
  const path = `node/allocation/${name}`;
  const subject = pod('subject', { container: { resources: { requests, limits: requests } } });
  const slowFile = (op: string) => (h: VirtualNode) => {
    h.fs.delayMs = (asked, at) => (asked === op && at.endsWith(file) ? 800 : 0);
  };
  const base = { options, path, rests };
  /** Killed in `state`, of the ledger or of a region beside it, when it gets there after `hold`. */
  const inState = (state: string, hold: (h: VirtualNode) => void = () => {}, more: Partial<KillCase> = {}): KillCase => ({
    ...base,
    covers: `${name} ${state.includes('.') ? state : `${prefix}${state}`}`,
    at: (h) => JSON.stringify(h.tree.actorAt(path)?.getSnapshot()?.value ?? '').includes(`"${state.split('.').at(-1)}"`),
    arrange: async (h) => {
      hold(h);
      h.write('subject', subject);
    },
    ...more,
  });
  const cases: KillCase[] = [
    {
      ...base,
      covers: `${name} loading`,
      arrange: async (h) => {
        slowFile('readFile')(h);
        h.write('subject', subject);
        h.kill(path);
      },
    },
    inState('settled'),
    // What the one before was about to rename may be what the next one wrote; that is written again.
    inState('saving', slowFile('rename'), { errors: new RegExp(`${words} cannot be written.*ENOENT`) }),
    inState(
      'saveFailed',
      (h) => {
        h.fs.failing = (op, at) => (op === 'writeFile' && at.includes(file) ? 'EIO' : undefined);
      },
      { errors: new RegExp(`${words} cannot be written`) },
    ),
  ];
  return { cases, inState };
}

const cpus = casesOf(CPUS);
export const CPU_CASES: KillCase[] = [
  ...cpus.cases,
  cpus.inState('serving.sharing.resting'),
  cpus.inState('serving.sharing.confining', (h) => {
    h.faults.latencyMs.UpdateContainerResources = 800;
  }),
];
export const MEMORY_CASES: KillCase[] = casesOf(MEMORY).cases;
