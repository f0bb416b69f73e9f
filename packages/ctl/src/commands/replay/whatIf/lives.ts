/** What a recording tells of its runtime: how long containers ran and how they ended, images, what was there; how long calls took. */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { CriError } from '@actorlet/kubelet/ports/ports.ts';
import type { Json } from '@actorlet/replay/src/entries.ts';
import type { Asked, Script } from '@actorlet/replay/src/lenient/script.ts';
import { plain } from './plain.ts';

export interface Life {
  readonly attempt: number;
  /** Null: it ran until it was stopped, or the recording ended. */
  readonly runMs: number | null;
  readonly exitCode: number;
  readonly exitReason: string;
  /** Why it did not start; '': it did. */
  readonly startError: string;
}
/** A sandbox or container that was there before the daemon. */
interface Left {
  readonly kind: 'sandbox' | 'container';
  readonly row: Readonly<Record<string, unknown>>;
}
export interface KnownRuntime {
  /** By UID of the pod and name of the container, in order of their attempts. */
  readonly lives: ReadonlyMap<string, readonly Life[]>;
  readonly left: readonly Left[];
  readonly images: readonly string[];
  /** Names of images that no pull ever got. */
  readonly missing: ReadonlySet<string>;
}

const NS_PER_MS = 1_000_000;
const UNAVAILABLE = 14;
export const UID = 'io.kubernetes.pod.uid';

interface Call {
  readonly method: string;
  readonly req: Readonly<Record<string, unknown>>;
  /** Null: it failed. */
  readonly answer: Readonly<Record<string, unknown>> | null;
  /** What the runtime said then, where it said something; else ''. */
  readonly refusal: string;
}

export function knownRuntime(script: Script): KnownRuntime {
  const calls = script.asked.filter((ask) => ask.name === 'cri.call').flatMap((ask) => callOf(ask, script) ?? []);
  const stopped = new Set(calls.filter((c) => c.method === 'StopContainer').map((c) => c.req.containerId));
  return {
    lives: livesOf(calls, stopped),
    left: leftOf(calls),
    images: listed(calls, 'ListImages', 'images').flatMap((image) => texts(image.repoTags)),
    missing: missingOf(calls),
  };
}

/** Null: the recording ended before its answer. */
export function callOf(ask: Asked, { settled }: Script): Call | null {
  const [method, req] = ask.args as readonly Json[];
  const end = settled.get(ask.call ?? -1);
  if (end === undefined || typeof method !== 'string' || !isRecord(req)) return null;
  const error = end.failed ? plain(end.value) : null;
  const refusal = error instanceof CriError && error.outcome === 'failed' && error.code !== UNAVAILABLE ? error.details : '';
  return { method, req, answer: !end.failed && isRecord(end.value) ? end.value : null, refusal };
}

function livesOf(calls: readonly Call[], stopped: ReadonlySet<unknown>): Map<string, Life[]> {
  const statuses = new Map<unknown, Readonly<Record<string, unknown>>>();
  for (const { method, answer } of calls)
    if (method === 'ContainerStatus' && isRecord(answer?.status)) statuses.set(answer.status.id, answer.status);
  const refused = new Map(calls.flatMap((c) => (c.method === 'StartContainer' ? [[c.req.containerId, c.refusal]] : [])));
  const lives = new Map<string, Life[]>();
  for (const { id, metadata, labels, startedAt, finishedAt, exitCode, reason } of statuses.values()) {
    if (!isRecord(metadata) || !isRecord(labels)) continue;
    const ran = Number(finishedAt) > 0 && Number(startedAt) > 0 && !stopped.has(id);
    const key = `${String(labels[UID])} ${String(metadata.name)}`;
    const own = lives.get(key) ?? [];
    own.push({
      attempt: Number(metadata.attempt ?? 0),
      runMs: ran ? Math.max(0, (Number(finishedAt) - Number(startedAt)) / NS_PER_MS) : null,
      ...{
        exitCode: Number(exitCode ?? 0),
        startError: refused.get(id) ?? '',
        exitReason: typeof reason === 'string' && reason !== 'Completed' && reason !== 'Error' ? reason : '',
      },
    });
    lives.set(
      key,
      own.sort((a, b) => a.attempt - b.attempt),
    );
  }
  return lives;
}

/** What the first lists show, before anything was made. */
function leftOf(calls: readonly Call[]): Left[] {
  const begun = calls.findIndex(({ method }) => method === 'RunPodSandbox' || method === 'CreateContainer');
  const before = begun < 0 ? calls : calls.slice(0, begun);
  const first = (method: string, key: string) => listed(before.filter((c) => c.method === method).slice(0, 1), method, key);
  return [
    ...first('ListPodSandbox', 'items').map((row) => ({ kind: 'sandbox' as const, row })),
    ...first('ListContainers', 'containers').map((row) => ({ kind: 'container' as const, row: { ...statusOf(calls, row.id), ...row } })),
  ];
}

function statusOf(calls: readonly Call[], id: unknown): Readonly<Record<string, unknown>> {
  const found = calls.find(({ method, req, answer }) => method === 'ContainerStatus' && req.containerId === id && answer !== null);
  return isRecord(found?.answer?.status) ? found.answer.status : {};
}

function listed(calls: readonly Call[], method: string, key: string): Readonly<Record<string, unknown>>[] {
  return calls.flatMap((c) => (c.method === method && Array.isArray(c.answer?.[key]) ? (c.answer[key] as unknown[]).filter(isRecord) : []));
}

function missingOf(calls: readonly Call[]): Set<string> {
  const missing = new Set<string>();
  const got = new Set<string>();
  for (const { method, req, answer } of calls) {
    if (method !== 'PullImage' || !isRecord(req.image)) continue;
    (answer === null ? missing : got).add(String(req.image.image));
  }
  return new Set([...missing].filter((name) => !got.has(name)));
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** How long a call takes, in milliseconds: `cri.call METHOD`, `fs.readFile`, `kube.request PATCH pods/status`. */
export type Took = (call: string) => number;

/** @param chance Null: each takes as long as most of its name took. Else as long as one of them, which chance chooses. */
export function tookOf({ asked, settled }: Script, chance: (() => number) | null): Took {
  const all = new Map<string, number[]>();
  for (const { name, args, call, atMs } of asked) {
    const end = settled.get(call ?? -1);
    if (end === undefined || end.failed || (isRecord(end.value) && end.value.ok === false)) continue;
    const key = callName(name, args as readonly Json[]);
    const took = all.get(key);
    if (took === undefined) all.set(key, [end.atMs - atMs]);
    else took.push(end.atMs - atMs);
  }
  for (const took of all.values()) took.sort((a, b) => a - b);
  return (call) => {
    const took = all.get(call) ?? [];
    return took[Math.floor((chance?.() ?? 0.5) * took.length)] ?? 0;
  };
}

/** Calls of one name take about as long. */
export function callName(name: string, [first]: readonly unknown[]): string {
  if (name === 'cri.call') return `${name} ${String(first)}`;
  if (!name.startsWith('kube.') || !isRecord(first)) return name;
  const { verb = 'GET', path } = first;
  const [, resource, sub = ''] = /^\/apis?\/.*?v\w+\/(?:namespaces\/[^/]+\/)?([^/]+)(?:\/[^/]+)?(\/.+)?$/.exec(String(path)) ?? [];
  return `kube.request ${String(verb)} ${resource ?? String(path)}${sub}`;
}
