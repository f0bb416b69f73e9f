/** One expectation of a run, from the first look at it until it is decided. Pure. */

import type { KubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { ExpectSpec, Measure } from '../spec/expect.ts';

export interface ExpectReport {
  expected: ExpectSpec;
  /** Milliseconds since the start of the fleet at which it was met; null: it was not. */
  metMs: number | null;
  /** False: the run was interrupted before. */
  decided: boolean;
  /** What there was when it was decided; null: nothing could be seen. */
  is: number | null;
}

export class Expectation {
  readonly spec: ExpectSpec;
  #decided: { metMs: number | null } | undefined;
  #is: number | null = null;
  #fits: boolean | null = null;
  /** Calls that were made before it is looked at. */
  #base: number | null = null;

  constructor(spec: ExpectSpec) {
    this.spec = spec;
  }

  get decided(): boolean {
    return this.#decided !== undefined;
  }

  /** Whether the last look found what is expected; null: it could not be seen. */
  get fits(): boolean | null {
    return this.#fits;
  }

  /** The run goes on for it. */
  get open(): boolean {
    return !this.decided && this.spec.withinMs !== null;
  }

  /** Whether it wants to be looked at now. */
  wants(atMs: number): boolean {
    return !this.decided && atMs >= this.spec.afterMs;
  }

  /** @param value Null: it could not be seen. @param last No look follows. */
  look(value: number | null, atMs: number, last: boolean): void {
    const { measure, afterMs, withinMs, holds } = this.spec;
    if (this.decided || (atMs < afterMs && !last)) return;
    let is = value;
    if ((measure.what === 'calls' || (measure.what === 'requests' && measure.per === 'run')) && value !== null) {
      if (afterMs === 0) this.#base = 0;
      // A run that ends before it begins to count has counted nothing.
      else if (atMs >= afterMs) this.#base ??= value;
      is = this.#base === null ? null : value - this.#base;
    }
    this.#fits = is === null ? null : this.#within(is);
    // The look that decides may come a little later.
    const metMs = Math.min(atMs, withinMs ?? atMs);
    const over = last || atMs >= (withinMs ?? Number.POSITIVE_INFINITY);
    // A look that comes late says nothing of the time before it, but that it was too late.
    const seen = is !== null && (withinMs === null || atMs <= withinMs || atEnd(measure) || holds === 'throughout');
    if (seen) this.#is = is;
    const fits = is !== null && seen && this.#within(is);
    if (holds === 'throughout' && is !== null && !fits) this.#decided = { metMs: null };
    else if (holds === 'once' && fits && (over || !atEnd(measure))) this.#decided = { metMs };
    else if (over) this.#decided = { metMs: holds === 'throughout' && this.#is !== null ? metMs : null };
    if (this.#is === null && over) this.#is = is;
  }

  report(): ExpectReport {
    return { expected: this.spec, metMs: this.#decided?.metMs ?? null, decided: this.decided, is: this.#is };
  }

  #within(value: number): boolean {
    const { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY } = this.spec;
    return value >= atLeast && value <= atMost;
  }
}

/** It grows or changes until its end, so it is judged there. */
function atEnd({ what }: Measure): boolean {
  return what === 'calls' || what === 'seconds' || what === 'requests';
}

/** How many of these count, or what they sum up to. */
export function countOf(
  objects: readonly KubeObject[],
  { condition, field }: { condition?: { type: string; status: string }; field?: string },
): number {
  if (field !== undefined) {
    const numberAt = (object: KubeObject): number =>
      Number(field.split('.').reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), object));
    return objects.map(numberAt).reduce((sum, value) => sum + (Number.isFinite(value) ? value : 0), 0);
  }
  if (condition === undefined) return objects.length;
  return objects.filter(({ status }) => {
    const conditions = isRecord(status) && Array.isArray(status.conditions) ? status.conditions.filter(isRecord) : [];
    return conditions.some((c) => c.type === condition.type && c.status === condition.status);
  }).length;
}

/** `PATCH pods/status`, `* leases`, `PATCH *`: all that were counted under such names. */
export function callsOf(byKind: ReadonlyMap<string, number>, pattern: string): number {
  const [verb = '*', resource = '*'] = pattern.split(' ');
  let sum = 0;
  for (const [kind, count] of byKind) {
    const [itsVerb, itsResource] = kind.split(' ');
    if ((verb === '*' || verb === itsVerb) && (resource === '*' || resource === itsResource)) sum += count;
  }
  return sum;
}

/** Nearest rank; null without values. `of`: from 0 to 100. */
export function percentile(sorted: readonly number[], of: number): number | null {
  const value = sorted[Math.max(0, Math.ceil((of / 100) * sorted.length) - 1)];
  return value === undefined ? null : Math.round(value * 100) / 100;
}
