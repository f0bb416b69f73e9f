/** What a soak calls a rise: a slope that chance does not explain. */
import { expect, it } from 'vitest';
import { floors, type Point, rises, trendOf } from '../../bench/soak/trend.ts';
import { seededRng } from '../supervision/fakePorts.ts';

const HOURS = 8;
/** Every two minutes; `noise` to both sides, of which `kept` lasts until the next point. */
function line(o: { perHour: number; noise: number; kept?: number; hours?: number; seed?: number }): Point[] {
  const rng = seededRng(o.seed ?? 1);
  let off = 0;
  return Array.from({ length: (o.hours ?? HOURS) * 30 }, (_, i) => {
    off = (o.kept ?? 0) * off + (2 * rng.next() - 1) * o.noise;
    return { hours: i / 30, value: 100 + (o.perHour * i) / 30 + off };
  });
}
const seeds = Array.from({ length: 50 }, (_, seed) => seed);

it('is a leak of two MiB an hour under ten MiB of noise, each time', () => {
  expect(seeds.filter((seed) => !rises(trendOf(line({ perHour: 2.5, noise: 10, seed })), 1))).toEqual([]);
});

it('is no noise, also where one point goes with the next, and none within the limit', () => {
  for (const kept of [0, 0.5, 0.8])
    expect(seeds.filter((seed) => rises(trendOf(line({ perHour: 0, noise: 10, kept, seed })), 1))).toEqual([]);
  expect(seeds.filter((seed) => rises(trendOf(line({ perHour: 0.9, noise: 3, seed })), 1))).toEqual([]);
});

it('is one folder more each time, in a run of minutes too', () => {
  const steps = Array.from({ length: 20 }, (_, i) => ({ hours: i / 60, value: 10 + i }));
  expect(rises(trendOf(steps), 0.25)).toBe(true);
  expect(rises(trendOf(steps.map((p) => ({ ...p, value: 10 }))), 0.25)).toBe(false);
});

it('needs points: of fewer nothing is said', () => {
  expect(trendOf(line({ perHour: 9, noise: 0 }).slice(0, 5))).toBeNull();
  expect(trendOf(Array.from({ length: 9 }, () => ({ hours: 1, value: 1 })))).toBeNull();
});

it('is looked for in what memory comes down to', () => {
  const saw = [7, 3, 9, 4, 8, 2, 6].map((value, i) => ({ hours: i, value }));
  expect(floors(saw, 3)).toEqual([
    { hours: 1, value: 3 },
    { hours: 5, value: 2 },
    { hours: 6, value: 6 },
  ]);
});
