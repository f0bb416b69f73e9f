/** Requests that no object answers, such as those for tokens: each has the answer that it, or one like it, had then. */
import type { KubeRequest, KubeResult } from '@actorlet/kubelet/machines/kube/request.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import type { Exchange } from './exchanges.ts';

/** Null: nothing like it was ever asked. */
export function answerLike(all: readonly Exchange[], request: KubeRequest, nowMs: number): KubeResult | null {
  const body = JSON.stringify(request.body ?? null);
  const same = all.filter((one) => one.request.verb === request.verb && one.request.path === request.path && one.answer.ok);
  const exact = same.filter((one) => JSON.stringify(one.request.body ?? null) === body);
  const near = (one: Exchange): number => Math.abs(one.atMs - nowMs);
  const [found] = [...(exact.length > 0 ? exact : same)].sort((a, b) => near(a) - near(b));
  if (found?.answer.ok !== true) return null;
  return { ok: true, code: request.verb === 'POST' ? 201 : 200, body: aged(found.answer.body, nowMs - found.atMs) };
}

/** A token lives as long as then, from now on. */
function aged(body: unknown, ms: number): unknown {
  if (!isRecord(body) || !isRecord(body.status) || typeof body.status.expirationTimestamp !== 'string') return body;
  const untilMs = Date.parse(body.status.expirationTimestamp) + ms;
  const expirationTimestamp = ms === 0 ? body.status.expirationTimestamp : new Date(untilMs).toISOString();
  return { ...body, status: { ...body.status, expirationTimestamp } };
}
