/** Clocks of nodes that are apart from the one of the fleet. */
import type { MapReader } from '@actorlet/faults/src/read/reader.ts';
import { type Delay, delayIn, drawn } from '../delay.ts';
import type { CLOCK } from '../table.ts';

/** So far from the clock of the fleet; drawn for each node. */
export interface ClockSpec {
  side: keyof typeof CLOCK;
  by: Delay;
}

/** Null: it is absent, or what is wrong with it was told. */
export function clockIn(clock: MapReader | undefined): ClockSpec | null {
  if (clock === undefined) return null;
  const [ahead, behind] = [delayIn(clock, 'ahead'), delayIn(clock, 'behind')];
  if (clock.has('ahead') === clock.has('behind')) clock.wrong('', 'needs ahead or behind, and not both');
  if (ahead !== undefined) return { side: 'ahead', by: ahead };
  return behind === undefined ? null : { side: 'behind', by: behind };
}

/** Milliseconds; below 0 it is behind. */
export function aheadMsOf(clock: ClockSpec | null, next: () => number): number {
  if (clock === null) return 0;
  const ms = Math.round(drawn(clock.by, next));
  return clock.side === 'ahead' ? ms : -ms;
}
