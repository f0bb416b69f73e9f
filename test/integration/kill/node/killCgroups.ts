/** Who keeps the node's own cgroups, killed in each of its states. */
import { pod, type VirtualNode } from '../../virtualNode.ts';
import { sharing } from '../killing.ts';

const path = 'node/allocation/cgroups';
const enforced = (h: VirtualNode): boolean => h.state(path) === 'enforced';
const slow = (h: VirtualNode): void => {
  h.cgroups.delayMs = (operation) => (operation === 'apply' || operation === 'create' ? 500 : 0);
};
/** All of it is made anew once its classes are gone. */
async function begunAnew(h: VirtualNode): Promise<void> {
  await h.until('all is there', () => enforced(h));
  h.cgroups.take('/kubepods/burstable');
  await h.until('it noticed', () => h.state(path) === 'renewFailed', 120_000);
}

export const CGROUP_CASES = sharing({ path, options: { cgroups: true }, rests: enforced }, [
  { covers: 'cgroups enforced', arrange: (h) => h.until('all is there', () => enforced(h)) },
  { covers: 'cgroups renewFailed', arrange: begunAnew },
  {
    covers: 'cgroups preparing',
    arrange: async (h) => {
      await begunAnew(h);
      slow(h);
      await h.until('it begins anew', () => h.state(path) === 'preparing');
    },
  },
  {
    covers: 'cgroups enforcing',
    arrange: async (h) => {
      await begunAnew(h);
      slow(h);
      await h.until('it sets the limits', () => h.state(path) === 'enforcing');
    },
  },
  {
    covers: 'cgroups awaitingDriver',
    arrange: async (h) => {
      await h.crash();
      h.faults.away = true;
      await h.boot();
    },
  },
  {
    covers: 'podWorker syncing.notYet',
    path: (h) => h.workerPath('subject'),
    arrange: async (h) => {
      await begunAnew(h);
      h.cgroups.failing = (operation) => (operation === 'create' ? 'EIO' : null);
      await h.until('it cannot', () => h.state(path) === 'unprepared');
      h.write('subject', pod('subject'));
      await h.until('it waits', () => h.record('subject') && h.state(h.workerPath('subject')) === 'syncing.notYet');
    },
    rests: (h) => enforced(h) && h.phase('subject') === 'Running',
    restsWithinMs: 120_000,
  },
  {
    covers: 'cgroups unprepared',
    arrange: async (h) => {
      await begunAnew(h);
      h.cgroups.failing = (operation) => (operation === 'create' ? 'EIO' : null);
      await h.until('it cannot', () => h.state(path) === 'unprepared');
    },
  },
  {
    covers: 'cgroups notEnforced',
    arrange: async (h) => {
      await begunAnew(h);
      h.cgroups.failing = (operation, at) => (operation === 'apply' && at === '/kubepods' ? 'EBUSY' : null);
      await h.until('it cannot', () => h.state(path) === 'notEnforced');
    },
  },
  {
    covers: 'cgroups renewing',
    arrange: async (h) => {
      await h.until('all is there', () => enforced(h));
      slow(h);
      await h.until('it looks again', () => h.state(path) === 'renewing', 120_000);
    },
  },
  {
    covers: 'cgroupReaper sweeping',
    path: 'node/allocation/cgroupReaper',
    arrange: async (h) => {
      await h.run('subject', pod('subject'));
      h.cgroups.delayMs = (operation) => (operation === 'remove' ? 500 : 0);
      h.remove('subject');
      await h.until('its group goes', () => h.state('node/allocation/cgroupReaper') === 'sweeping' && h.record('subject') === undefined);
    },
    at: (h) => h.state('node/allocation/cgroupReaper') === 'sweeping',
    rests: (h) => ![...h.cgroups.groups.keys()].some((p) => p.startsWith('/kubepods/besteffort/pod') && h.cgroups.pidsIn(p).length === 0),
  },
]);
