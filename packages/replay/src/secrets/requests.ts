/** Which parts of a request to the node's servers the node reads. Every other part may hold a key. */
import { documentOf } from './encodings.ts';

/** Headers that the tree reads, or that say how two programs talk. */
const OPEN_HEADERS: ReadonlySet<string> = new Set(
  ['host', 'user-agent', 'accept', 'accept-encoding', 'content-type', 'content-length', 'connection', 'upgrade']
    .concat(['sec-websocket-protocol', 'sec-websocket-version', 'sec-websocket-key', 'sec-websocket-extensions'])
    .concat(['x-stream-protocol-version', 'transfer-encoding', 'retry-after', 'date']),
);
const LINK_HEADERS: ReadonlySet<string> = new Set(['location', 'referer']);

/** Parameters of a query that are names: of pods, containers, actors, files, checks and services. */
const NAME_QUERIES: ReadonlySet<string> = new Set(['path', 'uid', 'pod', 'actor', 'id', 'container', 'exclude', 'query']);
/** Those that are a number, a time or a choice, or that need no value. */
const VALUE_QUERIES: ReadonlySet<string> = new Set(
  ['limit', 'since', 'previous', 'only_cpu_and_memory', 'tty', 'input', 'output', 'error', 'stdin', 'stdout', 'stderr', 'port', 'ports']
    .concat(['seconds', 'timeout', 'follow', 'timestamps', 'tail', 'tailLines', 'limitBytes', 'sinceSeconds', 'sinceTime'])
    .concat(['untilTime', 'stream', 'boot', 'next', 'verbose', 'json', 'text', 'full']),
);
const VALUE = /^(?:[+-]?[\d.,]{0,19}[a-z]{0,2}|true|false|all|std(?:out|err)|\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-][\d:]+))$/i;
/** Words of commands, and what is looked for in logs. */
const WORD_QUERIES = { cmd: 'line', command: 'secret', pattern: 'secret' } as const;
/** What the tree reads of the query of a request. */
export const READ_QUERIES: ReadonlySet<string> = new Set([...NAME_QUERIES, ...VALUE_QUERIES, ...Object.keys(WORD_QUERIES)]);

/** How the paths of the node's pages begin: of the kubelet's API, and of the admin socket. */
const PAGES: ReadonlySet<string> = new Set(
  ['healthz', 'pods', 'stats', 'metrics', 'exec', 'attach', 'portForward', 'run', 'containerLogs', 'runningpods', 'logs', 'debug']
    .concat(['checkpoint', 'statusz', 'flagz', 'configz', 'statez', 'events', 'why', 'recorder', 'debugger', 'restart', 'record'])
    .concat(['page', 'summary', 'node', 'death', 'inject', 'timeline', 'chart', 'deaths', 'disagreements']),
);
/** Of a pod, a container or a check. */
const NAME = /^[\w.:-]*$/;
/** Where the body is a document in YAML. */
const YAML_BODIES = /^\/inject(?:\/|$)/;

/** A query, also in the JSON of a recording: what is no name of a parameter is told by its `values`. */
export function queryDoor(key: string, values: readonly unknown[]): 'open' | 'line' | 'secret' {
  if (Object.hasOwn(WORD_QUERIES, key)) return WORD_QUERIES[key as keyof typeof WORD_QUERIES];
  if (NAME_QUERIES.has(key)) return 'open';
  return VALUE_QUERIES.has(key) && values.every((value) => VALUE.test(String(value))) ? 'open' : 'secret';
}

/** A client of the node sends a text, and what the node sends is a list: in that it says who it is itself. */
export function headerDoor(name: string, value: unknown): 'open' | 'link' | 'token' {
  if (name === 'user-agent' && typeof value === 'string') return 'token';
  return OPEN_HEADERS.has(name) ? 'open' : LINK_HEADERS.has(name) ? 'link' : 'token';
}

/** The tree reads documents, by their keys, and the level of the log; a form may have a command in it. */
export function bodyDoor({ path, body }: { path: string; body: Uint8Array }): 'free' | 'secret' {
  const text = new TextDecoder().decode(body);
  return YAML_BODIES.test(path) || VALUE.test(text) || documentOf(text) !== undefined ? 'free' : 'secret';
}

/** All of a path that is no page's; of a page's, what is no name. Files below `/logs/` may have any name. */
export function pathText(path: string, standIn: (part: string) => string): string {
  const [page = ''] = path.split('/').filter((part) => part !== '');
  if (page === 'logs') return path;
  const isPage = PAGES.has(page);
  return path.replaceAll(/[^/]+/g, (part) => ((isPage && NAME.test(part)) || /^\.+$/.test(part) ? part : standIn(part)));
}
