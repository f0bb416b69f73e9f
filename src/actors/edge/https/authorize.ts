/** What an authenticated user may do (boot-and-node 7.3). Fails closed: no answer is an error, never a grant. */
import { type AccessAttributes, accessReviewSpec, type UserInfo } from '../../../machines/edge/https/attributes.ts';
import { expiringCache } from '../../../machines/edge/https/expiringCache.ts';
import type { Clock } from '../../../ports/ports.ts';
import type { AccessVerdict, Reviewer } from './reviews.ts';

export interface AuthorizationOptions {
  mode: 'AlwaysAllow' | 'Webhook';
  allowedTtlMs: number;
  deniedTtlMs: number;
  nodeName: string;
}
export type Authorizer = (user: UserInfo, asked: readonly AccessAttributes[], signal: AbortSignal) => Promise<AccessVerdict>;

const ENTRIES_MAX = 8192;
/** A larger question is asked each time, so that keys cannot fill memory. */
const KEY_LENGTH_MAX = 10_000;

export function createAuthorizer(o: AuthorizationOptions, clock: Clock, reviewer: Reviewer | null): Authorizer {
  if (o.mode === 'AlwaysAllow') return async () => ({ kind: 'allowed' });
  const cache = expiringCache<AccessVerdict>(ENTRIES_MAX);
  const ask = async (user: UserInfo, attributes: AccessAttributes, signal: AbortSignal): Promise<AccessVerdict> => {
    // Nobody can be asked and nobody ever will: that is a no, not a fault that may pass.
    if (reviewer === null) return { kind: 'denied' };
    const spec = accessReviewSpec(user, attributes, o.nodeName);
    const key = JSON.stringify(spec);
    const known = cache.get(key, clock.monoMs());
    if (known !== undefined) return known;
    const verdict = await reviewer.access(spec, signal);
    if (verdict.kind !== 'failed' && key.length < KEY_LENGTH_MAX) {
      cache.set(key, verdict, { nowMs: clock.monoMs(), ttlMs: verdict.kind === 'allowed' ? o.allowedTtlMs : o.deniedTtlMs });
    }
    return verdict;
  };
  return async (user, asked, signal) => {
    let last: AccessVerdict = { kind: 'denied' };
    for (const attributes of asked) {
      last = await ask(user, attributes, signal);
      if (last.kind !== 'denied') return last;
    }
    return last;
  };
}
