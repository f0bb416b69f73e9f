/** Questions to the API server about who somebody is and what they may do: TokenReview and SubjectAccessReview. */

import { createActor, fromPromise } from 'xstate';
import { put } from '../../../machines/data/own.ts';
import type { AccessReviewSpec, UserInfo } from '../../../machines/edge/https/attributes.ts';
import { reviewMachine } from '../../../machines/edge/https/reviewMachine.ts';
import { readAnswer } from '../../../machines/kube/read/answers.ts';
import type { KubeFailure, KubeResult } from '../../../machines/kube/request.ts';
import type { WireSubjectAccessReview, WireTokenReview } from '../../../machines/kube/wire.ts';
import { isRecord } from '../../../machines/shape/conform.ts';
import { partOf, textOf, textsOf } from '../../../machines/shape/lenient.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { momentOf } from '../../../machines/xstate/facts.ts';
import { provided } from '../../../machines/xstate/provide.ts';
import type { KubeApi } from '../../../ports/kube.ts';
import type { Ports } from '../../../ports/ports.ts';

/** Deadline of one try. A client of ours waits for it. */
const REVIEW_TIMEOUT_MS = 10_000;

export type TokenVerdict = { kind: 'user'; user: UserInfo } | { kind: 'refused'; why: string } | { kind: 'failed'; why: string };
export type AccessVerdict = { kind: 'allowed' } | { kind: 'denied' } | { kind: 'failed'; why: string };

/** `failed` means that there was no answer: nothing is known, nothing may be granted, nothing is kept. */
export interface Reviewer {
  token(token: string, signal: AbortSignal): Promise<TokenVerdict>;
  access(spec: AccessReviewSpec, signal: AbortSignal): Promise<AccessVerdict>;
}

export function apiReviewer(kube: Pick<KubeApi, 'request'>, ports: Pick<Ports, 'clock' | 'rng'>): Reviewer {
  const create = async (path: string, body: unknown, signal: AbortSignal): Promise<KubeResult> => {
    const ask = (own: AbortSignal) =>
      kube.request({ verb: 'POST', path, body }, { timeoutMs: REVIEW_TIMEOUT_MS, signal: AbortSignal.any([signal, own]) });
    return readAnswer({ verb: 'POST', path }, await untilAnswered(ask, ports, signal));
  };
  return {
    async token(token, signal) {
      const body: WireTokenReview = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } };
      const answer = await create('/apis/authentication.k8s.io/v1/tokenreviews', body, signal);
      if (!answer.ok) return { kind: 'failed', why: failure('TokenReview', answer.failure) };
      return tokenVerdict(answer.body);
    },
    async access(spec, signal) {
      const body: WireSubjectAccessReview = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
      const answer = await create('/apis/authorization.k8s.io/v1/subjectaccessreviews', body, signal);
      if (!answer.ok) return { kind: 'failed', why: failure('SubjectAccessReview', answer.failure) };
      return accessVerdict(answer.body);
    },
  };
}

/** The client may go away meanwhile; then nothing more is asked. */
function untilAnswered(
  ask: (signal: AbortSignal) => Promise<KubeResult>,
  ports: Pick<Ports, 'clock' | 'rng'>,
  signal: AbortSignal,
): Promise<KubeResult> {
  const { clock } = ports;
  const { promise, resolve } = Promise.withResolvers<KubeResult>();
  const failed = (reason: string, message: string): KubeResult => ({
    ok: false,
    failure: { code: 0, reason, message, outcome: 'unknown' },
  });
  // xstate treats the id as opaque but types it as a number.
  const time = {
    setTimeout: (fn: () => void, ms: number) => clock.setTimeout(fn, ms) as number,
    clearTimeout: (id: number) => clock.clearTimeout(id),
  };
  const asking = createActor(provided(reviewMachine, { actors: { ask: fromPromise(({ signal }) => ask(signal)) } }, momentOf(ports)), {
    clock: time,
  });
  const giveUp = () => {
    // First: an actor that is stopped says that it is complete.
    resolve(failed('Aborted', 'the call was given up'));
    asking.stop();
  };
  asking.subscribe({
    complete: () => {
      signal.removeEventListener('abort', giveUp);
      resolve(asking.getSnapshot().output ?? failed('NoAnswer', 'the question could not be put'));
    },
    error: (error) => resolve(failed('NoAnswer', messageOf(error))),
  });
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  else asking.start();
  return promise;
}

function failure(what: string, f: KubeFailure): string {
  return `${what}: ${f.code === 0 ? f.reason : `${f.code} ${f.reason}`}: ${f.message}`;
}

function tokenVerdict(body: unknown): TokenVerdict {
  const status = partOf(body, 'status');
  const user = partOf(status, 'user');
  if (status.authenticated !== true) return { kind: 'refused', why: textOf(status.error) || 'the API server does not know this token' };
  const name = textOf(user.username);
  if (name === '') return { kind: 'refused', why: 'the API server accepts the token and names no user' };
  const extra: Record<string, readonly string[]> = {};
  if (isRecord(user.extra)) for (const [key, values] of Object.entries(user.extra)) put(extra, key, textsOf(values));
  return { kind: 'user', user: { name, uid: textOf(user.uid), groups: textsOf(user.groups), extra } };
}

function accessVerdict(body: unknown): AccessVerdict {
  const status = partOf(body, 'status');
  if (typeof status.allowed !== 'boolean') return { kind: 'failed', why: 'SubjectAccessReview: the answer has no status' };
  if (status.allowed && status.denied === true) return { kind: 'failed', why: 'SubjectAccessReview: both allowed and denied' };
  return { kind: status.allowed ? 'allowed' : 'denied' };
}
