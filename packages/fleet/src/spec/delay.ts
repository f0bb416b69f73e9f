/** Lengths of time that are drawn: `4s`, `{ from: 1s, to: 9s }` or `{ p50: 1s, p99: 20s }`. Pure. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import { fieldsIn } from './fields.ts';
import { DELAY, time } from './table.ts';

/** Milliseconds. Evenly between two, or log-normal by its median and its 99th percentile. */
export type Delay = { fromMs: number; toMs: number } | { p50Ms: number; p99Ms: number };

/** Undefined: it is not there. */
export function delayIn(of: MapReader | undefined, field: string): Delay | undefined {
  const node = of?.get(field);
  if (of === undefined || node === undefined) return undefined;
  if (!('items' in node)) {
    const ms = of.read(field, time()) ?? 0;
    return { fromMs: ms, toMs: ms };
  }
  const range = of.map(field);
  if (range === undefined) return undefined;
  const delay = range.has('p50') || range.has('p99') ? logNormalIn(range) : uniformIn(range);
  range.finish();
  return delay;
}

function uniformIn(range: MapReader): Delay {
  const { fromMs, toMs = fromMs } = fieldsIn(range, DELAY.uniform);
  if (toMs < fromMs) range.wrong('to', 'must not be less than from');
  return { fromMs, toMs };
}

function logNormalIn(range: MapReader): Delay {
  const delay = fieldsIn(range, DELAY.logNormal, { p50Ms: 1, p99Ms: 1 });
  if (!range.has('p50') || !range.has('p99')) return delay;
  if (delay.p50Ms <= 0) range.wrong('p50', 'must be longer than 0s');
  else if (delay.p99Ms < delay.p50Ms) range.wrong('p99', 'must not be less than p50');
  return delay;
}

/** The 99th percentile of the standard normal distribution. */
const Z99 = 2.3263;
/** A draw may not be longer than this many times the 99th percentile: the tail has no end. */
const TAIL_MAX = 3;

/** @param next Draws from 0 up to 1. */
export function drawn(delay: Delay | undefined, next: () => number): number {
  if (delay === undefined) return 0;
  if ('fromMs' in delay) return delay.fromMs + (delay.toMs - delay.fromMs) * next();
  const { p50Ms, p99Ms } = delay;
  const sigma = Math.log(p99Ms / p50Ms) / Z99;
  // Box and Muller: two even draws make a normal one.
  const normal = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  return Math.min(p99Ms * TAIL_MAX, p50Ms * Math.exp(sigma * normal));
}
