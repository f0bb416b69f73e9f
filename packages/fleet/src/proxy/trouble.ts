/** Faults that are at work in front of an API server, what they do to a request, and what they have done. Pure. */
import type { Rng } from '@actorlet/kubelet/ports/ports.ts';
import type { ApiFault, ApiFaultName } from '../spec/apiFaults.ts';
import { type ApiRequest, quotedObject, shownRequest } from './request.ts';
import { type Selects, selects } from './selection.ts';

/** An answer in place of the API server's. */
export interface Refusal {
  code: number;
  reason: string;
  message: string;
  retryAfter?: number;
}
/** What becomes of a request. */
export interface Verdict {
  refusal?: Refusal;
  /** It is read as of this version. */
  staleVersion?: string;
  /** The watch gets nothing while this fault lasts. */
  heldBy?: string;
  /** The watch begins, and ends at once: by 410, or as an API server ends it. */
  ends?: 'expired' | 'closed';
  delayMs?: number;
  /** The answer goes nowhere, and the connection breaks. */
  loses?: true;
}

/** A watch that runs, and can be ended. */
export interface RunningWatch {
  request: ApiRequest;
  /** As an API server ends it; `expired`: with 410. */
  end(how: 'expired' | 'closed'): void;
  /** What that fault held back goes on. */
  release(fault: string): void;
}

export interface ApiHit {
  /** Of the clock of the proxy; in a report from the beginning of the run. */
  atMs: number;
  fault: string;
  userAgent: string;
  request: string;
  did: string;
}

interface Active {
  name: string;
  fault: ApiFault;
  selects: Selects;
  rng: Rng;
  left: number;
  /** Of stale reads. */
  version: string;
}

/** Hits that are kept in words; all are counted. */
const HITS_MAX = 1_000;
const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';
const NO_STREAMED_LIST = 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled';

export class ApiTrouble {
  /** By name. */
  readonly #active = new Map<string, Active>();
  readonly #watches = new Set<RunningWatch>();
  readonly #counts = new Map<string, number>();
  readonly #hits: ApiHit[] = [];
  readonly #nowMs: () => number;
  readonly #onHit: (hit: ApiHit) => void;

  constructor(o: { nowMs: () => number; onHit: (hit: ApiHit) => void }) {
    this.#nowMs = o.nowMs;
    this.#onHit = o.onHit;
  }

  /** It takes effect. `version`: what stale reads are answered with. */
  begin(name: string, fault: ApiFault, { rng, version = '' }: { rng: Rng; version?: string }): void {
    const it: Active = { name, fault, selects: selects(fault.select), rng, left: fault.times, version };
    this.#active.set(name, it);
    const how = ENDS_RUNNING[fault.fault];
    if (how === undefined) return;
    for (const watch of [...this.#watches].filter(({ request }) => it.selects(request))) {
      if (!this.#draws(it)) continue;
      this.#hit(it, watch.request, how === 'expired' ? 'the watch was ended by 410' : 'the watch was ended');
      watch.end(how);
    }
  }

  heal(name: string): void {
    if (!this.#active.delete(name)) return;
    for (const watch of [...this.#watches]) watch.release(name);
  }

  /** The watch can be ended from now on. Gives its end. */
  watching(watch: RunningWatch): () => void {
    this.#watches.add(watch);
    return () => void this.#watches.delete(watch);
  }

  /** Whether that fault is still at work. */
  isActive(name: string): boolean {
    return this.#active.has(name);
  }

  judge(request: ApiRequest): Verdict {
    const verdict: Verdict = {};
    for (const it of this.#active.values()) {
      if (verdict.refusal !== undefined) break;
      if (!it.selects(request) || !this.#draws(it)) continue;
      const did = DOES[it.fault.fault](it, request, verdict);
      if (did !== null) this.#hit(it, request, did);
    }
    return verdict;
  }

  /** How much later an event of this watch comes, and by which fault. */
  lagOf(request: ApiRequest): { fault: string; ms: number } | null {
    for (const it of this.#active.values()) {
      if (it.fault.fault !== 'watch-lag' || !it.selects(request) || !this.#draws(it)) continue;
      this.#hit(it, request, `an event came ${it.fault.delayMs} ms later`);
      return { fault: it.name, ms: it.fault.delayMs };
    }
    return null;
  }

  #draws({ left, fault: { probability }, rng }: Active): boolean {
    return left > 0 && (probability >= 1 || rng.next() < probability);
  }

  hits(): readonly ApiHit[] {
    return this.#hits;
  }
  /** Of the fault of that name. */
  hitsOf(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  /** What a fault could not do to a request that it hit. */
  missed(request: ApiRequest, did: string): void {
    this.#note('', request, did);
  }

  #hit(it: Active, request: ApiRequest, did: string): void {
    it.left -= 1;
    this.#counts.set(it.name, this.hitsOf(it.name) + 1);
    this.#note(it.name, request, did);
  }

  #note(fault: string, request: ApiRequest, did: string): void {
    const hit = { atMs: this.#nowMs(), fault, userAgent: request.userAgent, request: shownRequest(request), did };
    if (this.#hits.length < HITS_MAX) this.#hits.push(hit);
    this.#onHit(hit);
  }
}

/** What becomes of watches that run when it takes effect. */
const ENDS_RUNNING: Readonly<Partial<Record<ApiFaultName, 'expired' | 'closed'>>> = {
  'stale-reads': 'closed',
  'watch-close': 'closed',
  'watch-expired': 'expired',
};

/** Changes the verdict, and says what it did; null: the request is none of its. */
type Does = (it: Active, request: ApiRequest, verdict: Verdict) => string | null;
const DOES: Readonly<Record<ApiFaultName, Does>> = {
  'stale-reads': ({ name, version }, { verb, query, resource }, verdict) => {
    if (verb === 'watch') {
      // As from an API server without streamed lists: the client lists instead.
      if (query.get('sendInitialEvents') === 'true') {
        verdict.refusal = { code: 422, reason: 'Invalid', message: NO_STREAMED_LIST };
        return 'the watch with initial events was refused, so the client lists';
      }
      verdict.heldBy ??= name;
      return 'the watch waits';
    }
    // A page belongs to a list that began before; a log or a scale is not kept in versions.
    if (query.has('continue') || (verb === 'get' && /\/(?!status$)/.test(resource))) return null;
    verdict.staleVersion ??= version;
    return `answered as of version ${version}`;
  },
  conflict: (_, request, verdict) => {
    const message = `Operation cannot be fulfilled on ${quotedObject(request)}: ${MODIFIED}`;
    verdict.refusal = { code: 409, reason: 'Conflict', message };
    return '409 Conflict';
  },
  throttle: ({ fault: { retryAfter } }, _, verdict) => {
    const message = 'the server has received too many requests and has asked us to try again later';
    verdict.refusal = { code: 429, reason: 'TooManyRequests', message, retryAfter };
    return `429, Retry-After ${retryAfter} s`;
  },
  // Each event is asked for on its own.
  'watch-lag': () => null,
  'watch-close': (_, __, verdict) => {
    verdict.ends ??= 'closed';
    return 'the watch was ended';
  },
  'watch-expired': ({ fault, rng }, { query }, verdict) => {
    const from = query.get('resourceVersion') ?? '';
    // A watch that begins anywhere is never too old.
    if (from === '' || from === '0' || query.get('sendInitialEvents') === 'true') return null;
    const as = fault.as === 'either' ? (rng.next() < 0.5 ? 'answer' : 'event') : fault.as;
    if (as === 'answer') verdict.refusal = { code: 410, reason: 'Expired', message: `too old resource version: ${from}` };
    else verdict.ends ??= 'expired';
    return as === 'answer' ? '410' : 'the watch was ended by 410';
  },
  unavailable: (_, __, verdict) => {
    verdict.refusal = { code: 503, reason: 'ServiceUnavailable', message: 'the server is currently unable to handle the request' };
    return '503';
  },
  slow: ({ fault: { delayMs } }, _, verdict) => {
    verdict.delayMs = (verdict.delayMs ?? 0) + delayMs;
    return `done ${delayMs} ms later`;
  },
  'lost-answer': (_, __, verdict) => {
    verdict.loses = true;
    return 'done, and the answer was lost';
  },
};
