/**
 * Probes of pods, by what the played runtime runs: a container answers as the same attempt answered nearest to this age. Where none runs,
 * the connection is refused. Addresses are those of the run. Commands that were run in containers end as they did.
 */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { type Clock, CriError } from '@actorlet/kubelet/ports/ports.ts';
import type { Json } from '@actorlet/replay/src/entries.ts';
import type { Otherwise } from '@actorlet/replay/src/lenient/lenient.ts';
import type { Script, Settled } from '@actorlet/replay/src/lenient/script.ts';
import type { HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import { callOf, UID } from './lives.ts';
import { plain } from './plain.ts';

interface Answer {
  /** Of the container in which the command ran, else of that of the pod which was started last; and its age. */
  readonly attempt: number;
  readonly ageMs: number;
  readonly tookMs: number;
  readonly settled: Settled;
}
export interface KnownProbes {
  /** By UID of the pod, for a command the name of the container, and what was asked, in order of time. */
  readonly answers: ReadonlyMap<string, readonly Answer[]>;
  /** Addresses that pods had. */
  readonly addresses: ReadonlySet<string>;
}

const UNAVAILABLE = 14;
const CANCELLED = 1;

interface Known {
  readonly uid: string;
  readonly name: string;
  readonly attempt: number;
  /** 0: before the recording began. */
  startedMs: number;
}

export function knownProbes(script: Script): KnownProbes {
  const answers = new Map<string, Answer[]>();
  const uids = new Map<string, string>();
  const containers = new Map<unknown, Known>();
  const last = new Map<string, Known>();
  const know = (id: unknown, { labels, metadata }: Readonly<Record<string, unknown>>): void => {
    if (containers.has(id) || !isRecord(labels) || !isRecord(metadata)) return;
    const known = { uid: String(labels[UID]), name: String(metadata.name), attempt: Number(metadata.attempt ?? 0), startedMs: 0 };
    containers.set(id, known);
    if ((last.get(known.uid)?.attempt ?? -1) < known.attempt) last.set(known.uid, known);
  };
  const all = script.asked.flatMap((ask) => ({ ask, settled: script.settled.get(ask.call ?? -1) }));
  for (const { ask, settled } of all.sort((a, b) => (a.settled?.order ?? Infinity) - (b.settled?.order ?? Infinity))) {
    if (settled === undefined) break;
    const call = ask.name === 'cri.call' ? callOf(ask, script) : null;
    if (call?.method === 'PodSandboxStatus' && isRecord(call.answer?.status)) {
      const { network, metadata } = call.answer.status;
      if (isRecord(network) && isRecord(metadata) && network.ip !== '') uids.set(String(network.ip), String(metadata.uid));
    }
    if (call?.method === 'CreateContainer' && isRecord(call.req.config)) know(call.answer?.containerId, call.req.config);
    if (call?.method === 'ListContainers') for (const row of rowsOf(call.answer?.containers)) know(row.id, row);
    const begun = call?.method === 'StartContainer' && call.answer !== null ? containers.get(call.req.containerId) : undefined;
    if (begun !== undefined) last.set(begun.uid, Object.assign(begun, { startedMs: settled.atMs }));
    const asked = ask.name.startsWith('prober.') ? askedOf(ask.name, plain(ask.args) as readonly unknown[]) : null;
    const ran = call?.method === 'ExecSync' ? call.req : null;
    const one = ran !== null ? containers.get(ran.containerId) : last.get(uids.get(asked?.host ?? '') ?? '');
    if (one === undefined || (ran === null && asked === null)) continue;
    const key = ran === null ? `${one.uid} ${asked?.what}` : commandOf(one, ran);
    const answer = { attempt: one.attempt, ageMs: ask.atMs - one.startedMs, tookMs: settled.atMs - ask.atMs, settled };
    answers.set(key, [...(answers.get(key) ?? []), answer]);
  }
  return { answers, addresses: new Set(uids.keys()) };
}

export function playedProber(known: KnownProbes, { clock, hollow }: { clock: Clock; hollow: Pick<HollowRuntime, 'dump'> }): Otherwise {
  const ran = (req: Readonly<Record<string, unknown>>, args: readonly unknown[]): { result: unknown } | undefined => {
    const one = hollow.dump().containers.find(({ id, state }) => id === req.containerId && state === 'CONTAINER_RUNNING');
    const answer = one === undefined ? undefined : answerOf(known.answers.get(commandOf({ ...one, uid: one.podUid }, req)), one, clock);
    const details = 'the call was given up';
    const aborted = new CriError({ method: 'ExecSync', code: CANCELLED, outcome: 'unknown', details });
    return answer === undefined ? undefined : { result: later(answer, args[2], { clock, aborted }) };
  };
  return (name, args) => {
    if (name === 'cri.call' && args[0] === 'ExecSync' && isRecord(args[1])) return ran(args[1], args);
    const asked = name.startsWith('prober.') ? askedOf(name, args) : null;
    if (asked === null) return undefined;
    const { sandboxes, containers } = hollow.dump();
    const uid = sandboxes.findLast((one) => one.ready && one.ip === asked.host)?.uid;
    if (uid === undefined) return known.addresses.has(asked.host) ? refused(name, asked.host) : undefined;
    const running = containers.filter((one) => one.podUid === uid && one.state === 'CONTAINER_RUNNING');
    const one = running.reduce<Running | undefined>((a, b) => (a === undefined || b.startedAtMs >= a.startedAtMs ? b : a), undefined);
    const answer = one === undefined ? undefined : answerOf(known.answers.get(`${uid} ${asked.what}`), one, clock);
    const aborted = new DOMException('This operation was aborted', 'AbortError');
    return answer === undefined ? refused(name, asked.host) : { result: later(answer, args[1], { clock, aborted }) };
  };
}

type Running = ReturnType<HollowRuntime['dump']>['containers'][number];

/** An attempt that was not there then answers as the last one before it. */
function answerOf(answers: readonly Answer[] = [], { attempt, startedAtMs }: Running, clock: Clock): Answer | undefined {
  const ageMs = clock.wallMs() - startedAtMs;
  const nearest = answers.findLast((one) => one.attempt <= attempt)?.attempt ?? answers[0]?.attempt;
  const far = (one: Answer): number => Math.abs(one.ageMs - ageMs);
  return answers
    .filter((one) => one.attempt === nearest)
    .reduce<Answer | undefined>((best, one) => (best === undefined || far(one) <= far(best) ? one : best), undefined);
}

function rowsOf(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function commandOf({ uid, name }: Pick<Known, 'uid' | 'name'>, { cmd }: Readonly<Record<string, unknown>>): string {
  return `${uid} ${name} exec ${JSON.stringify(cmd)}`;
}

/** Whom a probe asks, and for what. */
function askedOf(name: string, [at, o]: readonly unknown[]): { host: string; what: string } | null {
  if (name === 'prober.httpGet') {
    const url = URL.parse(String(at));
    return url === null
      ? null
      : { host: url.hostname.replace(/^\[|\]$/g, ''), what: `${name} ${url.protocol}${url.port}${url.pathname}${url.search}` };
  }
  if (!isRecord(at)) return null;
  const service = isRecord(o) && typeof o.service === 'string' ? ` ${o.service}` : '';
  return { host: String(at.host), what: `${name} ${String(at.port)}${service}` };
}

function refused(name: string, host: string): { result: unknown } {
  const details = `connect ECONNREFUSED ${host}`;
  if (name === 'prober.grpcHealth') return { result: Promise.resolve({ ok: false, code: UNAVAILABLE, details }) };
  return { result: Promise.reject(Object.assign(new Error(details), { code: 'ECONNREFUSED' })) };
}

function later({ settled, tookMs }: Answer, o: unknown, { clock, aborted }: { clock: Clock; aborted: Error }): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (isRecord(o) && o.signal instanceof AbortSignal) o.signal.addEventListener('abort', () => reject(aborted), { once: true });
    const value = plain(settled.value as Json);
    clock.setTimeout(() => (settled.failed ? reject(value) : resolve(value)), tookMs);
  });
}
