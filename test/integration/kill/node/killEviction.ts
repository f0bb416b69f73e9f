/** The eviction manager, killed in each of its states; the bystanders are static pods, which it never touches. */
import { create } from '../../cluster/clusterPods.ts';
import type { VirtualNode } from '../../virtualNode.ts';
import { sharing } from '../killing.ts';

const path = 'node/reclaim/eviction';
const MIB = 1024 ** 2;
const options = { cluster: true, config: { evictionPressureTransitionPeriod: 0 } };

const short = (h: VirtualNode): void => {
  h.memory.availableBytes = 10 * MIB;
};
const full = (h: VirtualNode): void => {
  h.fs.room = { ...h.fs.room, bytesAvailable: 1 };
};
const release = (h: VirtualNode): void => {
  h.fs.room = { ...h.fs.room, bytesAvailable: 5e11 };
};
const runs = (h: VirtualNode) => h.until('the pod of the API runs', () => h.phase('victim') === 'Running');
const evicted = (h: VirtualNode): boolean => h.phase('victim') === 'Failed' && h.running('victim').length === 0;

export const EVICTION_CASES = sharing({ path, options, release }, [
  { covers: 'eviction resting' },
  {
    covers: 'eviction observing',
    arrange: async (h) => {
      h.faults.latencyMs = { ImageFsInfo: 2_000 };
      h.kill(path);
    },
  },
  {
    covers: 'eviction checkingLimits',
    arrange: async (h) => {
      create(h, 'victim-n1', { container: { resources: { limits: { 'ephemeral-storage': '1Gi' } } } });
      await runs(h);
      h.faults.latencyMs = { ListContainerStats: 2_000 };
      h.kill(path);
    },
  },
  { covers: 'eviction collecting', arrange: async (h) => full(h) },
  {
    options: { ...options, before: (h: VirtualNode) => h.fs.makeDir('/var/lib/hollow') },
    covers: 'eviction freeingImages',
    arrange: async (h) => {
      h.faults.latencyMs = { ListImages: 3_000 };
      full(h);
    },
  },
  {
    covers: 'eviction measuring',
    arrange: async (h) => {
      create(h, 'victim-n1');
      await runs(h);
      h.faults.latencyMs = { ListContainerStats: 2_000 };
      short(h);
    },
    rests: evicted,
  },
  {
    covers: 'eviction awaitingEnd',
    arrange: async (h) => {
      create(h, 'victim-n1', { life: 'run=forever,term=ignore' });
      await runs(h);
      short(h);
    },
    rests: evicted,
  },
]);
