/** Who a request is from (boot-and-node 7.2): each way to say so alone, with others, and with what is wrong with it. */
import { type AuthenticationOptions, createAuthenticator } from '../../../../src/actors/edge/https/authenticate.ts';
import type { Reviewer } from '../../../../src/actors/edge/https/reviews.ts';
import { createEntropy } from '../../../../src/boot/dependencies/clock.ts';
import type { HttpRequest } from '../../../../src/ports/sockets/net.ts';
import { fakePorts } from '../../../supervision/fakePorts.ts';
import { goldenTable } from '../table.ts';

const YEAR_MS = 365 * 86_400_000;
const ALL: AuthenticationOptions = { x509: true, webhook: { enabled: true, cacheTtlMs: 0 }, anonymous: true };
const OFF: AuthenticationOptions = { x509: false, webhook: { enabled: false, cacheTtlMs: 0 }, anonymous: false };

const reviewer: Reviewer = {
  token: async (token) => {
    if (token === 'good') return { kind: 'user', user: { name: 'of-the-token', uid: 'u1', groups: ['g'], extra: { k: ['v'] } } };
    if (token === 'away') return { kind: 'failed', why: 'the API server does not answer' };
    return { kind: 'refused', why: 'unknown token' };
  },
  access: async () => ({ kind: 'failed', why: 'nobody asks here' }),
};

type Client = NonNullable<HttpRequest['client']>;
const certificate = (o: { commonName?: string; notAfterMs?: number; organizations?: string[] } = {}): Client => ({
  kind: 'verified',
  commonName: 'of-the-certificate',
  organizations: ['dev'],
  notAfterMs: fakePorts().clock.wallMs() + YEAR_MS,
  ...o,
});
const rejected: Client = { kind: 'rejected', reason: 'unable to verify the first certificate' };
const bearer = (authorization: string) => ({ authorization });
const PREFIX = 'base64url.bearer.authorization.k8s.io.';
const encoded = (token: string): string => `${PREFIX}${Buffer.from(token).toString('base64url')}`;
const socket = (...protocols: string[]) => ({ upgrade: 'websocket', 'sec-websocket-protocol': protocols.join(', ') });

interface Case {
  o?: AuthenticationOptions;
  client?: Client;
  headers?: Record<string, string>;
  /** Nobody to ask about tokens: a standalone node. */
  alone?: boolean;
}

async function decided({ o = ALL, client = { kind: 'none' }, headers = {}, alone = false }: Case): Promise<unknown> {
  const signal = new AbortController().signal;
  const ports = fakePorts({ entropy: createEntropy() });
  const authenticator = createAuthenticator(o, ports, alone ? null : reviewer, signal);
  const request = { method: 'GET', path: '/pods', query: new URLSearchParams(), headers, client, signal };
  const who = await authenticator.authenticate(request as unknown as HttpRequest);
  const impossible = authenticator.impossible ? { nobodyCanBeLetIn: true } : {};
  return who.ok ? { user: who.user, ...impossible } : { refused: who.why, ...impossible };
}

const CASES: Readonly<Record<string, Case>> = {
  // x509
  'a certificate of the client CA': { client: certificate() },
  'a certificate, with nothing but certificates': { o: { ...OFF, x509: true }, client: certificate() },
  'a certificate whose groups have system:authenticated already': {
    client: certificate({ organizations: ['system:authenticated', 'dev'] }),
  },
  'a certificate without a name, anonymous on': { client: certificate({ commonName: '' }) },
  'a certificate without a name, anonymous off': { o: { ...ALL, anonymous: false }, client: certificate({ commonName: '' }) },
  'a certificate that has ended since the connection was made': { client: certificate({ notAfterMs: 0 }) },
  'a bad chain, anonymous on': { client: rejected },
  'a bad chain where no client CA is set, anonymous on': { o: { ...ALL, x509: false }, client: rejected },
  'a good certificate where no client CA is set': { o: { ...OFF, webhook: ALL.webhook }, client: certificate() },
  // Bearer token
  'a good token': { headers: bearer('Bearer good') },
  'a good token, the scheme in capitals': { headers: bearer('BEARER good') },
  'a token that is refused, anonymous on': { headers: bearer('Bearer bad') },
  'a token that could not be asked about, anonymous on': { headers: bearer('Bearer away') },
  'a token, without webhook, anonymous on': { o: { ...OFF, anonymous: true }, headers: bearer('Bearer bad') },
  'a token on a standalone node': { alone: true, headers: bearer('Bearer good') },
  'another scheme, anonymous on': { headers: bearer('Basic Z29vZA==') },
  'an empty token, anonymous on': { headers: bearer('Bearer ') },
  'another scheme, anonymous off': { o: { ...ALL, anonymous: false }, headers: bearer('Basic Z29vZA==') },
  // WebSocket
  'a good token as a sub-protocol': { headers: socket(encoded('good'), 'v4.channel.k8s.io') },
  'a refused token as a sub-protocol': { headers: socket(encoded('bad'), 'v4.channel.k8s.io') },
  'a token as the only sub-protocol': { headers: socket(encoded('good')) },
  'two tokens as sub-protocols': { headers: socket(encoded('good'), encoded('bad'), 'v4.channel.k8s.io') },
  'a token as a sub-protocol that is no base64url': { headers: socket(`${PREFIX}+/=`, 'v4.channel.k8s.io') },
  'an empty token as a sub-protocol': { headers: socket(PREFIX, 'v4.channel.k8s.io') },
  'no token among the sub-protocols, anonymous on': { headers: socket('v4.channel.k8s.io') },
  'a token as a sub-protocol of what is no WebSocket': { headers: { 'sec-websocket-protocol': `${encoded('good')}, v4.channel.k8s.io` } },
  // Anonymous
  nothing: {},
  'nothing, anonymous off': { o: { ...ALL, anonymous: false } },
  'nothing, and nothing configured': { o: OFF },
  'nothing, and nothing but tokens on a standalone node': { o: { ...OFF, webhook: ALL.webhook }, alone: true },
  // The first success wins, whatever the others say.
  'a good certificate with a bad token': { client: certificate(), headers: bearer('Bearer bad') },
  'a bad chain with a good token': { client: rejected, headers: bearer('Bearer good') },
  'a bad chain with a bad token': { client: rejected, headers: bearer('Bearer bad') },
  'a good token in the header with a bad one as a sub-protocol': {
    headers: { ...bearer('Bearer good'), ...socket(encoded('bad'), 'v4.channel.k8s.io') },
  },
  'a bad token in the header with a good one as a sub-protocol': {
    headers: { ...bearer('Bearer bad'), ...socket(encoded('good'), 'v4.channel.k8s.io') },
  },
};

goldenTable(
  'whom a request is taken to be from is as recorded',
  'edge/authenticators',
  Object.fromEntries(Object.entries(CASES).map(([name, c]) => [name, () => decided(c)])),
);
