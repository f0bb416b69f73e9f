/** The border where objects of the API come in: what cannot be read is that one object's trouble. Pure. */

import { isRecord } from '../../shape/conform.ts';
import { isKubeObject, type KubeFailure, type KubeObject, type KubeRequest, type KubeResult, slim, UNREADABLE } from '../request.ts';
import { type Kind, kindAt } from './kinds.ts';
import { readShape } from './read.ts';

/**
 * An item of a list or of a watch. One that cannot be read comes as what names it, with the reason under {@link UNREADABLE}. Null: it
 * cannot even be named.
 */
export function readItem(item: unknown, kind: Kind | null): KubeObject | null {
  const named = nameOf(item);
  if (named === null) return null;
  if (kind === null) return slim(item as KubeObject);
  const read = readShape(slim(item as KubeObject), kind.shape);
  return read.ok ? (read.value as KubeObject) : { ...named, [UNREADABLE]: read.problem };
}

/** What names an object, and says whether it is being deleted, as far as that can be read. */
function nameOf(item: unknown): KubeObject | null {
  if (!isRecord(item) || !isRecord(item.metadata)) return null;
  const { name, namespace, uid, resourceVersion, deletionTimestamp, deletionGracePeriodSeconds } = item.metadata;
  if (typeof name !== 'string' || name === '') return null;
  const texts = Object.entries({ namespace, uid, resourceVersion, deletionTimestamp }).filter(([, v]) => typeof v === 'string');
  const grace = Number.isSafeInteger(deletionGracePeriodSeconds) ? { deletionGracePeriodSeconds } : {};
  return { metadata: { name, ...Object.fromEntries(texts), ...grace } };
}

/** The answer with its object read; a failure where that cannot be. Collections are read item by item, by those who asked. */
export function readAnswer(request: Pick<KubeRequest, 'verb' | 'path'>, result: KubeResult): KubeResult {
  if (!result.ok || request.verb === 'DELETE') return result;
  const kind = kindAt(request.path);
  if (kind === null || (kind.many && request.verb === 'GET')) return result;
  const read = readShape(isKubeObject(result.body) ? slim(result.body) : result.body, kind.shape);
  if (read.ok) return read.value === result.body ? result : { ...result, body: read.value };
  const message = `the API server gave a ${kind.kind} that cannot be read: ${read.problem}`;
  return { ok: false, failure: malformed(message, request.verb === 'GET' ? 'failed' : 'unknown') };
}

export function malformed(message: string, outcome: KubeFailure['outcome'] = 'failed'): KubeFailure {
  return { code: 0, reason: 'MalformedAnswer', message, outcome };
}
