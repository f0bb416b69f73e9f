/** What one look comes to: conditions, graces, what is to be reclaimed. Times are monotonic milliseconds. */
import { describe, expect, it } from 'vitest';
import type { Signal } from '../../../src/machines/config/evictionSignals.ts';
import {
  EMPTY_LEDGER,
  type EvictionLedger,
  metText,
  type Observations,
  type Pass,
  pass,
} from '../../../src/machines/reclaim/eviction/pass.ts';
import type { Threshold } from '../../../src/machines/reclaim/eviction/thresholds.ts';

const MINUTE = 60_000;
function threshold(text: string, over: Partial<Threshold> = {}): Threshold {
  const [signal, value = ''] = text.split('<') as [Signal, string];
  const percent = value.endsWith('%');
  return {
    signal,
    value: percent ? { kind: 'percent', percent: Number.parseFloat(value) } : { kind: 'quantity', text: value },
    graceMs: 0,
    minReclaim: null,
    ...over,
  };
}
const seen = (atMs: number, available: Partial<Record<Signal, number>>): Observations =>
  new Map(Object.entries(available).map(([s, n]) => [s as Signal, { available: n, capacity: 1000, atMs }]));
const look = (
  nowMs: number,
  available: Partial<Record<Signal, number>>,
  o: { thresholds: Threshold[]; ledger?: EvictionLedger; readAtMs?: number },
): Pass =>
  pass(o.ledger ?? EMPTY_LEDGER, {
    thresholds: o.thresholds,
    observations: seen(o.readAtMs ?? nowMs, available),
    nowMs,
    transitionMs: 5 * MINUTE,
  });
const due = (p: Pass) => p.due.map((d) => d.threshold.signal);

describe('a threshold', () => {
  it('that is soft is said at once and acted on when its grace is over; a break begins it anew (trap 7)', () => {
    const thresholds = [threshold('memory.available<100', { graceMs: MINUTE })];
    const first = look(0, { 'memory.available': 50 }, { thresholds });
    expect([first.pressures, due(first)]).toEqual([['MemoryPressure'], []]);
    const later = look(MINUTE - 1, { 'memory.available': 50 }, { thresholds, ledger: first.ledger });
    expect(due(later)).toEqual([]);
    expect(due(look(MINUTE, { 'memory.available': 50 }, { thresholds, ledger: later.ledger }))).toEqual(['memory.available']);
    const broken = look(MINUTE / 2, { 'memory.available': 500 }, { thresholds, ledger: first.ledger });
    expect(due(look(MINUTE, { 'memory.available': 50 }, { thresholds, ledger: broken.ledger }))).toEqual([]);
  });

  it('is acted on once per reading (trap 5)', () => {
    const thresholds = [threshold('memory.available<100')];
    const first = look(10, { 'memory.available': 1 }, { thresholds, readAtMs: 5 });
    expect(due(first)).toEqual(['memory.available']);
    const frozen = look(20, { 'memory.available': 1 }, { thresholds, ledger: first.ledger, readAtMs: 5 });
    expect([due(frozen), frozen.pressures]).toEqual([[], ['MemoryPressure']]);
    expect(due(look(30, { 'memory.available': 1 }, { thresholds, ledger: frozen.ledger, readAtMs: 21 }))).toEqual(['memory.available']);
  });
});

it('a pressure is said for the transition period after it was last observed', () => {
  const thresholds = [threshold('memory.available<100')];
  const met = look(0, { 'memory.available': 1 }, { thresholds });
  const after = look(5 * MINUTE - 1, { 'memory.available': 500 }, { thresholds, ledger: met.ledger });
  expect([after.pressures, after.met]).toEqual([['MemoryPressure'], []]);
  expect(look(5 * MINUTE, { 'memory.available': 500 }, { thresholds, ledger: after.ledger }).pressures).toEqual([]);
});

it('without a transition period it is said for as long as it is there', () => {
  const o = { thresholds: [threshold('memory.available<100')], transitionMs: 0 };
  const met = pass(EMPTY_LEDGER, { ...o, observations: seen(1, { 'memory.available': 1 }), nowMs: 1 });
  expect(met.pressures).toEqual(['MemoryPressure']);
  expect(pass(met.ledger, { ...o, observations: seen(2, { 'memory.available': 500 }), nowMs: 2 }).pressures).toEqual([]);
});

it('for people it is put in words', () => {
  const thresholds = [
    threshold('nodefs.available<10%'),
    threshold('memory.available<1536', { graceMs: 1 }),
    threshold('nodefs.inodesFree<5%'),
  ];
  const readings = { 'nodefs.available': 5, 'memory.available': 7, 'nodefs.inodesFree': 49 };
  expect(look(0, readings, { thresholds }).met.map(metText)).toEqual([
    'nodefs.available is 5 B, evictionHard asks for 100 B (10 % of 1000 B)',
    'memory.available is 7 B, evictionSoft asks for 1.5 KiB',
    'nodefs.inodesFree is 49, evictionHard asks for 50 (5 % of 1000)',
  ]);
});
