/** What containers of one image did in a cluster, and the rules of a fleet file that come from it. Pure. */
import type { Rng } from '@actorlet/kubelet/ports/ports.ts';

/** How a container ended: its exit code, and why. */
interface Outcome {
  exit: number;
  reason: string;
  weight: number;
  runMs: Sample;
}

/** Of so many values a fair draw is kept. */
const SAMPLE_MAX = 400;
/** Ways to end; rarer ones are as the most frequent one. */
const OUTCOMES_MAX = 6;
const DAY_MS = 86_400_000;
/** Of a container that ended, where its status does not say when it began. */
const UNKNOWN_RUN = '1s';
const MIB = 2 ** 20;

class Sample {
  readonly #values: number[] = [];
  readonly #rng: Rng;
  #seen = 0;

  constructor(rng: Rng) {
    this.#rng = rng;
  }

  add(value: number): void {
    this.#seen += 1;
    if (this.#values.length < SAMPLE_MAX) {
      this.#values.push(value);
      return;
    }
    const at = Math.floor(this.#rng.next() * this.#seen);
    if (at < SAMPLE_MAX) this.#values[at] = value;
  }

  get empty(): boolean {
    return this.#values.length === 0;
  }

  /** `of`: from 0 to 100; nearest rank. 0 without values. */
  percentile(of: number): number {
    const values = [...this.#values].sort((a, b) => a - b);
    return values[Math.max(0, Math.ceil((of / 100) * values.length) - 1)] ?? 0;
  }
}

/** One container of a pod, as its status tells of it. */
export interface Seen {
  /** Milliseconds until its first start; null: not known. */
  startMs: number | null;
  restarts: number;
  running: boolean;
  /** Its pod may end: a container that runs now has not ended yet. */
  endsOnce: boolean;
  ended: { exit: number; reason: string; runMs: number | null } | null;
}

export class Behaviour {
  readonly #rng: Rng;
  readonly #startMs: Sample;
  readonly #cpuMilli: Sample;
  readonly #memoryBytes: Sample;
  readonly #outcomes = new Map<string, Outcome>();
  #forever = 0;
  count = 0;

  constructor(rng: Rng) {
    this.#rng = rng;
    this.#startMs = new Sample(rng);
    this.#cpuMilli = new Sample(rng);
    this.#memoryBytes = new Sample(rng);
  }

  /** A container counts once, however often it was restarted: one that crashes for a week does not make all others crash. */
  add({ startMs, restarts, running, endsOnce, ended }: Seen): void {
    this.count += 1;
    if (startMs !== null) this.#startMs.add(Math.min(startMs, DAY_MS));
    const lives = ended === null ? 0 : Math.max(1, restarts);
    const runsOn = running && !endsOnce ? 1 : 0;
    if (lives + runsOn === 0) return;
    if (runsOn > 0) this.#forever += 1 / (lives + runsOn);
    if (ended === null) return;
    const outcome = this.#outcomeOf(ended.exit, ended.reason);
    outcome.weight += lives / (lives + runsOn);
    if (ended.runMs !== null) outcome.runMs.add(Math.min(ended.runMs, DAY_MS));
  }

  used(cpuMilli: number, memoryBytes: number): void {
    this.#cpuMilli.add(cpuMilli);
    this.#memoryBytes.add(memoryBytes);
  }

  #outcomeOf(exit: number, reason: string): Outcome {
    const key = `${exit} ${reason}`;
    let outcome = this.#outcomes.get(key);
    if (outcome === undefined) {
      outcome = { exit, reason, weight: 0, runMs: new Sample(this.#rng) };
      this.#outcomes.set(key, outcome);
    }
    return outcome;
  }

  /** Empty: it did what every container of a fleet does. `of`: which containers they are about. */
  rules(of: Record<string, unknown>): Record<string, unknown>[] {
    const start = delayText(this.#startMs);
    const begins = start === undefined ? {} : { start };
    const usage = this.#usageText();
    const outcomes = [...this.#outcomes.values()].sort((a, b) => b.weight - a.weight || a.exit - b.exit).slice(0, OUTCOMES_MAX);
    const ways = outcomes.map(({ exit, reason, weight, runMs }) => ({
      weight,
      ...begins,
      run: delayText(runMs) ?? UNKNOWN_RUN,
      ...(exit === 0 ? {} : { exit }),
      ...(reason === '' ? {} : { hollow: `reason=${reason}` }),
    }));
    const all = [...(this.#forever > 0 && ways.length > 0 ? [{ weight: this.#forever, ...begins, hollow: 'run=forever' }] : []), ...ways];
    if (all.length === 0 && (start !== undefined || usage !== undefined)) all.push({ weight: 1, ...begins } as (typeof all)[number]);
    return all.map(({ weight, ...way }, i) => ({
      ...of,
      ...(all.length === 1 ? {} : { weight: Math.max(0.001, Math.round(weight * 1_000) / 1_000) }),
      ...way,
      ...(i === 0 && usage !== undefined ? { usage } : {}),
    }));
  }

  #usageText(): string | undefined {
    if (this.#cpuMilli.empty) return undefined;
    const mebibytes = Math.max(1, Math.round(this.#memoryBytes.percentile(50) / MIB));
    return `cpu=${Math.max(1, Math.round(this.#cpuMilli.percentile(50)))}m, memory=${mebibytes}Mi`;
  }
}

/** As fleet files write a length of time that is drawn; undefined: none is known, or all were 0. */
function delayText(sample: Sample): string | Record<string, string> | undefined {
  const [p50, p99] = [sample.percentile(50), sample.percentile(99)];
  if (sample.empty || p99 === 0) return undefined;
  if (p50 === p99) return msText(p50);
  return p50 === 0 ? { from: '0s', to: msText(p99) } : { p50: msText(p50), p99: msText(p99) };
}

function msText(ms: number): string {
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${Math.round(ms)}ms`;
}
