/** What holds for an actor whose specification says nothing else. */
import type { ChildRules } from '../../machines/supervision/supervision.ts';
import type { AnySpec, Complete, Policy } from './types.ts';

type Backoff = Policy['backoff'];

/**
 * Five restarts a minute, as OTP's supervisors allow a few in a few seconds: an actor here may wait for a host that is busy. Most
 * actors hold nothing that an orderly stop would save.
 */
const POLICY: Policy = {
  restart: 'permanent',
  shutdownMs: 'brutal',
  intensity: { max: 5, periodMs: 60_000 },
  backoff: { minMs: 200, maxMs: 10_000, factor: 2, jitter: 0.2 },
};

/** Thousands of children have specifications with one and the same object in them. */
const wholes = new WeakMap<object, Backoff>();

function whole(backoff: Partial<Backoff>): Backoff {
  let known = wholes.get(backoff);
  if (known === undefined) {
    known = { ...POLICY.backoff, ...backoff };
    wholes.set(backoff, known);
  }
  return known;
}

/** The specification with what it leaves out. */
export function complete<S extends AnySpec>(spec: S): Complete<S> {
  const { backoff } = spec;
  return { ...POLICY, ...spec, backoff: backoff === undefined ? POLICY.backoff : whole(backoff) };
}

/** What its supervisor goes by. */
export function rulesOf(spec: AnySpec): ChildRules {
  const { id, restart, intensity, backoff } = complete(spec);
  return { id, restart, intensity, backoff };
}
