/** What the overview page is told, and what its report keeps. Pure. */
import type { Fleet } from '../fleet.ts';
import type { FleetOverview, NodeFacts, NodeOverview } from '../overview.ts';
import { counted } from '../run/counted.ts';
import type { FleetReport, RunShown } from '../run.ts';

export type PageFleet = Pick<Fleet, 'overview' | 'nodes' | 'calls' | 'front' | 'facts'>;

/** Columns of all nodes, in the order of the facts: thousands of objects a look would be slower to write and to read. */
interface Columns {
  /** A letter each, see {@link LETTERS}. */
  states: string;
  pods: readonly number[];
  readyAfterMs: readonly (number | null)[];
}
export interface Figures extends FleetOverview {
  /** Changes with the facts. */
  revision: number;
  /** Absent: the asker knows those of this revision. */
  facts?: readonly NodeFacts[];
  columns: Columns;
  calls: { total: number; byKind: Readonly<Record<string, number>> };
  /** Null: the fleet has not begun. */
  run: RunFigures | null;
  /** Of a report: the run is over. */
  seconds?: FleetReport['seconds'];
}
interface RunFigures {
  atMs: number;
  /** `[atMs, nodes, nodesReady, pods, podsReady]`. */
  samples: readonly (readonly number[])[];
  steps: readonly { atMs: number; doneMs: number; what: string; failed: readonly string[] }[];
  expect: readonly {
    name: string;
    /** `held`: at every look until the end. `open`: not decided. */
    result: 'met' | 'held' | 'unmet' | 'open';
    is: number | null;
    metMs: number | null;
    green: readonly (readonly [number, boolean | null])[];
  }[];
}

const LETTERS: Readonly<Record<NodeOverview['state'], string>> = { ready: 'r', notReady: 'n', off: 'o', failed: 'f' };
const FAILED_MAX = 5;

/** Remembers which facts a page has seen. */
export class PageFigures {
  readonly #fleet: PageFleet;
  #names = '';
  #revision = 0;

  constructor(fleet: PageFleet) {
    this.#fleet = fleet;
  }

  /** @param known Revision of the facts that the asker has. */
  now(run: RunShown | null, known: number): Figures {
    const { calls } = this.#fleet;
    const nodes = this.#fleet.nodes();
    const names = nodes.map((n) => n.name).join();
    if (names !== this.#names) this.#revision += 1;
    this.#names = names;
    return {
      ...this.#fleet.overview(),
      revision: this.#revision,
      ...(known === this.#revision ? {} : { facts: this.#fleet.facts() }),
      columns: {
        states: nodes.map((n) => LETTERS[n.state]).join(''),
        pods: nodes.map((n) => n.pods),
        readyAfterMs: nodes.map((n) => n.readyAfterMs),
      },
      calls: { total: calls.total, byKind: Object.fromEntries(calls.byKind) },
      run: run === null ? null : runFigures(run),
    };
  }
}

function runFigures({ atMs, steps, expect, timeline }: RunShown): RunFigures {
  return {
    atMs,
    samples: timeline.samples.map((s) => [s.atMs, s.nodes, s.nodesReady, s.pods, s.podsReady]),
    steps: steps.map(({ atMs, doneMs, what, count, of, troubles }) => ({
      ...{ atMs, doneMs, what: `${what}: ${counted(count, of)}` },
      failed: troubles.slice(0, FAILED_MAX).map((t) => `${t.node}: ${t.why}`),
    })),
    expect: expect.map(({ expected, decided, metMs, is }, i) => ({
      ...{ name: expected.name, is, metMs },
      result: !decided ? 'open' : metMs === null ? 'unmet' : expected.holds === 'throughout' ? 'held' : 'met',
      green: (timeline.green[i] ?? []).map(({ fromMs, fits }) => [fromMs, fits] as const),
    })),
  };
}
