/** Answers of the reference that are kept, and how this node's are compared with them. */
import { PLAIN, variants } from '../variants/variants.ts';
import { type Answer, actorletAnswer, changes, type Runs } from './configurationAnswers.ts';

export const KEPT = '../recorded/configurations136.json';
export const PLAIN_ANSWER = 'plain';
/** Refused, with its words; or what it changes in its base, and what is warned of. */
export type KeptAnswer = string | readonly [Readonly<Record<string, string | null>>, ...string[]];
export interface Kept {
  [PLAIN_ANSWER]: Readonly<Record<string, string>>;
  answers: Readonly<Record<string, KeptAnswer>>;
  /** Why the reference ends later in its start, of those that it reads and this node refuses. */
  later: Readonly<Record<string, string>>;
}
export interface Otherwise {
  name: string;
  kind: 'refused here' | 'refused there' | 'other values' | 'no warning';
  reference: string;
  actorlet: string;
}

/** Values are compared by what a variant changes: defaults are compared elsewhere. */
export async function compared({ answers }: Pick<Kept, 'answers'>): Promise<Otherwise[]> {
  const found: Otherwise[] = [];
  const all = variants();
  const ours = new Map<string, Answer>();
  const plain = all.get(PLAIN);
  if (plain !== undefined) ours.set(PLAIN, await actorletAnswer(plain));
  // A base comes before its variants.
  for (const [name, variant] of [...all].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const answer = await actorletAnswer(variant);
    if (!name.includes('/')) ours.set(name, answer);
    const theirs = answers[name];
    if (theirs === undefined) throw new Error(`there is no answer of the reference for ${JSON.stringify(name)}: ask it again`);
    const one = difference(theirs, answer, baseOf(ours, name));
    if (one !== null) found.push({ name, ...one });
  }
  return found;
}

function baseOf(ours: ReadonlyMap<string, Answer>, name: string): Runs['values'] {
  const plain = ours.get(PLAIN);
  const base = name.includes('/') ? ours.get(name.split('/')[0] ?? '') : plain;
  for (const answer of [base, plain]) if (answer !== undefined && !('refused' in answer)) return answer.values;
  return {};
}

function difference(theirs: KeptAnswer, answer: Answer, base: Runs['values']): Omit<Otherwise, 'name'> | null {
  if (typeof theirs === 'string')
    return 'refused' in answer
      ? null
      : { kind: 'refused there', reference: theirs, actorlet: JSON.stringify(changes(base, answer.values)) };
  if ('refused' in answer) return { kind: 'refused here', reference: JSON.stringify(theirs), actorlet: answer.refused };
  const [values, ...warned] = theirs;
  const own = changes(base, answer.values);
  const paths = [...new Set([...Object.keys(values), ...Object.keys(own)])].filter((path) => values[path] !== own[path]).sort();
  const part = (all: Readonly<Record<string, string | null>>): string => JSON.stringify(Object.fromEntries(paths.map((p) => [p, all[p]])));
  if (paths.length > 0) return { kind: 'other values', reference: part(values), actorlet: part(own) };
  const silent = warned.filter((w) => !answer.warned.includes(w));
  return silent.length === 0 ? null : { kind: 'no warning', reference: silent.join(', '), actorlet: answer.warned.join(', ') };
}
