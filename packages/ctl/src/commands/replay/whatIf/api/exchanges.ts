/** What went between the node and its API server, as the recording tells it. */
import type { KubeFailure, KubeObject, KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { INITIAL_EVENTS_END, isKubeObject } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Json } from '@actorlet/replay/src/entries.ts';
import type { Asked, Script, Settled } from '@actorlet/replay/src/lenient/script.ts';
import { plain } from '../plain.ts';

export interface Exchange {
  readonly request: KubeRequest;
  readonly isWatch: boolean;
  /** When it was asked, and answered. */
  readonly atMs: number;
  readonly settledMs: number;
  /** Number of the input that the answer was. */
  readonly order: number;
  /** Of a watch that was opened: no body. */
  readonly answer: { readonly ok: true; readonly body: unknown } | { readonly ok: false; readonly failure: KubeFailure };
}
/** A line of a watch. `isInitial`: it was there when the watch began. */
export interface Heard {
  readonly request: KubeRequest;
  readonly atMs: number;
  readonly order: number;
  /** `SYNCED`: all that was there has been told. */
  readonly said: { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubeObject; readonly isInitial: boolean } | 'SYNCED';
}
/** A watch ended before its time. */
export interface Cut {
  readonly request: KubeRequest;
  readonly atMs: number;
  readonly how: 'close' | 'truncate';
}
export interface Conversation {
  /** In order of their requests. */
  readonly exchanges: readonly Exchange[];
  readonly heard: readonly Heard[];
  readonly cuts: readonly Cut[];
}

/** A watch ends about as late as it was asked to. */
const END_APART_MS = 1_500;
/** The node let go of it. */
const OWN_END = /abort/i;
const ITERATOR = '$@@asyncIterator';

export function conversationOf(script: Script): Conversation {
  const byFn = Map.groupBy(
    script.asked.filter((ask) => ask.name.startsWith('kube.watch.')),
    ({ fn }) => fn,
  );
  const exchanges: Exchange[] = [];
  const heard: Heard[] = [];
  const cuts: Cut[] = [];
  for (const ask of script.asked) {
    const isWatch = ask.name === 'kube.watch';
    const settled = script.settled.get(ask.call ?? -1);
    if ((ask.name !== 'kube.request' && !isWatch) || settled === undefined || settled.failed || !isRecord(settled.value)) continue;
    const request = { verb: 'GET', ...(plain((ask.args as readonly Json[])[0] ?? null) as object) } as KubeRequest;
    const { atMs: settledMs, order, value } = settled;
    exchanges.push({ request, isWatch, atMs: ask.atMs, settledMs, order, answer: answerOf(value) });
    if (isWatch && value.ok === true) follow({ request, settled, byFn, script, heard, cuts });
  }
  return { exchanges, heard, cuts };
}

function answerOf(value: Readonly<Record<string, unknown>>): Exchange['answer'] {
  if (value.ok === true) return { ok: true, body: plain((value.body ?? null) as Json) };
  return { ok: false, failure: plain(value.failure as Json) as KubeFailure };
}

interface Followed {
  request: KubeRequest;
  settled: Settled;
  byFn: ReadonlyMap<number, readonly Asked[]>;
  script: Script;
  heard: Heard[];
  cuts: Cut[];
}

/** Reads the lines of one watch. */
function follow({ request, settled, byFn, script, heard, cuts }: Followed): void {
  const opened = fnOf(settled.value, 'lines');
  const begun = byFn.get(fnOf(opened, ITERATOR, 'v') as number)?.[0];
  const next = fnOf(begun?.now, 'value', 'next', 'v');
  const { sendInitialEvents, resourceVersion = '', timeoutSeconds = '0' } = request.query ?? {};
  let isInitial = sendInitialEvents === 'true' || resourceVersion === '' || resourceVersion === '0';
  for (const ask of byFn.get(next as number) ?? []) {
    const came = script.settled.get(ask.call ?? -1);
    if (came === undefined) return;
    const { atMs, order } = came;
    const line = came.failed ? null : lineOf(came.value);
    if (line === null) {
      const endMs = settled.atMs + Number(timeoutSeconds) * 1_000;
      const isOwn = came.failed && OWN_END.test(JSON.stringify(came.value));
      if (!isOwn && atMs < endMs - END_APART_MS) cuts.push({ request, atMs, how: came.failed ? 'truncate' : 'close' });
      return;
    }
    const { type, object } = line;
    if (type === 'BOOKMARK' && isRecord(object) && isRecord(object.metadata) && isRecord(object.metadata.annotations)) {
      if (object.metadata.annotations[INITIAL_EVENTS_END] !== 'true') continue;
      isInitial = false;
      heard.push({ request, atMs, order, said: 'SYNCED' });
    } else if ((type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') && isKubeObject(object))
      heard.push({ request, atMs, order, said: { type, object, isInitial: isInitial && type === 'ADDED' } });
  }
}

function fnOf(value: unknown, ...keys: readonly string[]): unknown {
  return keys.reduce<unknown>((at, key) => (isRecord(at) ? at[key] : undefined), value);
}

/** Null: it is the end. */
function lineOf(value: Json): { type?: unknown; object?: unknown } | null {
  if (!isRecord(value) || value.done === true || typeof value.value !== 'string') return null;
  try {
    const line: unknown = JSON.parse(value.value);
    return isRecord(line) ? line : {};
  } catch {
    return {};
  }
}
