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

const containers = [
  { name: 'main', image: 'busybox:1', ...rule },
  { name: 'stays', image: 'busybox:1' },
];
const REST = {
  rests: (h: VirtualNode) =>
    both(h) && h.status('subject')?.status.conditions?.some((c) => c.type === 'AllContainersRestarting' && c.status === 'False') === true,
  restsWithinMs: 120_000,
};

/** The first instance of one container ends so, beside one that stays; `method` takes its time. */
function removing(method: 'StopContainer' | 'RemoveContainer'): KillCase {
  return {
    covers: 'podWorker syncing.resetting.removing',
    path: worker,
    arrange: async (h) => {
      h.write('subject', pod('subject', { lives: { main: `run=3s,exit=${CODE};` }, spec: { containers } }));
      await h.until('both run', () => both(h));
      h.faults.latencyMs[method] = 2_000;
    },
    ...REST,
  };
}

export const RESTART_ALL_CASES: KillCase[] = [
  removing('StopContainer'),
  removing('RemoveContainer'),
  {
    // The act in flight is the creation of the other container, which goes on although it was cancelled.
    covers: 'podWorker syncing.resetting.fencing',
    path: worker,
    arrange: async (h) => {
      h.faults.deaf = true;
      h.faults.latencyMs.PullImage = 2_000;
      const [main, late] = [containers[0], { name: 'late', image: 'late:1' }];
      h.write('subject', pod('subject', { lives: { main: `run=3s,exit=${CODE};` }, spec: { containers: [main, late] } }));
      await h.until('main runs', () => h.running('subject').length === 1);
      h.faults.latencyMs.CreateContainer = 4_000;
    },
    ...REST,
  },
  {
    covers: 'podWorker syncing.resetting.inspecting',
    path: worker,
    arrange: async (h) => {
      h.write('subject', pod('subject', { lives: { main: `run=3s,exit=${CODE};` }, spec: { containers } }));
      await h.until('both run', () => both(h));
      const path = worker(h);
      const seen = h.tree.observe((e) => {
        if (e.kind !== 'transition' || e.path !== path || e.to !== 'syncing.resetting.fencing') return;
        seen[Symbol.dispose]();
        h.faults.latencyMs.ListContainers = 300;
      });
    },
    ...REST,
  },
];
