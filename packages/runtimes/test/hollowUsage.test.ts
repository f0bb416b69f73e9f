/** What a hollow container claims to use over time. */
import { describe, expect, it } from 'vitest';
import { annotatedUsage, parseUsage, sumTo, valueAt } from '../src/hollow/usage.ts';

const MINUTE = 60_000;

describe('a usage annotation', () => {
  it.each([
    ['cpu=100m, memory=64Mi', 0.1, 0.1, 64 * 2 ** 20],
    ['cpu=100m..900m/10m', 0.1, 0.9, 2 ** 20],
    ['cpu=0->2/10m,memory=1Gi', 0, 1, 2 ** 30],
    ['cpu=0.5..1.5/10m', 0.5, 1.5, 2 ** 20],
  ])('%s is a curve', (text, first, afterFive, memory) => {
    const usage = parseUsage(text);
    expect(valueAt(usage.cpu, 0)).toBeCloseTo(first, 9);
    expect(valueAt(usage.cpu, 5 * MINUTE)).toBeCloseTo(afterFive, 9);
    expect(valueAt(usage.memory, 0)).toBe(memory);
  });

  it.each(['cpu=100m..900m/10m', 'cpu=0->2/3m', 'cpu=250m'])('%s sums to what was used, and never goes back', (text) => {
    const { cpu } = parseUsage(text);
    let [summed, before] = [0, 0];
    for (let ms = 0; ms < 15 * MINUTE; ms += 100) {
      summed += valueAt(cpu, ms + 50) * 100;
      const now = sumTo(cpu, ms + 100);
      expect(now).toBeGreaterThanOrEqual(before);
      before = now;
    }
    expect(Math.abs(before / summed - 1)).toBeLessThan(1e-3);
  });

  it.each([
    ['cpu=lots', '"lots" is not a quantity, LOW..HIGH/PERIOD or FROM->TO/TIME'],
    ['cpu=1..2', '"1..2" is not a quantity'],
    ['cpu=1..2/0s', '"1..2/0s" is not a quantity'],
    ['cpu=-1', '"-1" is not a quantity'],
    ['disk=1', 'unknown key "disk"; known: cpu, memory'],
  ])('%s is refused by name', (text, why) => {
    expect(() => parseUsage(text)).toThrow(`annotation actorlet.dev/usage: ${why}`);
  });

  it('of a container counts before that of its pod', () => {
    const annotations = { 'actorlet.dev/usage': 'cpu=1', 'actorlet.dev/usage.side': 'cpu=2' };
    expect([annotatedUsage(annotations, 'side')?.cpu.low, annotatedUsage(annotations, 'main')?.cpu.low]).toEqual([2, 1]);
    expect(annotatedUsage({}, 'main')).toBeUndefined();
  });
});
