/** States of pods' lives, for records of tests. */
import type { Eviction, LifeState } from '../src/machines/pods/manager/messages.ts';

export const RUNNING: LifeState = { is: 'running', listed: null };
export const LEAVING: LifeState = { is: 'leaving', listed: null, verdict: null, next: null };
const REJECTED = { kind: 'rejected', reason: 'OutOfcpu', eviction: null } as const;
export const REFUSED: LifeState = { is: 'refused', verdict: REJECTED };
/** Refused when the daemon began, of which the runtime still held containers. */
export const REFUSED_FAILING: LifeState = { is: 'failing', listed: null, verdict: REJECTED, next: null };
export const evicted = (eviction: Eviction): LifeState => ({
  is: 'failing',
  listed: null,
  verdict: { kind: 'evicted', eviction },
  next: null,
});
