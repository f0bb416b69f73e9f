/** A running node at the newest moment. */

import type { Moment } from '../../../machines/recorder/moment.ts';
import type { Clock } from '../../../ports/ports.ts';
import type { Registry } from '../../supervision/types.ts';
import type { Inspect } from '../server.ts';

export interface LiveParts {
  registry: Pick<Registry, 'read'>;
  inspect: Pick<Inspect, 'state' | 'stateAt' | 'recorder' | 'chart' | 'timeline' | 'identity' | 'started'>;
  clock: Pick<Clock, 'wallMs' | 'monoMs'>;
  /** Null: they may not be injected. */
  faults: { readonly size: number } | null;
}

export function liveMoment({ registry, inspect, clock, faults }: LiveParts): Moment {
  return {
    nowMs: clock.wallMs(),
    monoMs: clock.monoMs(),
    name: inspect.identity?.name ?? '',
    version: inspect.identity?.version ?? '',
    startedAtMs: inspect.started?.wallMs,
    faultsAtWork: faults?.size ?? null,
    read: (key) => registry.read(key)?.value,
    state: () => inspect.state(),
    stateAt: (path) => inspect.stateAt(path),
    chart: (path) => inspect.chart?.(path) ?? null,
    timeline: (uid) => inspect.timeline?.(uid),
    recorder: (filter) => inspect.recorder(filter),
  };
}
