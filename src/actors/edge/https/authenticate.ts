/** Who sent a request: client certificate, bearer token, or nobody in particular (boot-and-node 7.2). Fails closed. */
import type { UserInfo } from '../../../machines/kubeletApi/attributes.ts';
import { expiringCache } from '../../../machines/kubeletApi/expiringCache.ts';
import type { HttpRequest, Ports } from '../../kernel/ports.ts';
import type { Reviewer, TokenVerdict } from './reviews.ts';

export interface AuthenticationOptions {
  /** A client CA is configured. */
  x509: boolean;
  webhook: { enabled: boolean; cacheTtlMs: number };
  anonymous: boolean;
}
export type Authenticated = { ok: true; user: UserInfo } | { ok: false; why: string };
export interface Authenticator {
  authenticate(req: HttpRequest): Promise<Authenticated>;
  /** Nothing that is configured could ever let anybody in. */
  readonly impossible: boolean;
}

const ANONYMOUS: UserInfo = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'], extra: {} };
const AUTHENTICATED_GROUP = 'system:authenticated';
/** Sub-protocol by which a browser, which cannot set headers, sends a token over WebSocket. */
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';
const TOKENS_MAX = 4096;
const SALT_BYTES = 32;
/** Questions about tokens at once. More would come from somebody who guesses, and take the node's own requests their turn. */
const ASKING_MAX = 32;

type Verdict = { kind: 'user'; user: UserInfo } | { kind: 'absent' } | { kind: 'objected'; why: string };

export function createAuthenticator(o: AuthenticationOptions, ports: Ports, reviewer: Reviewer | null, signal: AbortSignal): Authenticator {
  const review = cachedReview(o.webhook.cacheTtlMs, ports, reviewer, signal);
  const byToken = async (found: Token): Promise<Verdict> => {
    if (found.kind !== 'token') return found;
    const verdict = await review(found.token);
    return verdict.kind === 'user' ? verdict : { kind: 'objected', why: verdict.why };
  };
  const none: Verdict = { kind: 'absent' };
  return {
    impossible: !o.x509 && !o.anonymous && (!o.webhook.enabled || reviewer === null),
    async authenticate(req) {
      const methods = [
        async () => (o.x509 ? byCertificate(req, ports.clock.wallMs()) : none),
        async () => (o.webhook.enabled ? byToken(bearerToken(req)) : none),
        async () => (o.webhook.enabled ? byToken(protocolToken(req)) : none),
      ];
      const objections: string[] = [];
      for (const method of methods) {
        const verdict = await method();
        if (verdict.kind === 'user') return { ok: true, user: withGroup(verdict.user) };
        if (verdict.kind === 'objected') objections.push(verdict.why);
      }
      // A bad certificate or token is a refusal, even where anonymous requests are let in.
      if (objections.length > 0) return { ok: false, why: objections.join('; ') };
      return o.anonymous ? { ok: true, user: ANONYMOUS } : { ok: false, why: 'no credentials' };
    },
  };
}

function withGroup(user: UserInfo): UserInfo {
  return user.groups.includes(AUTHENTICATED_GROUP) ? user : { ...user, groups: [...user.groups, AUTHENTICATED_GROUP] };
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

/** Good and bad answers are kept by a salted digest of the token; questions about one token at a time are one question. */
function cachedReview(
  ttlMs: number,
  ports: Ports,
  reviewer: Reviewer | null,
  signal: AbortSignal,
): (token: string) => Promise<TokenVerdict> {
  const cache = expiringCache<TokenVerdict>(TOKENS_MAX);
  const asking = new Map<string, Promise<TokenVerdict>>();
  let salt = '';
  return async (token) => {
    if (reviewer === null)
      return { kind: 'failed', why: 'bearer token: this node belongs to no cluster, so there is nobody to ask about it' };
    salt ||= hex(ports.entropy.bytes(SALT_BYTES));
    const key = ports.entropy.sha256Hex(`${salt}${token}`);
    const known = cache.get(key, ports.clock.monoMs());
    if (known !== undefined) return known;
    const before = asking.get(key);
    if (before === undefined && asking.size >= ASKING_MAX) return { kind: 'failed', why: 'bearer token: too many are being asked about' };
    const running = before ?? reviewer.token(token, signal);
    asking.set(key, running);
    try {
      const verdict = await running;
      if (verdict.kind !== 'failed') cache.set(key, verdict, { nowMs: ports.clock.monoMs(), ttlMs });
      return verdict;
    } finally {
      asking.delete(key);
    }
  };
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
}
