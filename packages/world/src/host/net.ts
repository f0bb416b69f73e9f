/**
 * The network of one simulated machine: listeners that end with their daemon, addresses that can be taken, and, for the
 * node's own API, handshakes and requests of callers. Other servers listen and are asked nothing.
 */
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import type { ClientCertificate, HttpReply, HttpRequest, Net, TlsMaterial } from '@actorlet/kubelet/ports/sockets/net.ts';
import { readPair, type SimCertificate } from '../identity/certificates.ts';
import type { Power } from '../time.ts';

/** Text of the authority by which clients of the nodes are known. */
export const CLIENT_CA_TEXT = 'CA of the clients of this cluster\n';

type HttpAnswer = { status: number; body: string } | 'unreachable';

export interface CallerRequest {
  method: string;
  path: string;
  query?: Readonly<Record<string, string>>;
  token: string | null;
  certificate: SimCertificate | null;
  signal: AbortSignal;
}
export type Answer =
  /** Nobody listens. */
  | { kind: 'refused' }
  /** There is no certificate yet. */
  | { kind: 'no-handshake' }
  /** What is served with is no pair. */
  | { kind: 'unfit'; why: string }
  | { kind: 'broken'; why: string }
  | { kind: 'reply'; status: number; body: string; shown: SimCertificate };

interface Listener {
  power: Power;
  handler: (req: HttpRequest) => Promise<HttpReply>;
  material: TlsMaterial | null;
}

export interface SimNet {
  /** For one daemon. */
  connect(power: Power, o: { http: () => HttpAnswer; taken: number; closesBadly: boolean }): Net;
  /** As a client somewhere in the network, at this wall time; never answered by a daemon that dies over it. */
  ask(port: number, request: CallerRequest, wallMs: number): Promise<Answer>;
}

export function simNet(): SimNet {
  const listeners = new Map<string, Listener>();
  const failure = (code: string, message: string): Error => Object.assign(new Error(message), { code });
  return {
    connect(power, o) {
      let { taken } = o;
      return {
        async httpGet() {
          if (!power.on) return new Promise(() => {});
          const answer = o.http();
          if (answer === 'unreachable') throw failure('ECONNREFUSED', 'connect ECONNREFUSED');
          return { status: answer.status, body: new TextEncoder().encode(answer.body) };
        },
        async serveHttp(at, handler) {
          const address = 'port' in at ? `${at.host}:${at.port}` : at.socketPath;
          const there = listeners.get(address);
          const inUse = 'port' in at && there?.power.on === true;
          if (taken > 0 || inUse) {
            if (!inUse) taken -= 1;
            throw failure('EADDRINUSE', `listen EADDRINUSE: address already in use ${address}`);
          }
          const tls = 'port' in at ? at.tls : undefined;
          if (tls !== undefined) mustFit(tls.material);
          const mine: Listener = { power, handler, material: tls?.material ?? null };
          tls?.renew((material) => {
            mustFit(material);
            mine.material = material;
          });
          listeners.set(address, mine);
          return {
            address,
            close: async () => {
              if (listeners.get(address) === mine) listeners.delete(address);
              if (o.closesBadly) throw failure('ERR_SERVER_NOT_RUNNING', `close ${address}: ERR_SERVER_NOT_RUNNING`);
            },
          };
        },
      };
    },
    async ask(port, request, wallMs) {
      const [, listener] = [...listeners].find(([address]) => address.endsWith(`:${port}`)) ?? [];
      if (listener === undefined || !listener.power.on || listener.material === null) return { kind: 'refused' };
      const { cert, key, clientCa } = listener.material;
      if (cert.length === 0) return { kind: 'no-handshake' };
      let shown: SimCertificate;
      try {
        shown = readPair(textOf(cert), textOf(key));
      } catch (error) {
        return { kind: 'unfit', why: messageOf(error) };
      }
      const { token } = request;
      const headers = token === null ? {} : { authorization: `Bearer ${token}` };
      const client = clientCa === null ? { kind: 'none' as const } : seen(request.certificate, textOf(clientCa), wallMs);
      const { method, path, signal } = request;
      try {
        const reply = await listener.handler({
          method,
          path,
          query: new URLSearchParams({ ...request.query }),
          headers,
          body: new Uint8Array(),
          signal,
          client,
        });
        return { kind: 'reply', status: reply.status, body: await bodyOf(reply), shown };
      } catch (error) {
        return { kind: 'broken', why: messageOf(error) };
      }
    },
  };
}

/** Throws for halves that do not belong together; none at all is no mistake. */
function mustFit(material: TlsMaterial): void {
  if (material.cert.length > 0) readPair(textOf(material.cert), textOf(material.key));
}

/** What a handshake makes of a client's certificate. */
function seen(certificate: SimCertificate | null, ca: string, wallMs: number): ClientCertificate {
  if (certificate === null) return { kind: 'none' };
  if (certificate.issuer !== 'cluster' || ca !== CLIENT_CA_TEXT)
    return { kind: 'rejected', reason: 'unable to verify the first certificate' };
  if (certificate.notAfterMs <= wallMs) return { kind: 'rejected', reason: 'certificate has expired' };
  const { commonName, organizations, notAfterMs } = certificate;
  return { kind: 'verified', commonName, organizations, notAfterMs };
}

async function bodyOf({ body }: HttpReply): Promise<string> {
  if (typeof body === 'string') return body;
  if (body instanceof Uint8Array) return textOf(body);
  let text = '';
  for await (const part of body) text += typeof part === 'string' ? part : textOf(part);
  return text;
}
function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
