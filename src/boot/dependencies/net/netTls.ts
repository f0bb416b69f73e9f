/** TLS for the Net port's servers: the server, renewed material, and what the handshake showed of the client. */

import { constants, X509Certificate } from 'node:crypto';
import type { Server as HttpServer, ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { messageOf } from '../../../machines/text/errors.ts';
import type { ClientCertificate, TlsMaterial, TlsServing } from '../../../ports/sockets/net.ts';
import { valuesOf } from '../certificates/pki.ts';
import { type Connections, HANDSHAKE_TIMEOUT_MS } from './netConnections.ts';
import { afterHello, HANDSHAKES_PER_TURN, paced } from './netHello.ts';

export interface TlsServer {
  server: HttpServer;
  /** What the client of that connection showed, as far as it holds now. */
  clientOf(socket: Socket): ClientCertificate;
}

/**
 * The handshake asks for a client certificate and refuses none: what it found is for the authenticator to judge. No
 * session is resumed, so that each connection shows its certificate anew and is checked against the present CA.
 */
export async function createTlsServer(tls: TlsServing, o: ServerOptions, connections: Connections): Promise<TlsServer> {
  // Loaded only where TLS is really served: it costs memory that a node without this server never needs.
  const { createServer } = await import('node:https');
  const asks = tls.material.clientCa !== null;
  const fixed = {
    minVersion: tls.minVersion,
    ...(tls.ciphers === '' ? {} : { ciphers: tls.ciphers }),
    ...((tls.curves ?? '') === '' ? {} : { ecdhCurve: tls.curves }),
    secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
    honorCipherOrder: true,
  };
  const server = createServer({
    ...o,
    ...fixed,
    ...pem(tls.material),
    requestCert: asks,
    rejectUnauthorized: false,
    handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
  });
  /** Which CA bundle a connection was checked with. */
  const checkedWith = new WeakMap<Socket, string>();
  let bundle = text(tls.material.clientCa);
  /** Connections whose handshake is not over, by address: both of its sockets have the same. */
  const shaking = new Map<string, Socket>();
  const shake = handshakeOf(server);
  const inTurn = paced(HANDSHAKES_PER_TURN);
  server.on('connection', (raw: Socket) => {
    const at = addressOf(raw);
    shaking.set(at, raw);
    raw.once('close', () => {
      if (shaking.get(at) === raw) shaking.delete(at);
    });
    connections.add(raw, { tls: true });
    afterHello(raw, () => {
      connections.greeted(raw);
      inTurn(() => void (raw.destroyed || shake(raw)));
    });
  });
  server.on('secureConnection', (socket: TLSSocket) => {
    const at = addressOf(socket);
    connections.secured(shaking.get(at), socket);
    shaking.delete(at);
    checkedWith.set(socket, bundle);
    socket.on('error', () => socket.destroy());
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  tls.renew((material) => {
    server.setSecureContext({ ...fixed, ...pem(material) });
    const now = text(material.clientCa);
    if (now === bundle) return;
    bundle = now;
    server.closeIdleConnections();
  });
  return {
    server,
    clientOf(socket) {
      const peer = asks && 'getPeerCertificate' in socket ? clientCertificate(socket as TLSSocket) : ({ kind: 'none' } as const);
      if (peer.kind === 'none' || checkedWith.get(socket) === bundle) return peer;
      return { kind: 'rejected', reason: 'the client CA changed after this connection was made; connect again' };
    },
  };
}

/** Takes the listener away by which Node begins a handshake, to be called when the time has come. */
function handshakeOf(server: HttpServer): (raw: Socket) => void {
  const listeners = server.listeners('connection');
  server.removeAllListeners('connection');
  return (raw) => {
    for (const listener of listeners) listener.call(server, raw);
  };
}

function addressOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;
/** What OpenSSL reads behind a trusted certificate: that it vouches for clients (1.3.6.1.5.5.7.3.2). */
const FOR_CLIENTS = Buffer.from('300c300a06082b06010505070302', 'hex');

/**
 * The certificates of a client CA, each trusted by itself, as in Go: an intermediate needs no root beside it. Node passes
 * `allowPartialTrustChain` on to no server. @throws naming what is wrong: OpenSSL passes over what it cannot read, and would then
 * know no client.
 */
function anchors(bundle: Uint8Array): string[] {
  const certificates = text(bundle).match(PEM_CERTIFICATE) ?? [];
  if (certificates.length === 0) throw new Error('the client CA has no certificate in PEM');
  return certificates.map((certificate, i) => {
    try {
      return trusted(new X509Certificate(certificate).raw);
    } catch (error) {
      const why = messageOf(error);
      throw new Error(`certificate ${i + 1} of the client CA cannot be read: ${why}`, { cause: error });
    }
  });
}

function trusted(certificate: Buffer): string {
  const base64 = Buffer.concat([certificate, FOR_CLIENTS]).toString('base64');
  const lines = base64.match(/.{1,64}/g) ?? [];
  return ['-----BEGIN TRUSTED CERTIFICATE-----', ...lines, '-----END TRUSTED CERTIFICATE-----', ''].join('\n');
}

function pem(m: TlsMaterial) {
  return {
    // Without any there is no cipher both sides know: every handshake fails.
    ...(m.cert.length === 0 ? {} : { cert: Buffer.from(m.cert), key: Buffer.from(m.key) }),
    // Without a bundle of ours OpenSSL must not fall back to the public CAs.
    ca: m.clientCa === null ? [] : anchors(m.clientCa),
  };
}

function text(bytes: Uint8Array | null): string {
  return bytes === null ? '' : Buffer.from(bytes).toString('latin1');
}

function clientCertificate(socket: TLSSocket): ClientCertificate {
  const cert = socket.getPeerCertificate(false);
  // Without a certificate this is an empty object.
  if (cert === undefined || cert === null || cert.raw === undefined) return { kind: 'none' };
  if (!socket.authorized) return { kind: 'rejected', reason: String(socket.authorizationError ?? 'it could not be verified') };
  const names = valuesOf(cert.subject?.CN);
  return {
    kind: 'verified',
    // The last of several counts, as in the reference's language.
    commonName: names.at(-1) ?? '',
    organizations: valuesOf(cert.subject?.O),
    notAfterMs: Date.parse(cert.valid_to),
  };
}
