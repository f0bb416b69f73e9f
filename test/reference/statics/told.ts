/** Pods of `statics.ts`, and what a node agent did with them: plain data, with names in place of UIDs. */
import { join } from 'node:path';
import { decodeMemoryState } from '../../../src/machines/allocation/memory/file.ts';
import type { NumaNode } from '../../../src/machines/allocation/numaNode.ts';
import type { KubeletConfiguration } from '../../../src/machines/config/config.ts';
import type { Container, PodSpec } from '../../../src/machines/kube/podTable.ts';
import type { Host } from '../../../src/ports/ports.ts';

export const STATICS_RECORDING = join(import.meta.dirname, '../recorded/allocation/statics136.json');

export interface ToldPod {
  /** '' where it runs. */
  reason: string;
  message: string;
  /** CPUs and NUMA nodes that the runtime was told, by container. */
  placed: Record<string, readonly [string, string]>;
}
export interface ToldTurn {
  pods: Record<string, ToldPod>;
  /** `cpu_manager_state` without its checksum, and who has which memory in `memory_manager_state`. */
  files: { cpus: unknown; memory: unknown };
  metrics: readonly string[];
}
export interface ToldStatics {
  machine: { cpus: ReturnType<NonNullable<Host['cpus']>>; numaNodes: readonly NumaNode[] };
  turns: Record<string, ToldTurn>;
}

/** The same on both nodes. */
export const COMMON: Partial<KubeletConfiguration> = {
  cpuManagerPolicy: 'static',
  // Said in each turn: the configuration of the one before stays where nothing is said.
  cpuManagerPolicyOptions: {},
  topologyManagerScope: 'container',
  memoryManagerPolicy: 'Static',
  systemReserved: { cpu: '500m', memory: '412Mi' },
  evictionHard: { 'memory.available': '100Mi' },
  reservedMemory: [{ numaNode: 0, limits: { memory: '512Mi' } }],
};
export const TURNS: Readonly<Record<string, Partial<KubeletConfiguration>>> = {
  'single-numa-node': { topologyManagerPolicy: 'single-numa-node' },
  'restricted, pod, full-pcpus-only': {
    topologyManagerPolicy: 'restricted',
    topologyManagerScope: 'pod',
    cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' },
  },
  none: { topologyManagerPolicy: 'none' },
};

type Make = (name: string, more: Partial<Container>) => Container;
const amounts = (cpu: string, memory: string) => ({ requests: { cpu, memory }, limits: { cpu, memory } });

/** In the order in which they come. `make`: a container that stays; `brief`: one that ends. */
export function pods(make: Make, brief: Make): Record<string, Partial<PodSpec> & { containers: Container[] }> {
  return {
    steps: {
      initContainers: [
        brief('first', { resources: amounts('1', '64Mi') }),
        make('beside', { resources: amounts('100m', '16Mi'), restartPolicy: 'Always' }),
      ],
      containers: [make('main', { resources: amounts('1', '32Mi') })],
    },
    share: { containers: [make('main', { resources: { requests: { cpu: '10m' } } })] },
    part: { containers: [make('main', { resources: amounts('50m', '24Mi') }), make('more', { resources: amounts('50m', '8Mi') })] },
    whole: { containers: [make('main', { resources: amounts('1', '16Mi') })] },
  };
}

/** `named`: replaces UIDs. */
export function filesOf(cpus: string, memory: string, named: <T>(value: T) => T): ToldTurn['files'] {
  const { checksum: _, ...state } = JSON.parse(cpus) as { checksum: number };
  const read = decodeMemoryState(memory);
  const entries = read.ok ? [...read.ledger.entries].map(([uid, of]) => [uid, Object.fromEntries([...of].sort())]) : read.why;
  return named({ cpus: state, memory: Array.isArray(entries) ? Object.fromEntries(entries) : entries });
}

const FIGURES =
  /^kubelet_((cpu_manager|memory_manager)_\w+|topology_manager_admission_(requests|errors)_total|container_aligned_compute_resources\w+)[ {]/;
/** The kubelet loses these zeros, where it sets them before its registry is there. */
const NEVER = /^kubelet_container_aligned_\w+\{.*\} 0$/;

/** Labels are in the order of their names. */
export const metricsOf = (page: string): string[] =>
  page
    .split('\n')
    .filter((line) => FIGURES.test(line) && !NEVER.test(line))
    .map((line) => line.replace(/\{(.*)\}/, (_, labels: string) => `{${labels.split(',').sort().join(',')}}`))
    .sort();

/** Without what providers could give, which the kubelet does not tell. */
export const plainly = (message: string): string => message.replace(/(Topology locality) \(.*\)$/s, '$1');
