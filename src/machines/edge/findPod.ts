/** Which pod a person means by a UID, `namespace/name`, a name, or the start of a UID. Pure. */
import { isWanted, type LifeState, type PodRecord } from '../pods/manager/messages.ts';
import { UID_PREFIX_CHARS_MIN } from '../supervision/actorState.ts';
import { didYouMean } from '../text/nearest.ts';

/** The parts of a pod that a person may name. */
export interface Findable {
  readonly pod: { readonly metadata: { readonly namespace: string; readonly name: string } };
  readonly source: PodRecord['source'];
  /** Null: it has no record. */
  readonly state: LifeState | null;
}
export type PodQuery<R extends Findable = PodRecord> =
  | { kind: 'one'; uid: string; record: R }
  | { kind: 'none' }
  /** Several fit; `names` are `namespace/name (uid)`. */
  | { kind: 'many'; names: string[] };

/** The first kind of match that finds anything decides: UID, full name, name, start of a UID. */
export function findPod<R extends Findable>(query: string, records: ReadonlyMap<string, R>): PodQuery<R> {
  const found = findNamed(query, records);
  const name = withoutKind(query);
  return found.kind === 'none' && name !== query ? findNamed(name, records) : found;
}

/** `web` of `pod/web`, as kubectl names pods. */
export function withoutKind(query: string): string {
  return query.replace(/^(?:pods?|po)\//i, '');
}

function findNamed<R extends Findable>(query: string, records: ReadonlyMap<string, R>): PodQuery<R> {
  const exact = records.get(query);
  if (exact !== undefined) return { kind: 'one', uid: query, record: exact };
  const slash = query.indexOf('/');
  const name = query.slice(slash + 1);
  const isIn = (r: R) => r.pod.metadata.namespace === query.slice(0, slash);
  // Static pods carry the node's name as a suffix; people leave it off.
  const isShortened = (r: R) => r.source !== 'api' && r.pod.metadata.name.startsWith(`${name}-`);
  const tests: ((r: R, uid: string) => boolean)[] =
    slash >= 0
      ? [(r) => isIn(r) && r.pod.metadata.name === name, (r) => isIn(r) && isShortened(r)]
      : [(r) => r.pod.metadata.name === name, (_, uid) => query.length >= UID_PREFIX_CHARS_MIN && uid.startsWith(query), isShortened];
  for (const test of tests) {
    const found = [...records].filter(([uid, r]) => test(r, uid));
    // A replaced static pod lives on beside its successor for a while: the one still wanted is meant.
    const wanted = found.filter(([, r]) => isWanted(r) && r.source !== 'runtime');
    const pick = wanted.length > 0 ? wanted : found;
    const [first] = pick;
    if (first !== undefined && pick.length === 1) return { kind: 'one', uid: first[0], record: first[1] };
    if (pick.length > 1) {
      return { kind: 'many', names: pick.map(([uid, r]) => `${r.pod.metadata.namespace}/${r.pod.metadata.name} (${uid})`).sort() };
    }
  }
  return { kind: 'none' };
}

/** The UID of the pod that was found. Null: no pod was found, or several. */
export function uidOf(found: PodQuery<Findable>): string | null {
  return found.kind === 'one' ? found.uid : null;
}

const LEAVING: LifeState = { is: 'leaving', verdict: null, listed: null, next: null };

/** The same among pods of which a line each is known. */
export function findSummary<S extends Summarized>(query: string, pods: readonly S[]): PodQuery<Findable & { summary: S }> {
  const findable = (summary: S) => ({
    pod: { metadata: summary },
    source: summary.source,
    state: summary.removed ? LEAVING : null,
    summary,
  });
  return findPod(query, new Map(pods.map((p) => [p.uid, findable(p)])));
}
type Summarized = { readonly uid: string; readonly namespace: string; readonly name: string } & { readonly removed: boolean } & Pick<
    Findable,
    'source'
  >;

/** Longer than a namespace and a name together can be; nothing like it is looked for. */
const QUERY_CHARS_MAX = 320;

/** ` (did you mean X?)` for a query that finds no pod, or nothing. */
export function podMeant(query: string, pods: Iterable<{ namespace: string; name: string; source: string }>): string {
  if (query.length > QUERY_CHARS_MAX) return '';
  const names = new Set<string>();
  for (const { namespace, name, source } of pods) {
    names.add(query.includes('/') ? `${namespace}/${name}` : name);
    // Without the node's name, as people write it.
    for (let at = name.lastIndexOf('-'); at > 0 && source !== 'api'; at = name.lastIndexOf('-', at - 1)) names.add(name.slice(0, at));
  }
  return didYouMean(query, names);
}

/** The same of pods as the pod manager has them. */
export function recordMeant(query: string, records: ReadonlyMap<string, Findable>): string {
  return podMeant(
    query,
    [...records.values()].map((r) => ({ ...r.pod.metadata, source: r.source })),
  );
}
