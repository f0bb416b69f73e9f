/** The eviction manager, killed in each of its states; the bystanders are static pods, which it never touches. */
import { create } from '../../cluster/clusterPods.ts';
import type { VirtualNode } from '../../virtualNode.ts';
import type { KillCase } from '../killing.ts';

const path = 'node/reclaim/eviction';
const MIB = 1024 ** 2;
const options = { cluster: true, config: { evictionPressureTransitionPeriod: 0 } };

const short = (h: VirtualNode): void => {
  h.memory.availableBytes = 10 * MIB;
};
const full = (h: VirtualNode): void => {
  h.fs.room = { ...h.fs.room, bytesAvailable: 1 };
};
const enough = (h: VirtualNode): void => {
  h.faults.latencyMs = {};
  h.fs.room = { ...h.fs.room, bytesAvailable: 5e11 };
};
const runs = (h: VirtualNode) => h.until('the pod of the API runs', () => h.phase('victim') === 'Running');
const evicted = (h: VirtualNode): boolean => h.phase('victim') === 'Failed' && h.running('victim').length === 0;

export const EVICTION_CASES: KillCase[] = [
  { options, covers: 'eviction resting', path },
  {
    options,
    covers: 'eviction observing',
    path,
    arrange: async (h) => {
      h.faults.latencyMs = { ImageFsInfo: 2_000 };
      h.kill(path);
    },
    release: enough,
  },
  {
    options,
    covers: 'eviction checkingLimits',
    path,
    arrange: async (h) => {
      create(h, 'victim-n1', { container: { resources: { limits: { 'ephemeral-storage': '1Gi' } } } });
      await runs(h);
      h.faults.latencyMs = { ListContainerStats: 2_000 };
      h.kill(path);
    },
    release: enough,
  },
  { options, covers: 'eviction collecting', path, arrange: async (h) => full(h), release: enough },
  {
    options: { ...options, before: (h: VirtualNode) => h.fs.makeDir('/var/lib/hollow') },
    covers: 'eviction freeingImages',
    path,
    arrange: async (h) => {
      h.faults.latencyMs = { ListImages: 3_000 };
      full(h);
    },
    release: enough,
  },
  {
    options,
    covers: 'eviction measuring',
    path,
    arrange: async (h) => {
      create(h, 'victim-n1');
      await runs(h);
      h.faults.latencyMs = { ListContainerStats: 2_000 };
      short(h);
    },
    release: enough,
    rests: evicted,
  },
  {
    options,
    covers: 'eviction awaitingEnd',
    path,
    arrange: async (h) => {
      create(h, 'victim-n1', { life: 'run=forever,term=ignore' });
      await runs(h);
      short(h);
    },
    rests: evicted,
  },
];
