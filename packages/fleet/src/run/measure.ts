/** What an expectation is measured by, as it is now. */
import type { Fleet } from '../fleet.ts';
import type { FleetOverview } from '../overview.ts';
import type { ApiCalls } from '../proxy/calls.ts';
import type { Measure } from '../spec/expect.ts';
import type { AskedMeasure } from './asked.ts';
import { callsOf, percentile } from './expectation.ts';

export type SecondsOf = 'nodeReady' | 'podReady' | 'podStart';

export interface Measured {
  fleet: Fleet;
  clients?: ApiCalls | undefined;
}

/** Of this process, whose proxy has the calls of clients. Null: there is none to measure. */
export function measured(
  { fleet, clients }: Measured,
  measure: Exclude<Measure, AskedMeasure>,
  { nodes, pods }: FleetOverview,
): number | null {
  switch (measure.what) {
    case 'nodesReady':
      return nodes.ready;
    case 'podsReady':
      return pods.ready;
    case 'calls':
      return callsOf(fleet.calls.byKind, measure.pattern);
    case 'requests':
      return clients?.sum(measure.of, measure.per) ?? null;
    case 'seconds':
      return percentile(secondsOf(fleet, measure.of), measure.percentile);
  }
}

/** Sorted. */
export function secondsOf(fleet: Fleet, of: SecondsOf): number[] {
  const values =
    of === 'nodeReady' ? fleet.nodes().flatMap((n) => (n.readyAfterMs === null ? [] : [n.readyAfterMs / 1_000])) : fleet.podSeconds()[of];
  return values.sort((a, b) => a - b);
}
