/** Divergences as they are found: each kind once, with how many came after it. */
import type { Input, Json, Outcome } from '../entries.ts';
import { differences, saidWords } from './differences.ts';
import type { Divergence, Doer } from './divergence.ts';
import { outcomeWords, stackOf } from './words.ts';

/** Something that was, or is, done. */
export interface Did {
  readonly words: string;
  readonly outcome: Outcome | null;
  readonly by: Pick<Doer, 'actor' | 'state' | 'event'>;
  /** Undefined where it is not known. */
  readonly said: Json | undefined;
  /** Of a status: the one of the other side, which stays where that side publishes none. */
  readonly beside?: Json | undefined;
}
export interface Moment {
  readonly input: number;
  readonly inputIs: string;
  readonly monoMs: number;
  readonly wallMs: number;
}
/** What the node knows of a pod. '' where there is none. */
export type PodOf = (path: string, said: Json | undefined) => string;

/** Kinds that are told; what comes after them follows from them. */
const KINDS_MAX = 100;

export class Report {
  readonly #all: Divergence[] = [];
  readonly #kinds = new Map<string, Divergence>();
  podOf: PodOf = () => '';

  /** As they came. */
  get all(): readonly Divergence[] {
    return this.#all;
  }
  get isFull(): boolean {
    return this.#all.length >= KINDS_MAX;
  }

  add(was: Did | null, now: Did | null, at: Moment): void {
    const fields = fieldsOf(was, now);
    const kind = kindOf(
      was,
      now,
      fields.map((one) => one.field),
    );
    const known = this.#kinds.get(kind);
    if (known !== undefined) {
      known.more += 1;
      return;
    }
    const divergence: Divergence = {
      ...{ input: at.input, inputIs: at.inputIs, monoMs: at.monoMs, wallMs: at.wallMs },
      ...{ was: was?.words ?? 'nothing', now: now?.words ?? 'nothing', fields, more: 0 },
      ...{ wasBy: this.#doer(was), nowBy: this.#doer(now), wasSaid: wordsSaid(was), nowSaid: wordsSaid(now) },
      stack: now?.outcome == null || now.outcome[0] === 'shown' ? '' : stackOf(),
    };
    this.#kinds.set(kind, divergence);
    // One that was waited for is told after those that came after it.
    const i = this.#all.findLastIndex((one) => one.input <= at.input);
    this.#all.splice(i + 1, 0, divergence);
  }

  #doer(did: Did | null): Doer | null {
    if (did === null) return null;
    const { by, outcome, said } = did;
    // A status is published by one actor for all pods.
    const about = outcome?.[0] === 'shown' ? outcome[2] : '';
    return { ...by, pod: this.podOf(by.actor, [about, said ?? null]) };
  }
}

export function didOf(outcome: Outcome, by: Did['by'], said: Json | undefined): Did {
  return { words: outcomeWords(outcome), outcome, by, said };
}

function wordsSaid(did: Did | null): string {
  return did?.said === undefined || did.said === null || did.outcome?.[0] === 'shown' ? '' : saidWords(did.said);
}

function fieldsOf(was: Did | null, now: Did | null): Divergence['fields'] {
  const [then, at] = [was?.outcome ?? null, now?.outcome ?? null];
  if (was === null && now?.said !== undefined && now.beside != null) return differences(now.beside, now.said);
  if (now === null && was?.said !== undefined && was.beside != null) return differences(was.said, was.beside);
  if (then === null || at === null || then[0] !== at[0]) return [];
  if (then[0] === 'set' && at[0] === 'set') return [{ field: 'ms', was: String(then[1]), now: String(at[1]) }];
  if (then[0] === 'step' && at[0] === 'step') {
    const names = ['actor', 'from', 'to', 'event', 'reason'];
    return names.flatMap((field, i) => (then[i + 1] === at[i + 1] ? [] : [{ field, was: String(then[i + 1]), now: String(at[i + 1]) }]));
  }
  if (then[0] === 'ask' && at[0] === 'ask' && then[1] !== at[1]) return [];
  if (was?.said !== undefined && now?.said !== undefined) return differences(was.said, now.said);
  return then[0] === 'ask' && then[4] !== at[4] ? differences([then[4] ?? ''], [at[4] ?? '']) : [];
}

/** UIDs, ids and figures are of one case: others of the same kind have others. */
function kindOf(was: Did | null, now: Did | null, fields: readonly string[]): string {
  const side = (did: Did | null): string[] => {
    if (did === null) return ['nothing'];
    const { outcome, by } = did;
    const words =
      outcome === null ? did.words : outcome[0] === 'step' ? outcome.slice(2, 5).join(' ') : did.words.split(' ').slice(0, 2).join(' ');
    return [
      by.actor.replace(/^(node\/(?:pods\/workers|api\/podWriters)\/).*/, '$1*'),
      words.replace(/\d+(?:\.\d+)?|[0-9a-f-]{32,36}/g, '#'),
    ];
  };
  return JSON.stringify([side(was), side(now), fields]);
}

export function inputWords(input: Input, call: string): string {
  const [kind, , what] = input;
  const words = what === undefined ? kind : `${kind} ${String(what)}`;
  return call === '' ? words : `${words}: ${call}`;
}
