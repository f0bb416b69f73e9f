/** One pass of the eviction manager: which thresholds are met, what the node says of itself, what is to be acted on (resources 3.3). Pure. */

import { SIGNAL_FACTS, type Signal, STARVED } from '../../config/evictionSignals.ts';
import { NODE_PRESSURES, type NodePressure } from '../../nodeFacts.ts';
import { amountIn, isMemorySignal, type Threshold } from './thresholds.ts';

export interface Observation {
  available: number;
  capacity: number;
  /** Monotonic ms of the reading. */
  atMs: number;
}
export type Observations = ReadonlyMap<Signal, Observation>;

/** What one pass leaves to the next. */
export interface EvictionLedger {
  /** Keys of the thresholds that the last pass found met for longer than their grace. */
  met: ReadonlySet<string>;
  /** Since when each threshold has been met without a break, by key. */
  sinceMs: ReadonlyMap<string, number>;
  /** When each pressure was last observed. */
  pressureMs: ReadonlyMap<NodePressure, number>;
  /** When each signal was last read. */
  readMs: ReadonlyMap<Signal, number>;
}
export const EMPTY_LEDGER: EvictionLedger = { met: new Set(), sinceMs: new Map(), pressureMs: new Map(), readMs: new Map() };

/** A threshold that was met, with the reading that met it. */
export interface Met {
  threshold: Threshold;
  observation: Observation;
}
export interface Pass {
  ledger: EvictionLedger;
  /** What the node reports: every pressure observed less than the transition period ago. */
  pressures: NodePressure[];
  /** Met now, soft ones within their grace included. */
  met: Met[];
  /** To be acted on, the one to begin with first. */
  due: Met[];
}

function keyOf({ signal, value, graceMs }: Threshold): string {
  return `${signal}<${value.kind === 'percent' ? `${value.percent}%` : value.text}@${graceMs}`;
}

/** Strictly less than the threshold; for one that was met before, less than the threshold and what is to be reclaimed. */
function isMet({ value, minReclaim }: Threshold, o: Observation, before: boolean): boolean {
  const reclaim = before && minReclaim !== null ? amountIn(minReclaim, o.capacity) : 0;
  return amountIn(value, o.capacity) + reclaim > o.available;
}

/** A threshold about memory that this reading meets and the last pass did not find met. */
export function memoryCrossed(last: Pass, thresholds: readonly Threshold[], o: Omit<Observation, 'atMs'> & { signal: Signal }): boolean {
  const known = new Set(last.met.map(({ threshold }) => keyOf(threshold)));
  return thresholds.some((t) => t.signal === o.signal && !known.has(keyOf(t)) && isMet(t, { ...o, atMs: 0 }, false));
}

export function pass(
  ledger: EvictionLedger,
  o: { thresholds: readonly Threshold[]; observations: Observations; nowMs: number; transitionMs: number },
): Pass {
  const met = o.thresholds.flatMap((threshold): Met[] => {
    const observation = o.observations.get(threshold.signal);
    if (observation === undefined) return [];
    return isMet(threshold, observation, ledger.met.has(keyOf(threshold))) ? [{ threshold, observation }] : [];
  });
  const sinceMs = new Map(met.map(({ threshold }) => [keyOf(threshold), ledger.sinceMs.get(keyOf(threshold)) ?? o.nowMs]));
  const now = new Set(met.map(({ threshold }) => SIGNAL_FACTS[threshold.signal].pressure));
  const pressureMs = new Map(ledger.pressureMs);
  for (const pressure of now) pressureMs.set(pressure, o.nowMs);
  // What is met now is reported also where no time is to pass before it is taken back.
  const pressures = NODE_PRESSURES.filter((p) => now.has(p) || o.nowMs - (pressureMs.get(p) ?? Number.NEGATIVE_INFINITY) < o.transitionMs);
  const over = met.filter(({ threshold }) => o.nowMs - (sinceMs.get(keyOf(threshold)) ?? o.nowMs) >= threshold.graceMs);
  // Nothing is done twice about one reading.
  const due = over.filter(
    ({ threshold: { signal }, observation }) => observation.atMs > (ledger.readMs.get(signal) ?? Number.NEGATIVE_INFINITY),
  );
  return {
    ledger: {
      met: new Set(over.map(({ threshold }) => keyOf(threshold))),
      sinceMs,
      pressureMs,
      readMs: new Map([...o.observations].map(([signal, { atMs }]) => [signal, atMs])),
    },
    pressures,
    met,
    due: [...due.filter(isMemory), ...due.filter((d) => !isMemory(d))],
  };
}

function isMemory({ threshold }: Met): boolean {
  return isMemorySignal(threshold.signal);
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

/** Bytes to one place after the point; inodes and processes as they are. */
function forPeople(signal: Signal, amount: number): string {
  if (!STARVED[SIGNAL_FACTS[signal].resource].bytes) return String(amount);
  let value = amount;
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${Math.round(value * 10) / 10} ${UNITS[unit] ?? ''}`;
}

/** For people: which reading is below which threshold. */
export function metText({ threshold, observation }: Met): string {
  const { value, graceMs, signal, minReclaim } = threshold;
  const { available, capacity } = observation;
  const say = (amount: number) => forPeople(signal, amount);
  const wanted = amountIn(value, capacity);
  const share = value.kind === 'percent' ? ` (${value.percent} % of ${say(capacity)})` : '';
  const more = wanted <= available && minReclaim !== null ? ` and what evictionMinimumReclaim adds` : '';
  return `${signal} is ${say(available)}, ${graceMs === 0 ? 'evictionHard' : 'evictionSoft'} asks for ${say(wanted)}${share}${more}`;
}
