import { describe, expect, it } from 'vitest';
import {
  amountIn,
  amountText,
  type ThresholdConfig,
  thresholdsOf,
  thresholdText,
} from '../../../src/machines/reclaim/eviction/thresholds.ts';
import { NO_THRESHOLDS } from '../pods/fixtures.ts';

const config = (over: Partial<ThresholdConfig>): ThresholdConfig => ({ ...NO_THRESHOLDS, ...over });

describe('thresholds', () => {
  it('about what this node cannot observe are named, and those that follow another file system', () => {
    const evictionHard = { 'allocatableMemory.available': '1Gi', 'containerfs.available': '5%' };
    const conflicting = ['found containerfs.available for hard eviction. ignoring'];
    expect(thresholdsOf(config({ evictionHard }))).toMatchObject({ unseen: [], conflicting });
    expect(thresholdsOf(config({ evictionHard, cgroupsPerQOS: false }))).toEqual({
      thresholds: [],
      unseen: ['evictionHard.allocatableMemory.available'],
      conflicting,
    });
  });

  it('of memory, where hard, hold for the group of all pods too where pods are held to what is allocatable', () => {
    const asked = {
      evictionHard: { 'memory.available': '100Mi', 'pid.available': '5%' },
      evictionSoft: { 'memory.available': '1Gi' },
      evictionSoftGracePeriod: { 'memory.available': '1m' },
      evictionMinimumReclaim: { 'memory.available': '1%' },
    };
    const signals = (over: Partial<ThresholdConfig>) =>
      thresholdsOf(config({ ...asked, ...over })).thresholds.map(({ signal, graceMs }) => `${signal} ${graceMs}`);
    const own = ['memory.available 0', 'pid.available 0', 'memory.available 60000'];
    expect(signals({ enforceNodeAllocatable: ['pods'] })).toEqual([...own, 'allocatableMemory.available 0']);
    expect(signals({ enforceNodeAllocatable: ['kube-reserved'] })).toEqual(own);
    expect(signals({ enforceNodeAllocatable: ['pods'], cgroupsPerQOS: false })).toEqual(own);
    const copied = thresholdsOf(config({ ...asked, enforceNodeAllocatable: ['pods'] })).thresholds.at(-1);
    expect(copied).toMatchObject({ value: { text: '100Mi' }, minReclaim: { kind: 'percent', percent: 1 } });
  });

  it.each([
    [{ evictionHard: { 'memory.available': 'much' } }, 'evictionHard.memory.available: "much" is neither a quantity nor a percentage'],
    [{ evictionHard: { 'memory.available': '-1%' } }, 'evictionHard.memory.available: "-1%" is neither a quantity nor a percentage'],
    [
      { evictionHard: { 'memory.available': '1Gi' }, evictionMinimumReclaim: { 'memory.available': '%' } },
      'evictionMinimumReclaim.memory.available: "%" is neither a quantity nor a percentage',
    ],
    [
      { evictionSoft: { 'memory.available': '1Gi' } },
      'evictionSoft.memory.available: needs an entry in evictionSoftGracePeriod (--eviction-soft-grace-period)',
    ],
  ])('%j are refused', (over, message) => {
    expect(() => thresholdsOf(config(over))).toThrow(message);
  });

  it('come to amounts, and read as Kubernetes writes them', () => {
    expect(amountIn({ kind: 'percent', percent: 7.5 }, 1001)).toBe(75);
    expect(amountIn({ kind: 'quantity', text: '1.5Gi' }, 0)).toBe(1.5 * 1024 ** 3);
    expect(thresholdText({ kind: 'quantity', text: '1024Mi' }, 0)).toBe('1Gi');
    expect(thresholdText({ kind: 'percent', percent: 10 }, 10 * 1024 ** 3)).toBe('1Gi');
    expect([0, 1000, 1024, 3 * 1024 ** 2 + 1024, 52_428_800].map(amountText)).toEqual(['0', '1000', '1Ki', '3073Ki', '50Mi']);
  });
});
