/** How a node is driven into the restart of all containers of a pod. */
import { pod, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const CODE = 88;
const rule = {
  restartPolicy: 'Always',
  restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [CODE] } }],
};
const worker = (h: VirtualNode) => h.workerPath('subject');
const both = (h: VirtualNode) => h.running('subject').length === 2 && h.phase('subject') === 'Running';

/** The first instance of one container ends so, beside one that stays; `method` takes its time. */
function restarting(method: 'StopContainer' | 'RemoveContainer'): KillCase {
  return {
    covers: 'podWorker syncing.resetting',
    path: worker,
    arrange: async (h) => {
      const containers = [
        { name: 'main', image: 'busybox:1', ...rule },
        { name: 'stays', image: 'busybox:1' },
      ];
      h.write('subject', pod('subject', { lives: { main: `run=3s,exit=${CODE};` }, spec: { containers } }));
      await h.until('both run', () => both(h));
      h.faults.latencyMs[method] = 2_000;
    },
    release: (h) => {
      h.faults.latencyMs = {};
    },
    rests: (h) =>
      both(h) && h.status('subject')?.status.conditions?.some((c) => c.type === 'AllContainersRestarting' && c.status === 'False') === true,
    restsWithinMs: 120_000,
  };
}

export const RESTART_ALL_CASES: KillCase[] = [restarting('StopContainer'), restarting('RemoveContainer')];
