/** Which user sent a request: client certificate, bearer token, or nobody in particular (boot-and-node 7.2). Fails closed. */
import type { UserInfo } from '../../../machines/edge/https/attributes.ts';
import { expiringCache } from '../../../machines/edge/https/expiringCache.ts';
import type { Ports } from '../../../ports/ports.ts';
import type { HttpRequest } from '../../../ports/sockets/net.ts';
import type { Reviewer, TokenVerdict } from './reviews.ts';
import { createTurns } from './turns.ts';

export interface AuthenticationOptions {
  /** A client CA is configured. */
  x509: boolean;
  webhook: { enabled: boolean; cacheTtlMs: number };
  anonymous: boolean;
}
/** `busy`: it was not looked at for want of room; nothing is wrong with it. */
type Authenticated = { ok: true; user: UserInfo } | { ok: false; why: string; busy?: Busy };
type Busy = 'crowded' | 'late';
export interface Authenticator {
  authenticate(req: HttpRequest): Promise<Authenticated>;
  /** Nothing that is configured could ever let anybody in. */
  readonly impossible: boolean;
}

const UNAUTHENTICATED_GROUP = 'system:unauthenticated';
const ANONYMOUS: UserInfo = { name: 'system:anonymous', uid: '', groups: [UNAUTHENTICATED_GROUP], extra: {} };
const AUTHENTICATED_GROUP = 'system:authenticated';
/** Sub-protocol by which a browser, which cannot set headers, sends a token over WebSocket. */
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';
const TOKENS_MAX = 4096;
const SALT_BYTES = 32;
/** Tokens that were good lately ask before unknown ones of the same address. */
const GOOD_TOKEN_MS = 3_600_000;
/** Questions about tokens at once: half of what the client asks at once, so that the node's own requests keep their turn. */
export const ASKING_MAX = 8;
/** Most requests of one peer that wait: at the client's 50 questions a second they have their answers in 5 s. */
export const WAITING_MAX = 256;
const WAIT_MS = 10_000;

type Verdict = { kind: 'user'; user: UserInfo } | { kind: 'absent' } | { kind: 'objected'; why: string; busy?: Busy };
type Review = TokenVerdict | { kind: 'busy'; busy: Busy };

export function createAuthenticator(o: AuthenticationOptions, ports: Ports, reviewer: Reviewer | null, signal: AbortSignal): Authenticator {
  const review = cachedReview(o.webhook.cacheTtlMs, ports, reviewer, signal);
  const byToken = async (found: Token, req: HttpRequest): Promise<Verdict> => {
    if (found.kind !== 'token') return found;
    const verdict = await review(found.token, req);
    if (verdict.kind === 'user') return verdict;
    if (verdict.kind === 'busy') return { kind: 'objected', why: 'bearer token: too many are being asked about', busy: verdict.busy };
    return { kind: 'objected', why: verdict.why };
  };
  const none: Verdict = { kind: 'absent' };
  return {
    impossible: !o.x509 && !o.anonymous && (!o.webhook.enabled || reviewer === null),
    async authenticate(req) {
      const methods = [
        async () => (o.x509 ? byCertificate(req, ports.clock.wallMs()) : none),
        async () => (o.webhook.enabled ? byToken(bearerToken(req), req) : none),
        async () => (o.webhook.enabled ? byToken(protocolToken(req), req) : none),
      ];
      const objections: string[] = [];
      for (const method of methods) {
        const verdict = await method();
        if (verdict.kind === 'user') return { ok: true, user: withGroup(verdict.user) };
        if (verdict.kind !== 'objected') continue;
        if (verdict.busy !== undefined) return { ok: false, why: verdict.why, busy: verdict.busy };
        objections.push(verdict.why);
      }
      // A bad certificate or token is a refusal, even where anonymous requests are let in.
      if (objections.length > 0) return { ok: false, why: objections.join('; ') };
      return o.anonymous ? { ok: true, user: ANONYMOUS } : { ok: false, why: 'no credentials' };
    },
  };
}

/** A certificate may bear any name, also that of the anonymous user: such a client is anonymous. */
export function isAnonymous({ name, groups }: UserInfo): boolean {
  return name === ANONYMOUS.name || groups.includes(UNAUTHENTICATED_GROUP);
}

function withGroup(user: UserInfo): UserInfo {
  if (isAnonymous(user) || user.groups.includes(AUTHENTICATED_GROUP)) return user;
  return { ...user, groups: [...user.groups, AUTHENTICATED_GROUP] };
}

function byCertificate(req: HttpRequest, nowMs: number): Verdict {
  const client = req.client ?? { kind: 'none' };
  if (client.kind === 'none') return { kind: 'absent' };
  if (client.kind === 'rejected') return { kind: 'objected', why: `client certificate: ${client.reason}` };
  // It was valid when the connection was made; the connection may outlive it.
  if (!(client.notAfterMs > nowMs)) return { kind: 'objected', why: 'client certificate: it has expired' };
  if (client.commonName === '') return { kind: 'absent' };
  return { kind: 'user', user: { name: client.commonName, uid: '', groups: client.organizations, extra: {} } };
}

type Token = { kind: 'token'; token: string } | { kind: 'absent' } | { kind: 'objected'; why: string };

function bearerToken(req: HttpRequest): Token {
  const [scheme = '', token = ''] = (req.headers.authorization ?? '').trim().split(' ');
  return scheme.toLowerCase() !== 'bearer' || token === '' ? { kind: 'absent' } : { kind: 'token', token };
}

function protocolToken(req: HttpRequest): Token {
  if ((req.headers.upgrade ?? '').toLowerCase() !== 'websocket') return { kind: 'absent' };
  const protocols = (req.headers['sec-websocket-protocol'] ?? '').split(',').map((p) => p.trim());
  const carriers = protocols.filter((p) => p.startsWith(TOKEN_PROTOCOL));
  const [carrier] = carriers;
  if (carrier === undefined) return { kind: 'absent' };
  const encoded = carrier.slice(TOKEN_PROTOCOL.length);
  if (carriers.length > 1) return { kind: 'objected', why: 'more than one bearer sub-protocol' };
  if (protocols.length === 1) return { kind: 'objected', why: 'no sub-protocol besides the one with the token' };
  const token = decodeBase64Url(encoded);
  return token === undefined || token === '' ? { kind: 'objected', why: 'malformed bearer sub-protocol' } : { kind: 'token', token };
}

function decodeBase64Url(text: string): string | undefined {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return undefined;
  try {
    const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(binary, (c) => c.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

/**
 * Good and bad answers are kept by a salted digest of the token, apart, so that guesses push out no good one. Questions
 * about one token at a time are one question.
 */
function cachedReview(
  ttlMs: number,
  ports: Ports,
  reviewer: Reviewer | null,
  signal: AbortSignal,
): (token: string, req: Pick<HttpRequest, 'peer' | 'signal'>) => Promise<Review> {
  const { clock } = ports;
  const accepted = expiringCache<TokenVerdict>(TOKENS_MAX);
  const refused = expiringCache<TokenVerdict>(TOKENS_MAX);
  const good = expiringCache<true>(TOKENS_MAX);
  const asking = new Map<string, Promise<TokenVerdict>>();
  const turns = createTurns({ atOnceMax: ASKING_MAX, waitingMax: WAITING_MAX, waitMs: WAIT_MS }, clock);
  let salt = '';
  const known = (key: string): TokenVerdict | undefined => accepted.get(key, clock.monoMs()) ?? refused.get(key, clock.monoMs());
  const ask = async (token: string, key: string, from: Reviewer): Promise<TokenVerdict> => {
    const verdict = await from.token(token, signal);
    const nowMs = clock.monoMs();
    if (verdict.kind === 'user') {
      accepted.set(key, verdict, { nowMs, ttlMs });
      good.set(key, true, { nowMs, ttlMs: GOOD_TOKEN_MS });
    } else if (verdict.kind === 'refused') {
      refused.set(key, verdict, { nowMs, ttlMs });
      good.set(key, true, { nowMs, ttlMs: 0 });
    }
    return verdict;
  };
  return async (token, req) => {
    if (reviewer === null)
      return { kind: 'failed', why: 'bearer token: this node belongs to no cluster, so there is nobody to ask about it' };
    salt ||= ports.entropy.bytes(SALT_BYTES).join();
    const key = ports.entropy.sha256Hex(`${salt}${token}`);
    const already = known(key) ?? asking.get(key);
    if (already !== undefined) return already;
    const peer = good.get(key, clock.monoMs()) === true ? `token ${key}` : (req.peer ?? '');
    const turn = await turns(peer, req.signal);
    if (turn.kind !== 'place') return { kind: 'busy', busy: turn.kind };
    try {
      // Another request may have asked while this one waited.
      const meanwhile = known(key) ?? asking.get(key);
      if (meanwhile !== undefined) return await meanwhile;
      const running = ask(token, key, reviewer);
      asking.set(key, running);
      try {
        return await running;
      } finally {
        asking.delete(key);
      }
    } finally {
      turn.leave();
    }
  };
}
