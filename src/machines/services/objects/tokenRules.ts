/** Tokens of service accounts: what is asked for, and when one is asked for again (resources and volumes 8.15). Pure. */

import type { TokenRequest } from '../../kube/objects.ts';
import { failureText, type KubeFailure } from '../../kube/request.ts';
import type { WireTokenRequest } from '../../kube/wire.ts';
import { isRecord } from '../../shape/conform.ts';

/** A token is replaced when this share of its life is over, or when it is this old. */
const REFRESH_SHARE = 0.8;
const AGE_MAX_MS = 24 * 3_600_000;
/** Replaced so much earlier at most, lest all tokens of a node be asked for at once. */
const REFRESH_JITTER_MAX_MS = 10_000;

export interface HeldToken {
  /** Secret. */
  token: string;
  /** Wall ms. */
  expiresAtMs: number;
  refreshAtMs: number;
}

export function tokenKey(r: TokenRequest): string {
  return JSON.stringify([r.serviceAccount, r.namespace, r.audiences, r.expirationSeconds, r.pod.uid]);
}

export function tokenRequestBody(r: TokenRequest): WireTokenRequest {
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    spec: {
      audiences: r.audiences,
      expirationSeconds: r.expirationSeconds,
      boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: r.pod.name, uid: r.pod.uid },
    },
  };
}

/** An API server that lacks the request names no object. One that lacks the account names that, and one that has just started the pod. */
export function tokenFailure(path: string, failure: KubeFailure): string {
  if (failure.code === 404 && !/^[^"]{1,200} "[^"]{1,253}" not found/.test(failure.message))
    return 'the API server does not have TokenRequest endpoints enabled';
  return failure.code === 0 ? failureText({ verb: 'POST', path }, failure) : failure.message;
}

/** The token of an answer, and when it is asked for again. Null: the answer holds no token. `random` in [0, 1). */
export function toHeldToken(body: unknown, random: number): HeldToken | null {
  if (!isRecord(body) || !isRecord(body.status) || !isRecord(body.spec)) return null;
  const { token, expirationTimestamp } = body.status;
  const { expirationSeconds } = body.spec;
  const expiresAtMs = typeof expirationTimestamp === 'string' ? Date.parse(expirationTimestamp) : Number.NaN;
  if (typeof token !== 'string' || token === '' || Number.isNaN(expiresAtMs) || typeof expirationSeconds !== 'number') return null;
  // The server may give another life than was asked for.
  const lifeMs = expirationSeconds * 1000;
  const issuedAtMs = expiresAtMs - lifeMs;
  const refreshAtMs = issuedAtMs + Math.min(lifeMs * REFRESH_SHARE, AGE_MAX_MS) - random * REFRESH_JITTER_MAX_MS;
  return { token, expiresAtMs, refreshAtMs };
}
