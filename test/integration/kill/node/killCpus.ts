/** The CPU manager, killed in each of its states. */
import { pod, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const path = 'node/allocation/cpus';
const options = { config: { cpuManagerPolicy: 'static', reservedSystemCPUs: '0' } };
const amounts = { cpu: '1', memory: '64Mi' };
const subject = pod('subject', { container: { resources: { requests: amounts, limits: amounts } } });

/** What the one before was about to rename may be what the next one wrote; that is written again. */
const HELD_UP = /the record of allocated CPUs cannot be written.*ENOENT/;

const value = (h: VirtualNode): string => JSON.stringify(h.tree.actorAt(path)?.getSnapshot()?.value ?? '');
const is =
  (state: string) =>
  (h: VirtualNode): boolean =>
    value(h).includes(`"${state}"`);
const slowFile = (op: string) => (h: VirtualNode) => {
  h.fs.delayMs = (name, file) => (name === op && file.endsWith('cpu_manager_state') ? 800 : 0);
};
const release = (h: VirtualNode) => {
  h.fs.delayMs = () => 0;
  h.fs.failing = () => undefined;
  h.faults.latencyMs = {};
};
const rests = (h: VirtualNode) => h.running('subject')[0]?.resources?.cpusetCpus === '1' && h.phase('subject') === 'Running';
const after = (hold: (h: VirtualNode) => void) => async (h: VirtualNode) => {
  hold(h);
  h.write('subject', subject);
};

export const CPU_CASES: KillCase[] = [
  {
    options,
    covers: 'cpus loading',
    path,
    arrange: async (h) => {
      slowFile('readFile')(h);
      h.write('subject', subject);
      h.kill(path);
    },
    release,
    rests,
  },
  { options, covers: 'cpus serving.ledger.settled', path, at: is('settled'), arrange: after(() => {}), rests },
  {
    options,
    covers: 'cpus serving.ledger.saving',
    path,
    at: is('saving'),
    arrange: after(slowFile('rename')),
    release,
    rests,
    errors: HELD_UP,
  },
  {
    options,
    covers: 'cpus serving.ledger.saveFailed',
    path,
    at: is('saveFailed'),
    arrange: after((h) => {
      h.fs.failing = (op, file) => (op === 'writeFile' && file.includes('cpu_manager_state') ? 'EIO' : undefined);
    }),
    release,
    rests,
    errors: /the record of allocated CPUs cannot be written/,
  },
  { options, covers: 'cpus serving.sharing.resting', path, at: is('resting'), arrange: after(() => {}), rests },
  {
    options,
    covers: 'cpus serving.sharing.confining',
    path,
    at: is('confining'),
    arrange: after((h) => {
      h.faults.latencyMs.UpdateContainerResources = 800;
    }),
    release,
    rests,
  },
];
