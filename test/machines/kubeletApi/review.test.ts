/** Questions to the API server about callers: which answers are asked for again, when, and how often. */
import { describe, expect, it } from 'vitest';
import { apiReviewer } from '../../../src/actors/edge/https/reviews.ts';
import { isRetried, REVIEW_ATTEMPTS_MAX, reviewDelayMs } from '../../../src/machines/edge/https/reviewMachine.ts';
import type { KubeFailure, KubeRequest, KubeResult } from '../../../src/machines/kube/request.ts';
import { fakePorts } from '../../supervision/fakePorts.ts';

const failure = (more: Partial<KubeFailure>): KubeFailure => ({ code: 0, reason: '', message: 'm', outcome: 'failed', ...more });
const failed = (more: Partial<KubeFailure>): KubeResult => ({ ok: false, failure: failure(more) });
const KNOWN: KubeResult = { ok: true, code: 201, body: { status: { authenticated: true, user: { username: 'ann' } } } };

function reviewer(answers: (KubeResult | 'never')[]) {
  const ports = fakePorts();
  const asked: KubeRequest[] = [];
  const signals: AbortSignal[] = [];
  const kube = {
    request: async (request: KubeRequest, o: { signal: AbortSignal }): Promise<KubeResult> => {
      asked.push(request);
      signals.push(o.signal);
      const answer = answers[Math.min(asked.length, answers.length) - 1] ?? 'never';
      return answer === 'never' ? new Promise<KubeResult>(() => undefined) : answer;
    },
  };
  return { ports, asked, signals, review: apiReviewer(kube, ports) };
}

describe('a question about a caller', () => {
  it('is asked again for a reset connection, a busy or broken server and a hint to wait, and for nothing else', () => {
    const again = [{ reason: 'ECONNRESET' }, { code: 429 }, { code: 500 }, { code: 504 }, { code: 503, retryAfterMs: 1_000 }];
    const not = [
      { reason: 'ECONNREFUSED' },
      { reason: 'Timeout' },
      { reason: 'Aborted' },
      { code: 401 },
      { code: 403 },
      { code: 404 },
      { code: 503 },
    ];
    expect(again.map((f) => isRetried(failure(f)))).toEqual(again.map(() => true));
    expect(not.map((f) => isRetried(failure(f)))).toEqual(not.map(() => false));
  });

  it('waits 0.5 s, half as long again each time, a fifth of jitter at most; a hint counts up to 5 s', () => {
    const f = failure({ code: 500 });
    expect([1, 2, 3, 4].map((n) => Math.round(reviewDelayMs(f, n, 0)))).toEqual([500, 750, 1125, 1688]);
    expect(reviewDelayMs(f, 1, 1)).toBe(600);
    expect(reviewDelayMs(failure({ code: 429, retryAfterMs: 2_000 }), 1, 0)).toBe(2_000);
    expect(reviewDelayMs(failure({ code: 429, retryAfterMs: 3_600_000 }), 1, 0)).toBe(5_000);
  });

  it('is answered by the first try that is', async () => {
    const r = reviewer([failed({ code: 500 }), failed({ reason: 'ECONNRESET', outcome: 'unknown' }), KNOWN]);
    const verdict = r.review.token('t', new AbortController().signal);
    await r.ports.advance(10_000);
    expect(await verdict).toMatchObject({ kind: 'user', user: { name: 'ann' } });
    expect(r.asked).toHaveLength(3);
  });

  it('is given up after five tries, with the last one’s reason', async () => {
    const r = reviewer([failed({ code: 500, reason: 'InternalError', message: 'database' })]);
    const verdict = r.review.access(
      { user: 'ann', groups: [], resourceAttributes: { verb: 'get', version: 'v1', resource: 'nodes', subresource: 'proxy', name: 'n' } },
      new AbortController().signal,
    );
    await r.ports.advance(60_000);
    expect(await verdict).toEqual({ kind: 'failed', why: 'SubjectAccessReview: 500 InternalError: database' });
    expect(r.asked).toHaveLength(REVIEW_ATTEMPTS_MAX);
    expect(r.ports.pendingTimers()).toBe(0);
  });

  it('is put once where asking again is in vain', async () => {
    const r = reviewer([failed({ reason: 'ECONNREFUSED', message: 'nobody there' })]);
    expect(await r.review.token('t', new AbortController().signal)).toMatchObject({ kind: 'failed' });
    expect(r.asked).toHaveLength(1);
  });

  it.each(['while it waits', 'while it is asked'])('ends with whoever asked %s, and leaves no timer', async (when) => {
    const r = reviewer([when === 'while it waits' ? failed({ code: 500 }) : 'never']);
    const caller = new AbortController();
    const verdict = r.review.token('t', caller.signal);
    await r.ports.settle();
    caller.abort();
    expect(await verdict).toMatchObject({ kind: 'failed', why: expect.stringContaining('given up') });
    await r.ports.advance(60_000);
    expect(r.asked).toHaveLength(1);
    expect(r.signals[0]?.aborted).toBe(true);
    expect(r.ports.pendingTimers()).toBe(0);
  });
});
