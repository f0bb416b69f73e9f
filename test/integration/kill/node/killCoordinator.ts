/** The coordinator of allocation, killed at rest and while a provider takes its time: the pod manager asks again. */

import { pod, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const path = 'node/allocation/coordinator';
const options = { config: { cpuManagerPolicy: 'static', reservedSystemCPUs: '0' } };
const amounts = { cpu: '1', memory: '64Mi' };
const subject = pod('subject', { container: { resources: { requests: amounts, limits: amounts } } });

const asks = (h: VirtualNode): boolean => {
  const snapshot = h.tree.actorAt(path)?.getSnapshot() as { children?: Record<string, unknown> } | undefined;
  return Object.keys(snapshot?.children ?? {}).length > 0;
};
const rests = (h: VirtualNode) => h.running('subject')[0]?.resources?.cpusetCpus === '1' && h.phase('subject') === 'Running';

export const COORDINATOR_CASES: KillCase[] = [
  {
    options,
    covers: 'coordinator serving',
    path,
    arrange: async (h) => {
      h.write('subject', subject);
      await h.until('it runs', () => rests(h));
    },
    rests,
  },
  {
    options,
    covers: 'podAllocation asking',
    path,
    at: asks,
    arrange: async (h) => {
      h.fs.delayMs = (op, file) => (op === 'rename' && file.endsWith('cpu_manager_state') ? 800 : 0);
      h.write('subject', subject);
      await h.until('a provider is asked', () => asks(h));
    },
    release: (h) => {
      h.fs.delayMs = () => 0;
    },
    rests,
  },
  {
    options: { config: { ...options.config, topologyManagerPolicy: 'single-numa-node' } },
    covers: 'podAllocation weighing',
    path,
    at: asks,
    // The CPU manager tells of NUMA nodes when it has read what it allocated before.
    arrange: async (h) => {
      h.fs.delayMs = (op, file) => (op === 'readFile' && file.endsWith('cpu_manager_state') ? 800 : 0);
      h.kill('node/allocation/cpus');
      h.write('subject', subject);
      await h.until('a provider is asked', () => asks(h));
    },
    release: (h) => {
      h.fs.delayMs = () => 0;
    },
    rests,
  },
];
