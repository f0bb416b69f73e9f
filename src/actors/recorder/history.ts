/**
 * What the flight recorder forgets too soon for a pod's timeline: its worker's states and its calls of the runtime. Kept
 * where the node is inspected or keeps deaths; bounded per pod and in pods, the one that was quiet the longest goes first.
 */

import type { PodStatus } from '../../machines/kube/types.ts';
import type { StatusView } from '../../machines/pods/status/messages.ts';
import { workersAddr } from '../../machines/pods/workers/messages.ts';
import { BUNDLE_ENTRIES, type PodHistory, type RuntimeCall } from '../../machines/recorder/podHistory.ts';
import type { SupervisionEvent } from '../../machines/supervision/observed.ts';
import { CRI_LABELS } from '../../machines/wire/cri.ts';
import type { Clock, Cri, CriError } from '../../ports/ports.ts';
import { noteContainers, seenIn } from './containerSpans.ts';
import { SecretWords } from './secretWords.ts';

/** Pods remembered: twice what a node runs at most (maxPods 110), ended ones included. */
const PODS_MAX = 256;
/** Entries kept per pod, of each kind; the first ones stay, since they tell how it started. */
interface HistoryBounds {
  readonly steps: number;
  readonly calls: number;
  readonly spans: number;
  readonly first: number;
}
const WHOLE: HistoryBounds = { steps: 160, calls: 160, spans: 160, first: 40 };
/** For bundles of deaths alone: what one of them shows. Of 256 pods that is some 10 MiB at most. */
const LEAN: HistoryBounds = { ...BUNDLE_ENTRIES, first: 0 };
/** Longest reason of a change of state. */
const REASON_CHARS_MAX = 1024;
/** Secrets kept per pod: words of commands, values of variables. */
const SECRETS_MAX = 500;
const SECRETS_CHARS_MAX = 64 * 1024;
/** Container and sandbox ids whose pod is known. */
const IDS_MAX = 4096;

/** The span of one call: what the runtime is told of it, and what is told of its end. */
export interface CallSpan {
  traceparent: string;
  /** `error`: what the call rejected with; undefined: it worked. */
  ended(error: unknown): void;
}

export interface History {
  observe(e: SupervisionEvent): void;
  /** The statuses of all pods, whenever one has changed. */
  see(statuses: StatusView): void;
  /** When it saw these statuses last; undefined: it saw others since. */
  seenMs(statuses: unknown): number | undefined;
  /** The runtime, with its calls noted. */
  watch(cri: Cri): Cri;
  /** A message without what is secret of the node, as it may leave the machine. */
  hidden(text: string): string;
  /** Values of Secrets, which programs may read from files. */
  learn(secrets: readonly string[]): void;
  /** What is secret of this pod, as its calls of the runtime had it, and each short value of a Secret. */
  secretsOf(uid: string): readonly string[];
  of(uid: string): PodHistory | undefined;
  /** `fn` is called for every call that is kept, when it begins and when it ends. */
  watchCalls(fn: (uid: string, call: RuntimeCall) => void): Disposable;
  /** `fn` is called before each call that is kept; must not throw. Undefined: this call is not traced. One tracer at a time. */
  traceCalls(fn: (uid: string, call: RuntimeCall) => CallSpan | undefined): Disposable;
}

const WORKER = `${workersAddr.path}/`;
/** Calls that say nothing about one pod, or are made all the time. */
const NOT_KEPT: ReadonlySet<string> = new Set(['Status', 'Version', 'ListContainers', 'ListPodSandbox', 'ListImages', 'ImageFsInfo']);

/** Probes run commands all the time: after the first ones, those are kept that fail. */
const COMMAND = 'ExecSync';
const COMMANDS_KEPT = 8;

function bound<T>(history: PodHistory, list: T[], { max, first }: { max: number; first: number }): void {
  const surplus = list.length - max;
  if (surplus <= 0) return;
  list.splice(first, surplus);
  history.left += surplus;
}
export function keepStep(history: PodHistory, step: PodHistory['steps'][number], { steps, first } = WHOLE): void {
  history.steps.push(step);
  bound(history, history.steps, { max: steps, first });
}
export function keepCall(history: PodHistory, call: RuntimeCall, { calls, first } = WHOLE): void {
  history.calls.push(call);
  bound(history, history.calls, { max: calls, first });
}
/** Takes what a status shows of a pod's containers. */
export function keepStatus(history: PodHistory, { status, atMs }: { status: PodStatus; atMs: number }, { spans, first } = WHOLE): void {
  if (history.readyAtMs === undefined && isReady(status)) history.readyAtMs = atMs;
  if (noteContainers(history.containers, seenIn(status), atMs)) bound(history, history.containers, { max: spans, first });
}
export const newHistory = (): PodHistory => ({ steps: [], calls: [], containers: [], left: 0 });

/** `lean`: nobody looks at the node. A secret is known as it is alone, and less is kept. */
export function createHistory(clock: Clock, { lean }: { lean: boolean } = { lean: false }): History {
  const bounds = lean ? LEAN : WHOLE;
  const pods = new Map<string, PodHistory>(); // In the order of their last change.
  const owners = new Map<string, string>();
  const historyOf = (uid: string): PodHistory => {
    const known = pods.get(uid) ?? newHistory();
    pods.delete(uid);
    pods.set(uid, known);
    if (pods.size > PODS_MAX) pods.delete(pods.keys().next().value ?? '');
    return known;
  };
  /** What was told last: most pods are as they were. */
  const told = new WeakMap<PodHistory, unknown>();
  let seen: { statuses: unknown; atMs: number } = { statuses: null, atMs: 0 };
  const commands = new WeakMap<PodHistory, number>();
  const words = new SecretWords({ inAllWritings: !lean });
  const secrets = new WeakMap<PodHistory, Set<string>>();
  const watchers = new Set<(uid: string, call: RuntimeCall) => void>();
  let tracer: ((uid: string, call: RuntimeCall) => CallSpan | undefined) | null = null;
  return {
    observe(e) {
      if (e.kind === 'transition' && e.path.startsWith(WORKER)) keepStep(historyOf(e.path.slice(WORKER.length)), stepOf(e), bounds);
    },
    see(statuses) {
      seen = { statuses, atMs: clock.wallMs() };
      for (const [uid, history] of pods) {
        const status = statuses.get(uid)?.status;
        if (status === undefined || told.get(history) === status) continue;
        told.set(history, status);
        keepStatus(history, { status, atMs: seen.atMs }, bounds);
      }
    },
    seenMs: (statuses) => (seen.statuses === statuses ? seen.atMs : undefined),
    of: (uid) => pods.get(uid),
    hidden: (text) => words.hidden(text),
    learn: (secrets) => words.learn(secrets),
    secretsOf: (uid) => [...(secrets.get(pods.get(uid) ?? NOBODY) ?? []), ...words.short],
    watchCalls(fn) {
      watchers.add(fn);
      return { [Symbol.dispose]: () => void watchers.delete(fn) };
    },
    traceCalls(fn) {
      tracer = fn;
      return {
        [Symbol.dispose]() {
          if (tracer === fn) tracer = null;
        },
      };
    },
    watch(cri) {
      // The caller gets the runtime's own promise: a node with a history takes its steps in the order of one without.
      const call: Cri['call'] = (method, req, opts) => {
        const secret = words.note(method, req);
        const { uid, about } = aboutOf(req, owners);
        if (NOT_KEPT.has(method)) return cri.call(method, req, opts);
        if (uid === undefined) {
          const answer = cri.call(method, req, opts);
          // Made by an earlier daemon: from here on it is known whose it is.
          answer.then((told) => ownedBy(owners, at(told, 'status', 'id'), at(told, 'status', 'labels', CRI_LABELS.podUid)), ignored);
          return answer;
        }
        const noted: RuntimeCall = { method, about, startMs: clock.wallMs(), endMs: null, error: '' };
        const history = historyOf(uid);
        secrets.set(history, keptSecrets(secrets.get(history), secret));
        const nth = method === COMMAND ? (commands.get(history) ?? 0) + 1 : 0;
        if (nth > 0) commands.set(history, nth);
        const isKept = nth <= COMMANDS_KEPT;
        const tell = (): void => watchers.forEach((fn) => void fn(uid, noted));
        if (isKept) keepCall(history, noted, bounds);
        if (isKept) tell();
        const span = tracer?.(uid, noted);
        const ended = (error: unknown): void => {
          if (error !== undefined) noted.error = words.hidden(briefly(error)).slice(0, ERROR_CHARS_MAX);
          span?.ended(error);
          noted.endMs = clock.wallMs();
          if (!isKept && noted.error !== '') keepCall(history, noted, bounds);
          if (isKept || noted.error !== '') tell();
        };
        const answer = cri.call(method, req, span === undefined ? opts : { ...opts, traceparent: span.traceparent });
        answer.then((told) => {
          ownedBy(owners, at(told, 'containerId') ?? at(told, 'podSandboxId'), uid);
          ended(undefined);
        }, ended);
        return answer;
      };
      return { call, hints: (signal) => cri.hints(signal), reconnect: () => cri.reconnect(), close: () => cri.close() };
    },
  };
}

function stepOf({ atMs, from, to, event, reason }: Extract<SupervisionEvent, { kind: 'transition' }>): PodHistory['steps'][number] {
  return { atMs, from, to, event, reason: reason.slice(0, REASON_CHARS_MAX) };
}

export function isReady(told: { conditions?: readonly { type: string; status: string }[] | undefined } | undefined): boolean {
  return told?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
}

function ownedBy(owners: Map<string, string>, id: string | undefined, uid: string | undefined): void {
  if (id === undefined || uid === undefined) return;
  owners.set(id, uid);
  if (owners.size > IDS_MAX) owners.delete(owners.keys().next().value ?? '');
}

const NOBODY: PodHistory = newHistory();

/** The newest ones, as many as there is room for. */
function keptSecrets(before: Set<string> | undefined, secret: readonly string[]): Set<string> {
  if (before !== undefined && secret.every((word) => before.has(word))) return before;
  const kept = new Set<string>();
  let chars = 0;
  for (const word of [...secret, ...(before ?? [])]) {
    if (kept.size === SECRETS_MAX || chars + word.length > SECRETS_CHARS_MAX) continue;
    if (!kept.has(word)) chars += word.length;
    kept.add(word);
  }
  return kept;
}

/** The caller hears of it. */
function ignored(): void {}

/** Of an error whose secrets are hidden already: half a secret is one, too. */
const ERROR_CHARS_MAX = 200;
const LINE_CHARS_MAX = 16 * 1024;
function briefly(error: unknown): string {
  const text = error instanceof Error ? ((error as CriError).message.split('\n', 1)[0] ?? '') : String(error);
  return text.slice(0, LINE_CHARS_MAX);
}

/** Which pod a request is about, and what of it. Reads names and ids only. */
function aboutOf(req: unknown, owners: ReadonlyMap<string, string>): { uid: string | undefined; about: string } {
  const uid =
    at(req, 'config', 'metadata', 'uid') ??
    at(req, 'sandboxConfig', 'metadata', 'uid') ??
    at(req, 'filter', 'labelSelector', CRI_LABELS.podUid);
  const ids = [at(req, 'containerId'), at(req, 'podSandboxId'), at(req, 'podSandboxStatus'), at(req, 'filter', 'podSandboxId')];
  const owner = uid ?? ids.flatMap((id) => (id === undefined ? [] : [owners.get(id)])).find((found) => found !== undefined);
  const name = at(req, 'config', 'metadata', 'name');
  const image = at(req, 'image', 'image');
  const id = ids.find((found) => found !== undefined);
  return {
    uid: owner,
    about: image ?? (at(req, 'sandboxConfig', 'metadata', 'uid') === undefined ? undefined : name) ?? id?.slice(0, 13) ?? '',
  };
}

function at(value: unknown, ...keys: readonly string[]): string | undefined {
  let here: unknown = value;
  for (const key of keys) here = typeof here === 'object' && here !== null ? Reflect.get(here, key) : undefined;
  return typeof here === 'string' && here !== '' ? here : undefined;
}
