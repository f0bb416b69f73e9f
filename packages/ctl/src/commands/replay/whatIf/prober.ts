/**
 * Probes of pods, by what the played runtime runs: a container answers as it answered at the same age. Where none runs, the
 * connection is refused. Addresses are those of the run. Commands that were run in containers end as they did.
 */
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { Json } from '@actorlet/replay/src/entries.ts';
import type { Otherwise } from '@actorlet/replay/src/lenient/lenient.ts';
import type { Script, Settled } from '@actorlet/replay/src/lenient/script.ts';
import type { HollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import { callOf, UID } from './lives.ts';
import { plain } from './plain.ts';

interface Answer {
  /** Since a container of the pod was started last. */
  readonly ageMs: number;
  readonly tookMs: number;
  readonly settled: Settled;
}
export interface KnownProbes {
  /** By UID of the pod and what was asked of it, in order of time. */
  readonly answers: ReadonlyMap<string, readonly Answer[]>;
  /** Addresses that pods had. */
  readonly addresses: ReadonlySet<string>;
}

const UNAVAILABLE = 14;

export function knownProbes(script: Script): KnownProbes {
  const answers = new Map<string, Answer[]>();
  const uids = new Map<string, string>();
  const pods = new Map<unknown, string>();
  const startedMs = new Map<string, number>();
  const all = script.asked.flatMap((ask) => ({ ask, settled: script.settled.get(ask.call ?? -1) }));
  for (const { ask, settled } of all.sort((a, b) => (a.settled?.order ?? Infinity) - (b.settled?.order ?? Infinity))) {
    if (settled === undefined) break;
    const call = ask.name === 'cri.call' ? callOf(ask, script) : null;
    if (call?.method === 'PodSandboxStatus' && isRecord(call.answer?.status)) {
      const { network, metadata } = call.answer.status;
      if (isRecord(network) && isRecord(metadata) && network.ip !== '') uids.set(String(network.ip), String(metadata.uid));
    }
    if (call?.method === 'CreateContainer' && isRecord(call.req.config) && isRecord(call.req.config.labels))
      pods.set(call.answer?.containerId, String(call.req.config.labels[UID]));
    if (call?.method === 'ListContainers')
      for (const row of rowsOf(call.answer?.containers)) if (isRecord(row.labels)) pods.set(row.id, String(row.labels[UID]));
    if (call?.method === 'StartContainer' && call.answer !== null) startedMs.set(pods.get(call.req.containerId) ?? '', settled.atMs);
    const asked = ask.name.startsWith('prober.') ? askedOf(ask.name, plain(ask.args) as readonly unknown[]) : null;
    const ran = call?.method === 'ExecSync' ? call.req : null;
    const uid = ran !== null ? pods.get(ran.containerId) : asked === null ? undefined : uids.get(asked.host);
    if (uid === undefined) continue;
    const key = `${uid} ${ran === null ? asked?.what : commandOf(ran)}`;
    const answer = { ageMs: ask.atMs - (startedMs.get(uid) ?? 0), tookMs: settled.atMs - ask.atMs, settled };
    answers.set(key, [...(answers.get(key) ?? []), answer]);
  }
  return { answers, addresses: new Set(uids.keys()) };
}

export function playedProber(known: KnownProbes, { clock, hollow }: { clock: Clock; hollow: Pick<HollowRuntime, 'dump'> }): Otherwise {
  const ran = (req: Readonly<Record<string, unknown>>, args: readonly unknown[]): { result: unknown } | undefined => {
    const one = hollow.dump().containers.find(({ id, state }) => id === req.containerId && state === 'CONTAINER_RUNNING');
    const answers = one === undefined ? [] : (known.answers.get(`${one.podUid} ${commandOf(req)}`) ?? []);
    const ageMs = clock.wallMs() - (one?.startedAtMs ?? 0);
    const answer = answers.findLast((each) => each.ageMs <= ageMs) ?? answers[0];
    return answer === undefined ? undefined : { result: later(answer, args[2], clock) };
  };
  return (name, args) => {
    if (name === 'cri.call' && args[0] === 'ExecSync' && isRecord(args[1])) return ran(args[1], args);
    const asked = name.startsWith('prober.') ? askedOf(name, args) : null;
    if (asked === null) return undefined;
    const { sandboxes, containers } = hollow.dump();
    const uid = sandboxes.findLast((one) => one.ready && one.ip === asked.host)?.uid;
    if (uid === undefined) return known.addresses.has(asked.host) ? refused(name, asked.host) : undefined;
    const running = containers.filter((one) => one.podUid === uid && one.state === 'CONTAINER_RUNNING');
    const answers = known.answers.get(`${uid} ${asked.what}`) ?? [];
    const ageMs = clock.wallMs() - Math.max(...running.map((one) => one.startedAtMs));
    const answer = answers.findLast((one) => one.ageMs <= ageMs) ?? answers[0];
    return running.length === 0 || answer === undefined ? refused(name, asked.host) : { result: later(answer, args[1], clock) };
  };
}

function rowsOf(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

function commandOf({ cmd }: Readonly<Record<string, unknown>>): string {
  return `exec ${JSON.stringify(cmd)}`;
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

function later({ settled, tookMs }: Answer, o: unknown, clock: Clock): Promise<unknown> {
  return new Promise((resolve, reject) => {
    if (isRecord(o) && o.signal instanceof AbortSignal)
      o.signal.addEventListener('abort', () => reject(new DOMException('This operation was aborted', 'AbortError')), { once: true });
    const value = plain(settled.value as Json);
    clock.setTimeout(() => (settled.failed ? reject(value) : resolve(value)), tookMs);
  });
}
