/**
 * A client asks a node's API: with no, wrong, insufficient and right credentials, for pages that are there and some that are
 * not, giving up at times. A background to whatever else happens, from the first boot to the end.
 */

import { accessAttributes } from '@actorlet/kubelet/machines/edge/https/attributes.ts';
import { podsView } from '@actorlet/kubelet/machines/pods/manager/messages.ts';

import type { Clock } from '@actorlet/kubelet/ports/ports.ts';
import type { Answer } from '@actorlet/world/src/host/net.ts';
import { type Account, isAllowed, NOBODY, OPERATOR, tokenOf, VIEWER } from '@actorlet/world/src/identity/accounts.ts';
import { SECRET, type SimCertificate } from '@actorlet/world/src/identity/certificates.ts';
import { API_PORT } from '@actorlet/world/src/identity/identity.ts';
import type { SimNode } from '@actorlet/world/src/node/types.ts';
import type { SimRng } from '@actorlet/world/src/rng.ts';
import { WALL_START_MS } from '@actorlet/world/src/time.ts';
import { drawLogQuery, LOGS_PATH } from './workload/logQueries.ts';

/** How the caller shows who it is. */
type Way = 'none' | 'certificate' | 'token' | 'unknown-token' | 'unknown-certificate' | 'ended-certificate';
export interface Asked {
  method: string;
  path: string;
  query?: Readonly<Record<string, string>>;
  way: Way;
  /** The true account; null: nobody that the cluster knows. */
  account: Account | null;
  /** The cluster lets it do this. */
  allowed: boolean;
  answer: Answer | { kind: 'gave-up' };
  /** How long it waited. */
  tookMs: number;
}

/** A caller waits this long at most; the node's questions to the API server take 10 s each at most. */
const PATIENCE_MS = 40_000;
const LIFE_MS = 365 * 86_400_000;
/** Pages that a good caller asks for again and again. */
export const PAGES = ['/healthz', '/pods', '/metrics'] as const;
const MORE_PAGES = ['/runningpods/', '/configz', '/stats/summary', '/metrics/resource', '/metrics/probes', '/nonsense', '/healthz/ping'];
const ACCOUNTS = [OPERATOR, OPERATOR, OPERATOR, VIEWER, VIEWER, NOBODY];

/** Profiles of the daemon, and what seconds are asked for: some of them are none. */
export const PROFILES = ['/debug/pprof/profile', '/debug/pprof/heap'] as const;
const PROFILE_SECONDS = ['1', '3', '8', '12', '', '0', 'x', '301'];

export interface CallerOptions {
  node: SimNode;
  everyMs: number;
  rng: SimRng;
  /** Chances of the caller that asks for logs of the machine; null: no such caller. */
  queries: SimRng | null;
  /** The same for profiles. */
  profiles: SimRng | null;
  clock: Clock;
  on(asked: Asked): void;
}
/** A request before its answer. */
type Asking = Omit<Asked, 'answer' | 'tookMs'>;

export class Caller {
  readonly #o: CallerOptions;
  readonly #given = new Map<string, number>();
  #on = false;

  constructor(o: CallerOptions) {
    this.#o = o;
  }

  begin(): void {
    const { rng, everyMs, queries, profiles } = this.#o;
    this.#on = true;
    this.#repeat(
      () => rng.int(everyMs),
      () => this.#ask(this.#draw(), rng.chance(0.15) ? rng.int(3_000) : PATIENCE_MS),
    );
    this.#repeat(
      () => STEADY_MS,
      (turn) => this.#ask(this.#steady(turn), PATIENCE_MS),
    );
    if (queries !== null) {
      this.#repeat(
        () => queries.int(2 * QUERY_MS),
        () => this.#ask(drawQuery(queries), queries.chance(0.2) ? queries.int(2_000) : PATIENCE_MS),
      );
    }
    if (profiles !== null) {
      this.#repeat(
        () => profiles.int(2 * PROFILE_MS),
        () => this.#ask(drawProfile(profiles), profiles.chance(0.3) ? profiles.int(3_000) : PATIENCE_MS),
      );
    }
  }

  end(): void {
    this.#on = false;
  }

  /** Monotonic ms at which somebody who may have this page was last given it; -Infinity: never. */
  givenAtMs(page: string): number {
    return this.#given.get(page) ?? Number.NEGATIVE_INFINITY;
  }

  /** Acts again and again until the end, after a pause each time. */
  #repeat(pauseMs: () => number, act: (turn: number) => void, turn = 0): void {
    this.#o.clock.setTimeout(() => {
      if (!this.#on) return;
      act(turn);
      this.#repeat(pauseMs, act, turn + 1);
    }, pauseMs());
  }

  #draw(): Asking {
    const { node, rng } = this.#o;
    const container = chooseContainer(node, rng);
    const pages = [...PAGES, ...PAGES, ...MORE_PAGES, ...(container === null ? [] : [`/containerLogs/${container}`, `/exec/${container}`])];
    const path = rng.pick(pages) ?? '/pods';
    const method = path.startsWith('/exec/') || rng.chance(0.1) ? 'POST' : 'GET';
    const way = rng.pick(WAYS) ?? 'none';
    const account = way === 'certificate' || way === 'token' ? (rng.pick(ACCOUNTS) ?? NOBODY) : null;
    return { method, path, way, account, allowed: account !== null && isAllowed(account.name, subresources(method, path)) };
  }

  /** In the order of the pages, by certificate and token in turn. */
  #steady(turn: number): Asking {
    const path = PAGES[turn % PAGES.length] ?? '/pods';
    // Without a cluster nobody can say whose a token is.
    const way = this.#o.node.kube !== undefined && turn % 2 === 1 ? 'token' : 'certificate';
    return { method: 'GET', path, way, account: OPERATOR, allowed: true };
  }

  #ask(what: Asking, patienceMs: number): void {
    const { node, clock } = this.#o;
    const { method, path, query = {}, way, account } = what;
    const beganMs = clock.monoMs();
    const giveUp = new AbortController();
    let open = true;
    const done = (answer: Asked['answer']): void => {
      if (!open) return;
      open = false;
      clock.clearTimeout(timer);
      if (answer.kind === 'reply' && answer.status === 200 && what.allowed) this.#given.set(path, clock.monoMs());
      this.#o.on({ ...what, answer, tookMs: clock.monoMs() - beganMs });
    };
    const timer = clock.setTimeout(() => {
      giveUp.abort();
      done({ kind: 'gave-up' });
    }, patienceMs);
    const token = way === 'token' && account !== null ? tokenOf(account, SECRET) : way === 'unknown-token' ? `${SECRET}unknown` : null;
    const request = { method, path, query, token, certificate: certificateOf(way, account), signal: giveUp.signal };
    void node.net.ask(API_PORT, request, clock.wallMs()).then(done);
  }
}

/** Logs of the machine. */
function drawQuery(rng: SimRng): Asking {
  const account = rng.pick(ACCOUNTS) ?? NOBODY;
  const allowed = isAllowed(account.name, ['log']);
  return { method: 'GET', path: LOGS_PATH, query: drawLogQuery(rng), way: 'certificate', account, allowed };
}

function drawProfile(rng: SimRng): Asking {
  const account = rng.pick(ACCOUNTS) ?? NOBODY;
  const path = rng.pick(PROFILES) ?? '/debug/pprof/profile';
  const allowed = isAllowed(account.name, subresources('GET', path));
  return { method: 'GET', path, query: { seconds: rng.pick(PROFILE_SECONDS) ?? '1' }, way: 'certificate', account, allowed };
}

function subresources(method: string, path: string): string[] {
  return accessAttributes(method, path, { fineGrained: true }).map((a) => a.subresource);
}

const STEADY_MS = 3_000;
const QUERY_MS = 4_000;
const PROFILE_MS = 5_000;
const WAYS: readonly Way[] = [
  'none',
  'certificate',
  'certificate',
  'token',
  'token',
  'unknown-token',
  'unknown-certificate',
  'ended-certificate',
];

function certificateOf(way: Way, account: Account | null): SimCertificate | null {
  if (!way.endsWith('certificate')) return null;
  const { name, groups } = account ?? OPERATOR;
  return {
    commonName: name,
    organizations: groups,
    dnsNames: [],
    ips: [],
    publicKey: '',
    fingerprint: `${name} ${way}`,
    issuer: way === 'unknown-certificate' ? 'unknown' : 'cluster',
    notBeforeMs: WALL_START_MS - LIFE_MS,
    notAfterMs: way === 'ended-certificate' ? WALL_START_MS - 1 : WALL_START_MS + LIFE_MS,
  };
}

/** `NAMESPACE/POD/CONTAINER` of some pod that the node knows. */
function chooseContainer(node: SimNode, rng: SimRng): string | null {
  const records = [...(node.daemon?.tree.registry.read(podsView)?.value.records.values() ?? [])];
  const pod = rng.pick(records)?.pod;
  const container = pod?.spec.containers[0]?.name;
  return pod === undefined || container === undefined ? null : `${pod.metadata.namespace}/${pod.metadata.name}/${container}`;
}
