/** Objects of kind CSIDriver, as far as several managers read them. */

import { partOf } from '../../shape/lenient.ts';

/** The least that the API takes. */
const PERIOD_MIN_MS = 10_000;

/** `spec.nodeAllocatableUpdatePeriodSeconds`. Null: the driver is asked once how many volumes a node can take. */
export function allocatablePeriodMs(object: unknown): number | null {
  const seconds = partOf(object, 'spec').nodeAllocatableUpdatePeriodSeconds;
  return typeof seconds === 'number' && seconds > 0 ? Math.max(PERIOD_MIN_MS, seconds * 1_000) : null;
}
