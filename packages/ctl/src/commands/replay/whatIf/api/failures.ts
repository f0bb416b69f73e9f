/** When the recorded API server was away, or refused: so it is in an experiment, too. */
import type { KubeFailure, KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import type { Exchange } from './exchanges.ts';

interface Spell {
  fromMs: number;
  untilMs: number;
  readonly scope: string;
  readonly failure: KubeFailure;
  readonly tookMs: number;
}
export interface Failing {
  readonly failure: KubeFailure;
  /** Until the failure is known. */
  readonly tookMs: number;
}

/** Of a spell without a good answer right before it: it began so long before the request, at the most. */
const BEFORE_MS_MAX = 1_000;
/** What the state of the object decides, which is played. */
const OF_STATE: ReadonlySet<number> = new Set([404, 409, 410]);

export class Failures {
  readonly #spells: readonly Spell[];

  constructor(exchanges: readonly Exchange[]) {
    const all = exchanges.map((one) => ({ one, scopes: scopesOf(one.request, one.isWatch), failed: failedOf(one, exchanges) }));
    const failing = new Set(all.flatMap(({ failed }) => failed ?? []));
    this.#spells = [...failing].flatMap((scope) =>
      spellsOf(
        scope,
        all.filter(({ scopes }) => scopes.includes(scope)),
      ),
    );
  }

  at(request: KubeRequest, isWatch: boolean, nowMs: number): Failing | null {
    const own = scopesOf(request, isWatch);
    return this.#spells.findLast((one) => own.includes(one.scope) && one.fromMs <= nowMs && nowMs < one.untilMs) ?? null;
  }
}

const COLLECTION = /^(\/(?:api|apis\/[^/]+)\/[^/]+\/(?:namespaces\/[^/]+\/)?[^/]+)(\/[^/]+)?(\/.+)?$/;

/** From the widest: the server, requests of this kind, this path. */
function scopesOf({ verb, path }: KubeRequest, isWatch: boolean): [string, string, string] {
  const [, collection = path, , sub = ''] = COLLECTION.exec(path) ?? [];
  const what = isWatch ? 'WATCH' : verb;
  return ['', `${what} ${collection}/*${sub}`, `${what} ${path}`];
}

/** What fails alike; null: nothing failed, or the state of the object says so. */
function failedOf({ request, isWatch, answer, atMs, settledMs }: Exchange, all: readonly Exchange[]): string | null {
  if (answer.ok || answer.failure.reason === 'Aborted') return null;
  const { code } = answer.failure;
  const [everything, kind, path] = scopesOf(request, isWatch);
  if (code === 0 || code === 401) return all.some((one) => one.answer.ok && one.atMs >= atMs && one.atMs < settledMs) ? path : everything;
  if (code === 408 || code === 429 || code >= 500) return kind;
  const isCollection = isWatch || request.verb === 'POST' || kind.endsWith(`${request.path}/*`);
  return OF_STATE.has(code) && !(code === 404 && isCollection) ? null : path;
}

function spellsOf(scope: string, all: readonly { one: Exchange; failed: string | null }[]): Spell[] {
  const spells: Spell[] = [];
  let now: { spell: Spell; settledMs: number } | null = null;
  let goodMs: number | null = null;
  for (const { one, failed } of all) {
    const { atMs, settledMs, answer } = one;
    if (failed === scope && !answer.ok) {
      const before = goodMs === null ? Number.NEGATIVE_INFINITY : Math.max(Math.min(goodMs + 1, atMs), atMs - BEFORE_MS_MAX);
      // Each failure is that of its own time.
      if (now !== null) now.spell.untilMs = atMs;
      const spell: Spell = {
        ...{ fromMs: now === null ? before : atMs, untilMs: Number.POSITIVE_INFINITY, scope },
        ...{ failure: answer.failure, tookMs: settledMs - atMs },
      };
      spells.push(spell);
      now = { spell, settledMs };
    } else if (answer.ok || answer.failure.code > 0) {
      if (now !== null) now.spell.untilMs = Math.min(atMs, now.settledMs + 1);
      goodMs = Math.max(goodMs ?? settledMs, settledMs);
      now = null;
    }
  }
  return spells;
}
