/** What is not well in the tree of actors. */

import { CERTIFICATE_MISSING } from '@actorlet/kubelet/machines/api/certificates/messages.ts';
import { CANNOT_LISTEN } from '@actorlet/kubelet/machines/edge/messages.ts';
import type { ActorView } from '@actorlet/kubelet/machines/supervision/actorState.ts';

export interface ActorHealth {
  path: string;
  ok: boolean;
  /** Why not; '' when ok. */
  reason: string;
  /** A part of the node that must be there is down. Children of a dynamic supervisor (pod workers) never are. */
  down: boolean;
}

/** One line per actor, parents first. `lost`: by path, what its actor works with and cannot reach. */
export function treeHealth(root: ActorView, lost: ReadonlyMap<string, string> = new Map()): ActorHealth[] {
  const out: ActorHealth[] = [];
  const visit = (actor: ActorView, dynamic: boolean) => {
    const own = oneHealth(actor, dynamic);
    const reason = lost.get(actor.path);
    out.push(own.ok && reason !== undefined ? { path: actor.path, ok: false, reason, down: true } : own);
    for (const child of actor.children) visit(child, dynamic || actor.type === 'dynamic');
  };
  visit(root, false);
  return out;
}

function oneHealth(actor: ActorView, dynamic: boolean): ActorHealth {
  const fail = (reason: string, down: boolean): ActorHealth => ({ path: actor.path, ok: false, reason, down: down && !dynamic });
  if (DOWN.has(actor.lifecycle)) {
    const why = actor.lastError ?? [actor.reason, actor.message].filter((s) => s !== '').join(': ');
    return fail(why === '' ? actor.lifecycle : `${actor.lifecycle}: ${why}`, true);
  }
  if (actor.lifecycle === 'starting' && actor.ageMs > START_MAX_MS)
    return fail(`still starting after ${Math.round(actor.ageMs / 1000)} s`, true);
  if (actor.reason === CANNOT_LISTEN || actor.reason === CERTIFICATE_MISSING) return fail(actor.message, false);
  const waitedMs = actor.mailbox?.oldestAgeMs ?? 0;
  if (waitedMs > MAIL_AGE_MAX_MS) {
    return fail(`${actor.mailbox?.depth} messages wait, the oldest for ${Math.round(waitedMs / 1000)} s`, false);
  }
  return { path: actor.path, ok: true, reason: '', down: false };
}

/** A message that waited longer than this means that its actor is stuck. */
const MAIL_AGE_MAX_MS = 30_000;

/** A start may take this long before it counts as a failure. */
const START_MAX_MS = 60_000;

const DOWN = new Set(['restarting', 'failed', 'parked', 'quarantined', 'stopped']);
