/** An observer beside the reference kubelet while that runs specs, and what its ledgers come to over several runs. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Disagreement, ObserverLedger } from '@actorlet/kubelet/machines/foundation/observerLedger.ts';
import { Observer } from '../../test/e2e/lab/observer.ts';

const LOOK_EVERY_MS = 2_000;

interface Judged {
  agreed: number;
  known: number;
  disagreed: number;
}

export interface Observed {
  judged: Judged;
  counts: Readonly<Record<string, Judged>>;
  /** How often each entry of the list of known differences was met. */
  known: Readonly<Record<string, number>>;
  /** Those that are on no list. */
  disagreements: readonly (Pick<Disagreement, 'sort' | 'kind' | 'pod' | 'expected' | 'came' | 'rule'> & {
    at: string;
    settledAfterS: number | null;
  })[];
}

const NONE: Judged = { agreed: 0, known: 0, disagreed: 0 };
export const NOTHING_OBSERVED: Observed = { judged: NONE, counts: {}, known: {}, disagreements: [] };

/** What was known, and the ledger of an observer since. */
export function withLedger(before: Observed, { counts, disagreements }: ObserverLedger): Observed {
  const plus = (a: Judged, b: Judged): Judged => ({
    ...{ agreed: a.agreed + b.agreed, known: a.known + b.known, disagreed: a.disagreed + b.disagreed },
  });
  const known = { ...before.known };
  for (const { known: entry } of disagreements) if (entry !== null) known[entry] = (known[entry] ?? 0) + 1;
  return {
    judged: counts.reduce(plus, before.judged),
    counts: { ...before.counts, ...Object.fromEntries(counts.map((c) => [c.kind, plus(before.counts[c.kind] ?? NONE, c)])) },
    known,
    disagreements: [...before.disagreements, ...disagreements.filter((d) => d.known === null).map(kept)],
  };
}

function kept({ sort, kind, pod, expected, came, rule, sinceMs, settledMs }: Disagreement): Observed['disagreements'][number] {
  const settledAfterS = settledMs === null ? null : Math.round((settledMs - sinceMs) / 1_000);
  return { at: new Date(sinceMs).toISOString(), sort, kind, pod, expected, came, rule, settledAfterS };
}

/** As a table of a document. */
export function markdownOfObserved({ judged, counts }: Observed): string {
  const lines = [...Object.entries(counts), ['all', judged] as const].map(
    ([kind, { agreed, known, disagreed }]) => `| ${kind} | ${agreed} | ${known} | ${disagreed} |`,
  );
  return ['| act | agreed | known | disagreed |', '|---|---|---|---|', ...lines].join('\n');
}

/** `own`: the folder of the observer. */
type Prepare = (own: string) => Promise<{ args: readonly string[]; before: readonly string[] }>;

/** It is started when there is a kubelet, and looks at each that comes after. */
export class Beside {
  readonly #observer: Observer;
  /** By the observer's start: it begins anew where the kubelet does with another configuration. */
  readonly #ledgers = new Map<number, ObserverLedger>();
  readonly #loop: Promise<void>;
  readonly #prepare: Prepare;
  #isOver = false;
  #why = '';

  /** `args`: which kubelet, where the machine has others. `prepare`: what else it is started with, and behind which program. */
  constructor(dir: string, args: readonly string[], prepare: Prepare = async () => ({ args: [], before: [] })) {
    this.#observer = new Observer(dir);
    this.#prepare = prepare;
    this.#loop = this.#follow(args);
  }

  async #follow(args: readonly string[]): Promise<void> {
    while (!this.#isOver) {
      await this.#look(args).catch((error: unknown) => {
        this.#why = String(error);
      });
      await sleep(LOOK_EVERY_MS);
    }
  }

  async #look(args: readonly string[]): Promise<void> {
    if (this.#observer.pid === undefined) {
      const more = await this.#prepare(this.#observer.folder);
      await this.#observer.start([...args, ...more.args], more.before);
    }
    const ledger = await this.#observer.ledger();
    this.#ledgers.set(ledger.sinceMs, ledger);
  }

  log(): string {
    return this.#observer.log();
  }

  /** Ends the observer. @throws where it has seen no kubelet. */
  async end(): Promise<ObserverLedger[]> {
    this.#isOver = true;
    await this.#loop;
    const alive = this.#observer.pid !== undefined;
    if (alive) await this.#look([]).catch(() => undefined);
    await this.#observer.end();
    if (this.#ledgers.size === 0) throw new Error(`the observer has seen no kubelet: ${this.#why}`);
    return [...this.#ledgers.values()];
  }
}
