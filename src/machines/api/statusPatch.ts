/** The strategic merge patch that makes one pod status of another, and what of a status is ours to compare. Pure. */

import { sameData } from '../data/sameData.ts';
import type { PodCondition, PodStatus } from '../kube/types.ts';
import { canonicalJson } from '../pod/names.ts';
import { isOwnedCondition } from '../pods/status/conditions.ts';
import { isRecord } from '../shape/conform.ts';

/** Fields that this node writes. Of these the ones below may also be taken away again; an unset other one is left as it is. */
const FIELDS = [
  ...(['observedGeneration', 'phase', 'message', 'reason', 'hostIP', 'hostIPs', 'podIP', 'podIPs', 'startTime'] as const),
  ...(['initContainerStatuses', 'containerStatuses', 'ephemeralContainerStatuses', 'qosClass'] as const),
  ...(['resources', 'allocatedResources', 'resize'] as const),
] as const satisfies readonly (keyof PodStatus)[];
const REMOVABLE: ReadonlySet<string> = new Set(['message', 'reason', 'podIP', 'podIPs', 'resize', 'resources', 'allocatedResources']);
/** Lists that the server would merge by a key although they are meant as a whole. */
const WHOLE: ReadonlySet<string> = new Set(['podIPs', 'hostIPs']);

/** Null when `next` says nothing that `api` does not. */
export function statusPatch(api: PodStatus, next: PodStatus): Record<string, unknown> | null {
  const patch: Record<string, unknown> = {};
  for (const field of FIELDS) {
    const [before, after] = [api[field], next[field]];
    if (sameData(before, after)) continue;
    if (after === undefined) {
      if (REMOVABLE.has(field) && before !== undefined) patch[field] = null;
    } else patch[field] = WHOLE.has(field) && Array.isArray(after) ? [{ $patch: 'replace' }, ...after] : merged(before, after);
  }
  const conditions = conditionPatch(api.conditions ?? [], next.conditions ?? []);
  if (conditions.length > 0) patch.conditions = conditions;
  return Object.keys(patch).length === 0 ? null : patch;
}

/** With null for the amounts that `after` has no more: the server would keep them. */
function merged(before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) return after;
  const gone = Object.keys(before).filter((key) => !Object.hasOwn(after, key));
  const kept = Object.entries(after).map(([key, value]) => [key, merged(before[key], value)] as const);
  return Object.fromEntries([...gone.map((key) => [key, null] as const), ...kept]);
}

/** Everything that `patch` says was in `sent` already; what a condition was to lose, it has lost. */
export function saysNothingNew(patch: Readonly<Record<string, unknown>>, sent: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(patch).every(([field, value]) => {
    if (field !== 'conditions' || !Array.isArray(value)) return Object.hasOwn(sent, field) && sameData(value, sent[field]);
    const earlier: readonly unknown[] = Array.isArray(sent.conditions) ? sent.conditions : [];
    const known = new Set(earlier.map((e) => canonicalJson(withoutNulls(e))));
    return value.every((condition) => known.has(canonicalJson(withoutNulls(condition))));
  });
}

/** `patch` without the fields that the server was given with this value before, and does not have: it does not know them. */
export function withoutUnknown(
  patch: Readonly<Record<string, unknown>> | null,
  api: PodStatus,
  leftOut: Readonly<Record<string, unknown>>,
): Record<string, unknown> | null {
  const known = Object.entries(patch ?? {}).filter(([field, value]) => !(isLeftOut(api, field) && sameData(value, leftOut[field])));
  return known.length === 0 ? null : Object.fromEntries(known);
}

/** Fields of `sent` that the server's answer does not have, and those that it still does not have of what it left out before. */
export function leftOutOf(
  answer: PodStatus,
  sent: Readonly<Record<string, unknown>>,
  before: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries({ ...before, ...sent }).filter(([field, value]) => value !== null && isLeftOut(answer, field)));
}

function isLeftOut(api: PodStatus, field: string): boolean {
  return api[field as keyof PodStatus] === undefined;
}

function sameButNulls(a: PodCondition, b: PodCondition): boolean {
  return saidIn(a, b) && saidIn(b, a);
}
function saidIn(a: PodCondition, b: PodCondition): boolean {
  for (const field in a) {
    const value = a[field as keyof PodCondition] ?? null;
    if (value !== null && !sameData(value, b[field as keyof PodCondition])) return false;
  }
  return true;
}

function withoutNulls(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value).filter(([, v]) => v !== null)) : value;
}

function conditionPatch(api: readonly PodCondition[], next: readonly PodCondition[]): Record<string, unknown>[] {
  const out: Record<string, unknown>[] = [];
  const was = new Map(api.map((c) => [c.type, c]));
  for (const condition of next) {
    const before = was.get(condition.type);
    // A server says `lastProbeTime: null` of a condition that has none.
    if (before !== undefined && sameButNulls(before, condition)) continue;
    const gone = Object.keys(before ?? {}).filter((k) => !Object.hasOwn(condition, k) && before?.[k as keyof PodCondition] !== null);
    out.push({ ...condition, ...Object.fromEntries(gone.map((k) => [k, null])) });
  }
  // A status without conditions is a bare refusal: what the scheduler said stays.
  if (next.length === 0) return out;
  const stays = new Set(next.map((c) => c.type));
  for (const { type } of api) if (isOwnedCondition(type) && !stays.has(type)) out.push({ type, $patch: 'delete' });
  return out;
}

/** The part of the API's status that this node answers for, as one text: a change of it by somebody else is put right. */
export function ownPart(status: PodStatus): string {
  const conditions = (status.conditions ?? []).filter((c) => isOwnedCondition(c.type)).sort((a, b) => (a.type < b.type ? -1 : 1));
  return canonicalJson({ ...Object.fromEntries(FIELDS.map((f) => [f, status[f] ?? null])), conditions });
}
