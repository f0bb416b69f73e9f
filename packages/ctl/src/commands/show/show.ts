/** Commands that show what a daemon, or a recording, knows. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminClient, CtlError, EXIT, refusal } from '@actorlet/admin/src/client.ts';
import { findSummary, podMeant, withoutKind } from '@actorlet/kubelet/machines/edge/findPod.ts';
import type { RecordedEvent } from '@actorlet/kubelet/machines/foundation/messages.ts';
import type { RecorderEntry } from '@actorlet/kubelet/machines/recorder/recorderEntry.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';
import { clockTime, shortDuration } from '@actorlet/kubelet/machines/text/duration.ts';
import { printable } from '@actorlet/kubelet/machines/text/table.ts';
import { renderTimeline, type TimelineData } from '@actorlet/kubelet/machines/text/timeline.ts';
import type { Explanation } from '@actorlet/shown/src/answers.ts';
import type { PodSummary } from '@actorlet/shown/src/pods/podSummary.ts';
import { renderTree } from '@actorlet/shown/src/tree.ts';
import { type Asked, type Command, isNarrow, print, printData, printNames, printTable, wantsData, widthOf } from '../../asked.ts';
import { renderEvents, renderPods } from '../../render.ts';

interface PodsAnswer {
  stale: string;
  sourcesReady: boolean;
  /** Manifests that no pod came of. */
  unusable?: number;
  /** What the node needs outside itself and cannot reach. */
  lost?: readonly string[];
  /** `pod`: where the whole of each was asked for. */
  pods: (PodSummary & { labels?: Readonly<Record<string, string>>; pod?: object })[];
}

/** `pod`: only the actors of that pod and those above them. */
export function tree(o: { pod: string }): Command {
  return async (asked) => {
    const { client } = asked;
    const known = await podNames(client);
    const whole = (await client.json('/statez')) as ActorView;
    const state = o.pod === '' ? whole : actorsOf(whole, uidOf(o.pod, known));
    if (wantsData(asked.format)) printData(asked, state);
    else print(asked, renderTree(state, { narrow: isNarrow(asked), podNames: new Map(known.map((p) => [p.uid, p.name])) }), widthOf(asked));
    return EXIT.ok;
  };
}

/** Empty while the daemon has no list of pods. */
async function podNames(client: AdminClient): Promise<readonly PodSummary[]> {
  const answer = await client.get('/pods');
  return answer.status === 200 ? (JSON.parse(answer.body) as PodsAnswer).pods : [];
}

export function uidOf(query: string, pods: readonly PodSummary[]): string {
  const found = findSummary(query, pods);
  if (found.kind === 'one') return found.uid;
  throw new CtlError(
    EXIT.no,
    found.kind === 'none'
      ? `no pod called ${printable(query)} on this node${podMeant(query, pods)}`
      : `${query} fits several pods: ${found.names.join(', ')}`,
  );
}

function actorsOf(root: ActorView, uid: string): ActorView {
  const keep = (a: ActorView): ActorView[] => {
    const own = a.path.split('/').some((part) => part.startsWith(uid));
    const children = own ? a.children : a.children.flatMap(keep);
    return own || children.length > 0 ? [{ ...a, children }] : [];
  };
  return keep(root)[0] ?? { ...root, children: [] };
}

/** `name`: only that pod; '': all that the options choose. `objects`: as data they are Pods, as kubectl gives them. */
export function pods(o: { name?: string; objects?: boolean } = {}): Command {
  return async (asked) => {
    const { io, namespace } = asked;
    const objects = o.objects === true && wantsData(asked.format);
    const answer = (await asked.client.json('/pods', objects ? { full: '' } : {})) as PodsAnswer;
    const uid = o.name === undefined || o.name === '' ? null : uidOf(named(o.name, asked), answer.pods);
    const shown = answer.pods.filter((p) => (uid === null ? asked.chooses(p) : p.uid === uid));
    if (objects) {
      const items = shown.map(({ pod, name }) => objectOf(pod, name));
      printData(asked, uid === null ? { apiVersion: 'v1', kind: 'List', metadata: {}, items } : items[0]);
      return EXIT.ok;
    }
    if (wantsData(asked.format)) {
      printData(asked, { ...answer, pods: shown });
      return EXIT.ok;
    }
    if (asked.format === 'name') {
      printNames(
        asked,
        'pod',
        shown.map((p) => p.name),
      );
      return EXIT.ok;
    }
    const lines = renderPods(shown, { wide: asked.format === 'wide', namespace, of: answer.pods.length });
    if (shown.length === 0) print(asked, lines);
    else printTable(asked, lines, 'WORKER');
    for (const lost of answer.lost ?? []) io.err(`${printable(lost)}: actorctl why node\n`);
    if (answer.stale !== '') io.err(`This list may be old: ${printable(answer.stale)}.\n`);
    const { unusable = 0 } = answer;
    if (unusable > 0) io.err(`${unusable} ${unusable === 1 ? 'manifest' : 'manifests'} cannot be used: actorctl why node\n`);
    if (!answer.sourcesReady) io.err('Not every configured source has reported yet; more pods may come.\n');
    return EXIT.ok;
  };
}

function objectOf(pod: object | undefined, name: string): object {
  if (pod === undefined)
    throw new CtlError(EXIT.no, `a recording holds no whole pods: ${printable(name)} is known as a line of the table alone.`);
  return { apiVersion: 'v1', kind: 'Pod', ...pod };
}

export function why(pod: string): Command {
  return async (asked) => {
    const answer = (await asked.client.json('/why', { pod: named(pod, asked) })) as Explanation;
    if (wantsData(asked.format)) printData(asked, answer);
    else print(asked, answer.lines);
    return answer.found ? EXIT.ok : EXIT.no;
  };
}

export function timeline(pod: string): Command {
  return async (asked) => {
    const answer = (await asked.client.json('/timeline', { pod: named(pod, asked) })) as TimelineData;
    if (wantsData(asked.format)) printData(asked, answer);
    else print(asked, renderTimeline(answer, { nowMs: asked.io.nowMs() }), widthOf(asked));
    return EXIT.ok;
  };
}

/** With `-n` a bare name means a pod of that namespace. */
export function named(pod: string, { namespace }: Pick<Asked, 'namespace'>): string {
  const name = withoutKind(pod);
  if (namespace === '') return pod;
  return name.includes('/') ? name : `${namespace}/${name}`;
}

export function events(o: { pod: string | undefined; sinceMs: number }): Command {
  return async (asked) => {
    const { io, namespace } = asked;
    const query: Record<string, string> = o.pod === undefined || o.pod === '' ? {} : { pod: named(o.pod, asked) };
    const answer = (await asked.client.json('/events', query)) as { events: RecordedEvent[]; sinceMs?: number; observed?: boolean };
    const fromMs = io.nowMs() - o.sinceMs;
    const shown = answer.events.filter((e) => e.atMs >= fromMs && (namespace === '' || e.pod?.namespace === namespace));
    if (wantsData(asked.format)) {
      printData(asked, shown);
      return EXIT.ok;
    }
    if (asked.format === 'name') {
      printNames(
        asked,
        'event',
        shown.map((e) => e.reason),
      );
      return EXIT.ok;
    }
    const lines = renderEvents(shown, io.nowMs());
    if (shown.length === 0) print(asked, lines);
    else printTable(asked, lines, 'MESSAGE');
    const { sinceMs, observed } = answer;
    if (observed === true) io.err('This tree would have sent these. Those of the kubelet are in the API: kubectl get events.\n');
    if (sinceMs !== undefined)
      io.err(`Kept since this daemon started, ${shortDuration(io.nowMs() - sinceMs)} ago at ${clockTime(sinceMs)}.\n`);
    return EXIT.ok;
  };
}

export function healthz(): Command {
  return async (asked) => {
    if (wantsData(asked.format)) {
      const health = (await asked.client.json('/healthz', { verbose: '', json: '' })) as { healthy: boolean };
      printData(asked, health);
      return health.healthy ? EXIT.ok : EXIT.no;
    }
    const answer = await asked.client.get('/healthz', { verbose: '' });
    if (answer.status !== 200 && answer.status !== 500) throw refusal(answer);
    print(asked, answer.body.trimEnd().split('\n').map(printable));
    return answer.status === 200 ? EXIT.ok : EXIT.no;
  };
}

export interface RecorderArgs {
  path: string | undefined;
  limit: number;
  /** Only what happened in the last so many milliseconds. */
  sinceMs: number;
  follow: boolean;
}
const FOLLOW_EVERY_MS = 500;
/** Lines of one look while following. */
const FOLLOW_LINES_MAX = 2_000;

export function recorder(o: RecorderArgs): Command {
  return async (asked) => {
    const { io, client } = asked;
    if (!(Number.isInteger(o.limit) && o.limit > 0)) throw new CtlError(EXIT.usage, '--limit takes a whole number of entries, 1 or more.');
    const query: Record<string, string> = { limit: String(o.limit), ...(o.path === undefined ? {} : { path: o.path }) };
    if (Number.isFinite(o.sinceMs)) query.since = String(Math.round(io.nowMs() - o.sinceMs));
    if (o.follow) return follow(asked, query);
    if (wantsData(asked.format)) {
      printData(asked, ((await client.json('/recorder', { ...query, json: '' })) as { entries: readonly RecorderEntry[] }).entries);
      return EXIT.ok;
    }
    const answer = await client.get('/recorder', query);
    if (answer.status !== 200) throw refusal(answer);
    const lines = answer.body === '' ? [] : answer.body.trimEnd().split('\n').map(printable);
    if (lines.length === 0) io.err(`Nothing was recorded${o.path === undefined ? '' : ` of ${printable(o.path)}`} yet.\n`);
    print(asked, lines);
    return EXIT.ok;
  };
}

/** The newest lines, then every new one, until Ctrl-C. */
async function follow(asked: Asked, first: Readonly<Record<string, string>>): Promise<number> {
  const { io, client } = asked;
  let query: Readonly<Record<string, string>> = { ...first, next: '' };
  while (!io.signal.aborted) {
    const { next, lines, missed } = (await client.json('/recorder', query)) as { next: number; lines: string[]; missed: number };
    if (missed > 0) io.err(`(${missed} entries were overwritten before they could be shown)\n`);
    print(asked, lines.map(printable));
    query = { ...first, limit: String(FOLLOW_LINES_MAX), next: String(next) };
    await sleep(FOLLOW_EVERY_MS, undefined, { signal: io.signal }).catch(() => undefined);
  }
  return EXIT.ok;
}
