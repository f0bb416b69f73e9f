/** Invariants about the node's own API: who is told what. */

import type { SimNode } from '@actorlet/world/src/node/types.ts';
import { type Asked, type Caller, PAGES, PROFILES } from '../../nemesis/caller.ts';
import { OUTSIDE } from '../../nemesis/workload/logQueries.ts';
import type { Checker } from '../checker.ts';

/** A refusal says why, and nothing of what was asked for. */
const REFUSAL_LENGTH_MAX = 400;
/** A path that the API does not have is not told apart from others before it is known who asks, or is: that tells nothing. */
const NO_PAGE = 404;
/** Within this, in fair weather, each page was given to somebody who may have it. */
const GIVEN_WITHIN_MS = 60_000;

/** Nobody gets anything without being known and allowed, whatever the API server says or does not say; who may is never told that they may not. */
export function nothingWithoutRights(): Checker {
  return {
    name: 'nothing-without-rights',
    answered(s, asked) {
      const { answer, account } = asked;
      if (answer.kind !== 'reply') return undefined;
      const { status, body } = answer;
      const told = `${s.node.name}: ${asked.method} ${asked.path} by ${account?.name ?? 'nobody'} (${asked.way}) was answered ${status}`;
      const allows = s.node.tuning.edge?.authorization === 'AlwaysAllow';
      const { known, anonymous } = knownAs(asked, s.node);
      const may = known && (asked.allowed || allows) ? true : anonymous && allows;
      if (may) return status === 403 && asked.query?.query !== OUTSIDE ? `${told}, although it is allowed` : undefined;
      if (status === NO_PAGE && asked.path === '/nonsense') return undefined;
      // 401: not known, or nobody could say; 403: not allowed; 500: nobody could say.
      const refusals = known || anonymous ? [401, 403, 500] : [401];
      if (!refusals.includes(status)) return `${told}, which is no refusal`;
      if (body.length > REFUSAL_LENGTH_MAX) return `${told} with ${body.length} bytes`;
      return undefined;
    },
  };
}

/** The user that the node has to take a caller for. */
function knownAs(asked: Asked, node: SimNode): { known: boolean; anonymous: boolean } {
  const known = asked.account !== null;
  return { known, anonymous: asked.way === 'none' && node.tuning.edge?.anonymous === true };
}

/** Half a pair is never served with, and no request ends in an exception. */
export function apiHoldsTogether(): Checker {
  return {
    name: 'api-holds-together',
    answered(s, { answer, method, path }) {
      if (answer.kind === 'unfit') return `${s.node.name}: the API is served with what is no pair: ${answer.why}`;
      if (answer.kind === 'broken') return `${s.node.name}: ${method} ${path} ended in an exception: ${answer.why}`;
      return undefined;
    },
  };
}

/** The longest profile. */
const PROFILE_SECONDS_MAX = 300;
/** How long a profile takes where the caller names no seconds: Go's own default; the heap is watched for less. */
const USUAL_SECONDS = { '/debug/pprof/profile': 30, '/debug/pprof/heap': 5 } as const satisfies Record<(typeof PROFILES)[number], number>;

/** Profiles are of the time that was asked for, one after the other, even after a caller gave up on an earlier one. */
export function profilesAreTakenAlone(): Checker {
  const overMs = new Map<string, number>();
  return {
    name: 'profiles-are-taken-alone',
    answered(s, { answer, path, query = {}, tookMs }) {
      const profile = PROFILES.find((p) => p === path);
      if (answer.kind !== 'reply' || profile === undefined) return undefined;
      const given = query.seconds ?? '';
      const seconds = given === '' ? USUAL_SECONDS[profile] : Number(given);
      const told = `${s.node.name}: ${path} of ${given === '' ? 'no number of' : given} seconds was answered ${answer.status}`;
      const sound = seconds >= 1 && seconds <= PROFILE_SECONDS_MAX;
      if (answer.status === 400) return sound ? told : undefined;
      if (answer.status !== 200) return undefined;
      const { what, ms } = JSON.parse(answer.body) as { what: string; ms: number };
      if (!sound || ms !== seconds * 1_000 || !path.endsWith(what === 'cpu' ? 'profile' : what)) return `${told} with ${ms} ms of ${what}`;
      if (tookMs < ms) return `${told} within ${tookMs} ms`;
      const who = `${s.node.name} ${s.node.boots}`;
      const before = overMs.get(who) ?? Number.NEGATIVE_INFINITY;
      overMs.set(who, s.monoMs);
      return s.monoMs - ms < before ? `${told} while another was taken` : undefined;
    },
  };
}

/** What is not given yet to those who may have it. */
export function apiUnanswered(caller: Pick<Caller, 'givenAtMs'>, o: { nowMs: number }): string[] {
  return PAGES.filter((page) => caller.givenAtMs(page) < o.nowMs - GIVEN_WITHIN_MS).map(
    (page) => `nobody who may have ${page} was given it for ${GIVEN_WITHIN_MS / 1_000} s`,
  );
}
