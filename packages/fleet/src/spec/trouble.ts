/** Faults of clients that the seed draws: what of, how many and when. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import { about, filled, integer, named, oneOrMore, words } from '@actorlet/kubelet/machines/shape/shape.ts';
import { simRng } from '@actorlet/world/src/rng.ts';
import type { ApiSelection } from '../proxy/selection.ts';
import { API_FAULT_NAMES, API_SELECT, type ApiFaultName, apiFault } from './apiFaults.ts';
import { fieldsIn } from './fields.ts';
import { type ApiStep, beginMs } from './steps.ts';
import { time } from './table.ts';

const COUNT_MAX = 1_000;
const { verbs: _verbs, ...WHOSE } = API_SELECT;
export const TROUBLE = {
  ...WHOSE,
  faults: about('Of these kinds. Default: of all.', oneOrMore(words(...API_FAULT_NAMES))),
  count: about('How many. Default 8.', filled(integer(1, COUNT_MAX), 8)),
  from: about('None takes effect before. Default 0s.', named('fromMs', filled(time(), 0))),
  to: about('None takes effect later. Default 30s.', named('toMs', filled(time(), 30_000))),
} as const;

export type DrawnFault = ApiStep & { atMs: number };

export interface TroubleSpec {
  select: ApiSelection;
  faults: readonly ApiFaultName[];
  count: number;
  fromMs: number;
  toMs: number;
}

export function decodeTrouble(map: MapReader | undefined): TroubleSpec | null {
  if (map === undefined) return null;
  const { faults = API_FAULT_NAMES, count, fromMs, toMs, ...select } = fieldsIn(map, TROUBLE);
  map.finish();
  if (toMs < fromMs) map.wrong('to', 'must not be less than from');
  return { select, faults, count, fromMs, toMs };
}

/** The same for the same seed, in the order in which they begin. */
export function drawnFaults({ select, faults, count, fromMs, toMs }: TroubleSpec, seed: number): DrawnFault[] {
  const rng = simRng(`trouble-${seed}`);
  const drawn = Array.from({ length: count }, (_, index) => {
    // Each from a stream of its own: a draw that is added shifts no other fault.
    const own = rng.fork(String(index));
    const fault = own.pick(faults) ?? 'slow';
    const atMs = Math.round(own.between(fromMs, toMs));
    const forMs = Math.round(own.between(...LENGTH_MS[fault]));
    const api = apiFault(fault, {
      select,
      forMs,
      ageMs: Math.round(own.between(500, 5_000)),
      delayMs: Math.round(own.between(200, 3_000)),
      retryAfter: 1 + own.int(2),
      probability: own.pick(SOMETIMES.has(fault) ? [1, 0.5, 0.25] : [1]) ?? 1,
    });
    return { atMs: beginMs(atMs, api), do: 'inject' as const, name: `${fault}-${index + 1}`, api };
  });
  return drawn.sort((a, b) => a.atMs - b.atMs);
}

const LASTS: readonly [number, number] = [500, 5_000];
const LENGTH_MS: Readonly<Record<ApiFaultName, readonly [number, number]>> = {
  'stale-reads': LASTS,
  'watch-lag': LASTS,
  'watch-close': [0, 2_000],
  'watch-expired': [0, 2_000],
  conflict: LASTS,
  throttle: LASTS,
  unavailable: LASTS,
  slow: LASTS,
  'lost-answer': LASTS,
};
/** Those that need not hit every request. */
const SOMETIMES: ReadonlySet<ApiFaultName> = new Set(['conflict', 'throttle', 'unavailable', 'slow', 'lost-answer']);
