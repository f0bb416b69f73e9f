/** How a run went over time, in few points: what was Ready when, and when each expectation was green. Pure. */
import type { FleetOverview } from '../overview.ts';

/** Points of a picture: more than a screen is wide says no more. */
const SAMPLES_MAX = 400;
const EVERY_MS = 500;
const SPANS_MAX = 200;

export interface Sample {
  atMs: number;
  nodes: number;
  nodesReady: number;
  pods: number;
  podsReady: number;
}
/** From then until the next one. Null: it was not looked at, or could not be seen. */
export interface Span {
  fromMs: number;
  fits: boolean | null;
}

export class Timeline {
  #samples: Sample[] = [];
  #everyMs = EVERY_MS;
  readonly #spans: Span[][];

  constructor(expectations: number) {
    this.#spans = Array.from({ length: expectations }, () => []);
  }

  /** The newest last. */
  get samples(): readonly Sample[] {
    return this.#samples;
  }
  /** By the place of the expectation. */
  get spans(): readonly (readonly Span[])[] {
    return this.#spans;
  }

  look({ nodes, pods }: FleetOverview, atMs: number): void {
    const last = this.#samples.at(-1);
    if (last !== undefined && atMs - last.atMs < this.#everyMs) return;
    this.#samples.push({ atMs, nodes: nodes.total, nodesReady: nodes.ready, pods: pods.total, podsReady: pods.ready });
    if (this.#samples.length <= SAMPLES_MAX) return;
    this.#samples = this.#samples.filter((_, i) => i % 2 === 0);
    this.#everyMs *= 2;
  }

  /** One that changes its mind more often than a picture can show keeps its first changes and the last one. */
  expectation(at: number, fits: boolean | null, atMs: number): void {
    const spans = this.#spans[at];
    if (spans === undefined || spans.at(-1)?.fits === fits) return;
    if (spans.length >= SPANS_MAX) spans.pop();
    spans.push({ fromMs: atMs, fits });
  }
}
