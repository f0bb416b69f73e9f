/** What a daemon answers on its admin socket, and a recording in its place: pages of what is known at one moment. Pure. */

import { activeStates } from '@actorlet/kubelet/machines/chart/active.ts';
import { findPod, recordMeant, uidOf } from '@actorlet/kubelet/machines/edge/findPod.ts';
import { eventsView } from '@actorlet/kubelet/machines/foundation/messages.ts';
import { type PodsView, podManagerAddr, podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';
import { deathsView } from '@actorlet/kubelet/machines/reclaim/deaths/messages.ts';
import { awayText, type Moment } from '@actorlet/kubelet/machines/recorder/moment.ts';
import { entryLine } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import { actorsMeant, allPaths, findActor, noSuchActor } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { actorPattern } from '../match.ts';
import { observerView } from '../observer/ledger.ts';
import { renderTree } from '../tree.ts';
import { whyOf } from '../why/whyOf.ts';
import { lostPeers } from './lostPeers.ts';
import { nameActors, podLines, unusableManifests, wrongWith } from './wrong.ts';

/** `json`: the body is that, else plain text. */
export interface ShownPage {
  status: number;
  json: boolean;
  body: string;
}
type Query = Pick<URLSearchParams, 'get' | 'has'>;

/** An answer as data. */
export const json = (value: unknown): ShownPage => ({ status: 200, json: true, body: JSON.stringify(value) });
const text = (body: string, status = 200): ShownPage => ({ status, json: false, body });

const PAGES: Readonly<Record<string, (m: Moment, query: Query) => ShownPage>> = {
  '/statez': (m, query) => (query.has('text') ? text(`${renderTree(m.state()).join('\n')}\n`) : json(m.state())),
  '/pods': (m) => withPods(m, (pods) => json(podsAnswer(m, pods))),
  '/healthz': healthz,
  '/recorder': recorder,
  '/events': events,
  '/why': why,
  '/timeline': timeline,
  '/chart': chart,
  '/deaths': deaths,
  '/disagreements': disagreements,
};
export const PAGE_PATHS: readonly string[] = Object.keys(PAGES);

/** The page of a path. Null: there is no such page. */
export function shownPage(path: string, query: Query, m: Moment): ShownPage | null {
  return Object.hasOwn(PAGES, path) ? (PAGES[path]?.(m, query) ?? null) : null;
}

/** Nothing was ever published: 503 with the owner's state. */
export function withPods(m: Moment, fn: (pods: PodsView) => ShownPage): ShownPage {
  const pods = m.read(podsView);
  if (pods !== undefined) return fn(pods);
  const owner = podManagerAddr.path;
  return text(`503: ${podsView.view} is not available: ${awayText(m, owner) || `${owner} runs but has not published it yet`}\n`, 503);
}

/** All pods, a line each, and what a reader of the list must know. */
export function podsAnswer(m: Moment, pods: PodsView) {
  return {
    stale: awayText(m, podManagerAddr.path),
    sourcesReady: pods.sourcesReady,
    unusable: unusableManifests(m).length,
    lost: [...lostPeers(m).values()],
    pods: podLines(m),
  };
}

/** One line per actor, reasons given. 500 when a part or a peer that must be there is down; a crashed pod worker is a line. */
function healthz(m: Moment, query: Query): ShownPage {
  const { actors: all } = wrongWith(m);
  const down = all.some((h) => h.down);
  const shown = query.has('verbose') ? all : all.filter((h) => !h.ok);
  const lines = shown.map((h) => (h.ok ? `[+]${h.name} ok` : `[-]${h.name} failed: ${h.reason}`));
  if (m.faultsAtWork !== null) lines.push(`[i]fault injection is allowed, faults at work: ${m.faultsAtWork}`);
  if (query.has('json')) return json({ healthy: !down, actors: shown, faultsAtWork: m.faultsAtWork });
  if (!down && lines.length === 0) return text('ok');
  lines.push(down ? 'healthz check failed' : 'healthz check passed');
  return text(`${lines.join('\n')}\n`, down ? 500 : 200);
}

/** `path`, `limit`, `since` (wall milliseconds). */
function recorder(m: Moment, query: Query): ShownPage {
  const number = (name: string): number | null => {
    const value = Number(query.get(name) ?? Number.NaN);
    return Number.isInteger(value) && value > 0 ? value : null;
  };
  const [limit, sinceMs] = [number('limit'), number('since')];
  const asked = query.get('path') ?? '';
  const path = asked === '' ? '' : actorPathOf(m, asked);
  const { entries, overwritten } = m.recorder({
    ...(path === '' ? {} : { path }),
    ...(limit === null ? {} : { limit }),
    ...(sinceMs === null ? {} : { sinceMs }),
  });
  if (query.has('json')) return json({ entries });
  // An actor that is gone may have left entries; one that was never there has none.
  if (entries.length === 0 && path !== '') {
    const state = m.state();
    if (findActor(state, path) === undefined) return text(`404: ${noSuchActor(state, path)}\n`, 404);
  }
  const lines = entries.map(entryLine);
  return text([...(overwritten > 0 ? [`(${overwritten} earlier entries overwritten)`] : []), ...lines].map((l) => `${l}\n`).join(''));
}

/** The path of the actor that a person means; one that there is not, as it is. */
export function actorPathOf(m: Moment, asked: string): string {
  const path = actorPattern(asked);
  if (m.stateAt(path) !== undefined) return path;
  const records = m.read(podsView)?.records ?? new Map();
  const paths = allPaths(m.state());
  const name = nameActors(m);
  const [exact, ...more] = paths.filter((p) => name(p) === path);
  if (exact !== undefined && more.length === 0) return exact;
  const [only, ...others] = actorsMeant(paths, path, (query) => uidOf(findPod(query, records)));
  return only === undefined || others.length > 0 ? path : only;
}

function why(m: Moment, query: Query): ShownPage {
  const asked = query.get('pod') ?? '';
  if (asked === '') return text('400: say which pod: /why?pod=NAME, NAMESPACE/NAME, UID or manifest file\n', 400);
  return json(whyOf(m, asked));
}

function timeline(m: Moment, query: Query): ShownPage {
  return withPods(m, ({ records }) => {
    const asked = query.get('pod') ?? '';
    const found = findPod(asked, records);
    if (found.kind === 'many') return text(`400: ${asked} fits several pods: ${found.names.join(', ')}\n`, 400);
    const uid = found.kind === 'one' ? found.uid : asked;
    const kept = m.timeline(uid);
    if (kept === undefined || (found.kind === 'none' && kept.steps.length + kept.calls.length === 0)) {
      return text(
        `404: no pod called ${JSON.stringify(asked)} on this node${recordMeant(asked, records)}; of one that is gone, give the UID\n`,
        404,
      );
    }
    const record = found.kind === 'one' ? found.record : null;
    const name = record === null ? uid : `${record.pod.metadata.namespace}/${record.pod.metadata.name}`;
    return json({ name, seenAtMs: record?.seenAtMs ?? 0, ...kept });
  });
}

/** The newest last. */
function deaths(m: Moment): ShownPage {
  const kept = m.read(deathsView);
  return kept === undefined ? text('404: no deaths are kept here (--actorlet-deaths-max)\n', 404) : json({ deaths: kept });
}

/** What an observing node expects of the kubelet, and where the two disagree. */
function disagreements(m: Moment): ShownPage {
  const ledger = m.read(observerView);
  return ledger === undefined ? text('501: this program is the kubelet of its node: it observes no other\n', 501) : json(ledger);
}

function chart(m: Moment, query: Query): ShownPage {
  const path = actorPathOf(m, query.get('actor') ?? '');
  const found = m.chart(path);
  return found === null
    ? text(`404: no state machine at ${JSON.stringify(path)} just now; actorctl tree lists the actors\n`, 404)
    : json({ ...found, active: activeStates(found.chart, found.state) });
}

function events(m: Moment, query: Query): ShownPage {
  const all = m.read(eventsView) ?? [];
  const since = { sinceMs: m.startedAtMs, ...(m.read(observerView) === undefined ? {} : { observed: true }) };
  const asked = query.get('pod') ?? '';
  if (asked === '') return json({ ...since, events: all });
  const records = m.read(podsView)?.records ?? new Map();
  const found = findPod(asked, records);
  if (found.kind === 'many') return text(`400: ${asked} fits several pods: ${found.names.join(', ')}\n`, 400);
  // A pod that is gone still has events: then its name or UID is looked for among them.
  const mine = all.filter((e) =>
    found.kind === 'one'
      ? e.pod?.uid === found.uid
      : e.pod !== undefined && (e.pod.uid === asked || e.pod.name === asked || `${e.pod.namespace}/${e.pod.name}` === asked),
  );
  if (found.kind === 'none' && mine.length === 0)
    return text(`404: no pod and no event of a pod called ${asked}${recordMeant(asked, records)}\n`, 404);
  return json({ ...since, events: mine });
}
