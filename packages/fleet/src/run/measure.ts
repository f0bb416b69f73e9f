/** What an expectation is measured by, as it is now. */
import type { Fleet } from '../fleet.ts';
import type { FleetOverview } from '../overview.ts';
import type { Measure } from '../spec/expect.ts';
import { callsOf, percentile } from './expectation.ts';

export type SecondsOf = 'nodeReady' | 'podReady' | 'podStart';

/** Of this process; objects are asked for. Null: there is none to measure. */
export function measured(fleet: Fleet, measure: Exclude<Measure, { what: 'objects' }>, { nodes, pods }: FleetOverview): number | null {
  switch (measure.what) {
    case 'nodesReady':
      return nodes.ready;
    case 'podsReady':
      return pods.ready;
    case 'calls':
      return callsOf(fleet.calls.byKind, measure.pattern);
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
