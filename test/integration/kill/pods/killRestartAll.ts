/** For every state of the restart of all containers: how a node is driven there. */
import { pod, type VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const CODE = 88;
const rule = {
  restartPolicy: 'Always',
  restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [CODE] } }],
};
const worker = (h: VirtualNode) => h.workerPath('subject');
const both = (h: VirtualNode) => h.running('subject').length === 2 && h.phase('subject') === 'Running';

/** The first instance of one container ends so, beside one that stays. */
function restarting(state: string, hold: (h: VirtualNode) => void): KillCase {
  return {
    covers: `podWorker syncing.resetting.${state}`,
    path: worker,
    arrange: async (h) => {
      const containers = [
        { name: 'main', image: 'busybox:1', ...rule },
        { name: 'stays', image: 'busybox:1' },
      ];
      h.write('subject', pod('subject', { lives: { main: `run=3s,exit=${CODE};` }, spec: { containers } }));
      await h.until('both run', () => both(h));
      hold(h);
    },
    release: (h) => {
      h.faults.latencyMs = {};
      h.faults.deaf = false;
    },
    rests: (h) =>
      both(h) && h.status('subject')?.status.conditions?.some((c) => c.type === 'AllContainersRestarting' && c.status === 'False') === true,
    restsWithinMs: 120_000,
  };
}
const slow = (method: 'StopContainer' | 'RemoveContainer') => (h: VirtualNode) => {
  h.faults.latencyMs[method] = 2_000;
};

export const RESTART_ALL_CASES: KillCase[] = [
  restarting('stopping', slow('StopContainer')),
  restarting('removing', slow('RemoveContainer')),
  restarting('inspecting', (h) => {
    const path = worker(h);
    const seen = h.tree.observe((e) => {
      if (e.kind !== 'transition' || e.path !== path || e.to !== 'syncing.resetting.fencing') return;
      seen[Symbol.dispose]();
      h.faults.latencyMs.ListContainers = 300;
    });
  }),
  {
    // The act in flight is a start that goes on although it was cancelled.
    ...restarting('fencing', () => {}),
    arrange: async (h) => {
      const containers = [
        { name: 'main', image: 'busybox:1', ...rule },
        { name: 'stays', image: 'busybox:1' },
      ];
      const lives = { main: `run=3s,exit=${CODE};`, stays: 'startDelay=6s' };
      h.faults.deaf = true;
      h.write('subject', pod('subject', { lives, spec: { containers } }));
      await h.until('one is being started', () => h.containerState('subject', 'stays') === 'starting');
    },
  },
];
