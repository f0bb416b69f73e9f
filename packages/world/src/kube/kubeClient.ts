/** The way from one daemon to the simulated API server: delays, refusals, lost answers, partitions, credentials. */

import { type KubeFailure, type KubeRequest, type KubeResult, statusFailure } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { KubeApi, KubeCallOptions } from '@actorlet/kubelet/ports/kube.ts';
import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { SimCertificate } from '../identity/certificates.ts';
import type { KubeCall, KubeDaemon, KubeVerdict, SimKube } from './types.ts';
import type { KubeWatches } from './watches/kubeWatches.ts';

/** What a client needs of the server. */
export interface KubeServer {
  /** Read at each request. */
  kube: SimKube;
  watches: KubeWatches;
  clock: Clock;
  latencyMs(): number;
  note(call: KubeCall): void;
}

/** Versions by which a list is behind; nothing that happened meanwhile is replayed where the history was compacted. */
const BEHIND = 500;

/** For so long a server that has just started says "not found" of each pod that a node deletes: its admission has not seen the pods. */
const ADMISSION_BLIND_MS = 1_000;

export function kubeClient(server: KubeServer, daemon: KubeDaemon): KubeApi {
  const { kube, watches, clock, note } = server;
  /** When it answered first since it was away; null: it is away. */
  let startedMs: number | null = Number.NEGATIVE_INFINITY;
  const isBlind = (): boolean => {
    if (kube.trouble.down) startedMs = null;
    else startedMs ??= clock.monoMs();
    return startedMs !== null && clock.monoMs() - startedMs < ADMISSION_BLIND_MS;
  };
  const { power, credentials, node = '' } = daemon;
  const connections = new Map<string, Set<() => void>>();
  const exchange = <T extends { ok: boolean }>(request: KubeRequest, opts: KubeCallOptions, effect: () => T) =>
    new Promise<T | Failed>((resolve) => {
      if (!power.on) return;
      const of = opts.class ?? 'kube';
      const mine = connections.get(of) ?? new Set();
      connections.set(of, mine);
      new Exchange<T>(server, { daemon, request, opts, connections: mine, isBlind, effect, resolve }).begin();
    });
  return {
    server: 'https://kube.sim',
    request: (request, opts) =>
      exchange(request, opts, () => {
        kube.onRequest?.(request, node);
        const answer = outdated(kube, { request, answer: kube.handle(request) });
        note({ request, code: answer.ok ? answer.code : answer.failure.code });
        return answer;
      }),
    watch: (request, opts) =>
      exchange({ verb: 'GET', ...request, query: { ...request.query, watch: 'true' } }, { ...opts, timeoutMs: opts.timeoutMs }, () => {
        const opened = watches.open({ verb: 'GET', ...request }, power);
        note({
          request: { verb: 'GET', path: request.path, query: { ...request.query, watch: 'true' } },
          code: 'failure' in opened ? opened.failure.code : 200,
        });
        if ('failure' in opened) return { ok: false, failure: opened.failure };
        // Nobody is there to read it: the connection was closed on the way.
        if (opts.signal.aborted) opened.watch.close();
        return { ok: true, lines: opened.watch.read(opts.signal) };
      }),
    ...(credentials === undefined ? {} : { reload: async () => credentials.suspect() }),
    closeConnections(of) {
      for (const cut of [...(connections.get(of) ?? [])]) cut();
    },
    close() {
      for (const set of connections.values()) for (const cut of [...set]) cut();
    },
  };
}

const POD = /\/pods\/[^/]+$/;

interface Failed {
  ok: false;
  failure: KubeFailure;
}

interface ExchangeOptions<T> {
  daemon: KubeDaemon;
  request: KubeRequest;
  opts: KubeCallOptions;
  /** Connections of its class: calling one cuts it. */
  connections: Set<() => void>;
  /** Its admission cannot tell yet which pods there are. */
  isBlind(): boolean;
  effect(): T;
  resolve(value: T | Failed): void;
}

function failed(code: number, reason: string, message: string): Failed {
  return { ok: false, failure: { code, reason, message, outcome: 'failed' } };
}

/** One request: it ends once, with its answer, its deadline, its caller or its connection. */
class Exchange<T extends { ok: boolean }> {
  readonly #server: KubeServer;
  readonly #o: ExchangeOptions<T>;
  #open = true;
  #timer: unknown;

  constructor(server: KubeServer, o: ExchangeOptions<T>) {
    this.#server = server;
    this.#o = o;
  }

  begin(): void {
    const { daemon, request, opts, connections } = this.#o;
    const { timeoutMs } = opts;
    if (timeoutMs !== null)
      this.#timer = daemon.clock.setTimeout(() => this.#lost('Timeout', `no answer within ${timeoutMs} ms`), timeoutMs);
    if (opts.signal.aborted) {
      this.#cancel();
      return;
    }
    const shown = daemon.credentials?.current();
    if (shown === null) {
      this.#finish(failed(0, 'NoCredentials', 'the files of the client certificate are not there'));
      return;
    }
    opts.signal.addEventListener('abort', this.#cancel, { once: true });
    connections.add(this.#cut);
    void this.#travel(this.#server.kube.trouble.verdict(request), shown);
  }

  readonly #cancel = (): void => this.#lost('Aborted', 'the call was given up');
  readonly #cut = (): void => this.#lost('ECONNRESET', 'the connection was closed');

  #lost(reason: string, message: string): void {
    const outcome = this.#o.request.verb === 'GET' ? 'failed' : 'unknown';
    this.#finish({ ok: false, failure: { code: 0, reason, message, outcome } });
  }

  #finish(value: T | Failed): void {
    if (!this.#open) return;
    this.#open = false;
    const { daemon, opts, connections } = this.#o;
    daemon.clock.clearTimeout(this.#timer);
    opts.signal.removeEventListener('abort', this.#cancel);
    connections.delete(this.#cut);
    if (daemon.power.on) this.#o.resolve(value);
  }

  async #travel(verdict: KubeVerdict, shown: SimCertificate | undefined): Promise<void> {
    const { clock, latencyMs } = this.#server;
    const ms = latencyMs() + verdict.delayMs + (verdict.lost === 'late-effect' ? (verdict.lateMs ?? 0) : 0);
    await (ms <= 0 ? undefined : new Promise<void>((wake) => void clock.setTimeout(wake, ms)));
    const answer = this.#arrive(verdict, shown);
    if (answer !== null) this.#finish(answer);
  }

  /** Null: nobody hears of it. */
  #arrive(verdict: KubeVerdict, shown: SimCertificate | undefined): T | Failed | null {
    const { kube, clock, note } = this.#server;
    const { daemon, request, effect } = this.#o;
    const isBlind = this.#o.isBlind();
    if (kube.trouble.down) return failed(0, 'ECONNREFUSED', 'connection refused');
    // What was sent into a partition is not delivered later: its connection is long given up.
    if (kube.trouble.partitioned) return null;
    if (verdict.refuse !== undefined) {
      note({ request, code: verdict.refuse.status });
      return refusal(verdict.refuse);
    }
    if (verdict.lost === 'without-effect') return null;
    if (shown !== undefined) kube.onShown?.(shown, daemon.node ?? '');
    if (shown !== undefined && shown.notAfterMs <= clock.wallMs()) {
      note({ request, code: 401 });
      daemon.credentials?.suspect();
      return failed(401, 'Unauthorized', 'Unauthorized');
    }
    if (isBlind && request.verb === 'DELETE' && POD.test(request.path)) {
      note({ request, code: 404 });
      return refusal({ status: 404, reason: 'NotFound' });
    }
    const value = effect();
    return verdict.lost === undefined ? value : null;
  }
}

function refusal({ status, reason, retryAfterMs }: NonNullable<KubeVerdict['refuse']>): Failed {
  const usual = status === 429 ? 'TooManyRequests' : status === 409 ? 'Conflict' : status === 410 ? 'Expired' : 'InternalError';
  const body = { kind: 'Status', code: status, reason: reason ?? usual, message: 'injected' };
  return { ok: false, failure: statusFailure(body, status, retryAfterMs) };
}

/** Only an answer from the cache may be old; that is asked for with version 0. */
function outdated({ trouble, store }: SimKube, { request, answer }: { request: KubeRequest; answer: KubeResult }): KubeResult {
  const fromCache = request.query?.resourceVersion === '0';
  if (!trouble.behind || !fromCache || !answer.ok || !isRecord(answer.body) || !Array.isArray(answer.body.items)) return answer;
  const metadata = {
    ...(isRecord(answer.body.metadata) ? answer.body.metadata : {}),
    resourceVersion: String(Math.max(1, store.resourceVersion - BEHIND)),
  };
  return { ...answer, body: { ...answer.body, metadata } };
}
