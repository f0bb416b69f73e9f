/** The coordinator of allocation, killed at rest and while a provider takes its time: the pod manager asks again. */
import { pod, type VirtualNode } from '../../virtualNode.ts';
import { sharing } from '../killing.ts';

const path = 'node/allocation/coordinator';
const options = { config: { cpuManagerPolicy: 'static', reservedSystemCPUs: '0' } };
const amounts = { cpu: '1', memory: '64Mi' };
const subject = pod('subject', { container: { resources: { requests: amounts, limits: amounts } } });

const asks = (state: string) => (h: VirtualNode) => h.charts(path, '').includes(state);
/** The CPU manager answers when it has read what it allocated before. */
const arrangeLoading = (state: string) => async (h: VirtualNode) => {
  h.fs.delayMs = (op, file) => (op === 'readFile' && file.endsWith('cpu_manager_state') ? 800 : 0);
  h.kill('node/allocation/cpus');
  h.write('subject', subject);
  await h.until('a provider is asked', () => asks(state)(h));
};
const rests = (h: VirtualNode) => h.running('subject')[0]?.resources?.cpusetCpus === '1' && h.phase('subject') === 'Running';

export const COORDINATOR_CASES = sharing({ path, options, rests }, [
  {
    covers: 'coordinator serving',
    arrange: async (h) => {
      h.write('subject', subject);
      await h.until('it runs', () => rests(h));
    },
  },
  {
    covers: 'podAllocation asking',
    at: asks('asking'),
    arrange: arrangeLoading('asking'),
  },
  {
    covers: 'podAllocation keeping',
    at: asks('keeping'),
    arrange: async (h) => {
      h.fs.delayMs = (op, file) => (op === 'rename' && file.endsWith('cpu_manager_state') ? 800 : 0);
      h.write('subject', subject);
      await h.until('what it is allocated is written', () => asks('keeping')(h));
    },
  },
  {
    options: { config: { ...options.config, topologyManagerPolicy: 'single-numa-node' } },
    covers: 'podAllocation weighing',
    at: asks('weighing'),
    arrange: arrangeLoading('weighing'),
  },
]);
