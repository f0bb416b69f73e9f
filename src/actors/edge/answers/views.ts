/** Reading another actor's view for an answer: with the owner's state, so that stale or missing data says so. */

import type { ViewKey } from '../../../machines/supervision/address.ts';
import type { HttpReply } from '../../../ports/sockets/net.ts';
import type { Registry } from '../../supervision/types.ts';
import type { Inspect } from '../server.ts';

export type ViewRead<T> =
  | { ok: true; value: T /** Why the data may be old; '' while its owner runs. */; stale: string }
  | { ok: false; reply: HttpReply };

/** Nothing was ever published: 503 with the owner's state. Published, but the owner is away: the last value, marked stale. */
export function readView<T>(from: { registry: Registry } & Pick<Inspect, 'stateAt'>, key: ViewKey<T>, owner: string): ViewRead<T> {
  const read = from.registry.read(key);
  const away = ownerAway(from, owner);
  if (read === undefined) {
    const why = away === '' ? `${owner} runs but has not published it yet` : away;
    return {
      ok: false,
      reply: { status: 503, headers: { 'retry-after': '1' }, body: `503: ${key.view} is not available: ${why}\n` },
    };
  }
  return { ok: true, value: read.value, stale: away };
}

/** `Warning` header (RFC 9111's older 110: response is stale) for an answer from a stale view. */
export function staleHeaders(stale: string): Record<string, string> {
  // A header is one line of printable ASCII; the reason may hold anything.
  return stale === '' ? {} : { warning: `110 actorlet "stale: ${stale.replace(/[^\x20-\x7e]|["\\]/g, ' ')}"` };
}

function ownerAway(from: Pick<Inspect, 'stateAt'>, owner: string): string {
  const actor = from.stateAt(owner);
  if (actor === undefined) return `${owner} is not started`;
  if (actor.lifecycle === 'running') return '';
  const why = actor.lastError ?? actor.reason;
  return `${owner} is ${actor.lifecycle}${why === '' ? '' : ` (${why})`}`;
}
