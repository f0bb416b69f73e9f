/** The API server behind a proxy: how it is reached, and as whom. */
import { X509Certificate } from 'node:crypto';
import { type Agent, Agent as HttpsAgent } from 'node:https';
import { connect, createSecureContext, type PeerCertificate, type SecureContext, type TLSSocket } from 'node:tls';
import type { Credentials, Loaded } from '@actorlet/kubelet/boot/dependencies/kube/credentials.ts';
import type { KubeConfigFile } from '@actorlet/kubelet/boot/dependencies/kube/kubeconfig.ts';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';

/** An API server closes a connection that is idle for longer. */
const IDLE_MS = 60_000;
const TOKEN_LENGTH_MAX = 16 * 1024;
const USER_LENGTH_MAX = 512;

export interface Client {
  /** For faults that select by it. The API server decides who it is. */
  user: string;
  /** Null: its certificate is not that of the kubeconfig. */
  agent: Agent | null;
}

/** Connections without a client certificate, and those with the one of the kubeconfig: for clients that have shown that they hold its key. */
export class Upstream {
  readonly host: string;
  readonly port: number;
  /** Below which the API is; '' mostly. */
  readonly prefix: string;
  readonly #config: KubeConfigFile;
  readonly #credentials: Credentials;
  #plain: Agent | undefined;
  #certified: { generation: number; agent: Agent; certificate: X509Certificate | undefined } | undefined;

  constructor(config: KubeConfigFile, credentials: Credentials) {
    const { hostname, port, pathname } = config.server;
    // An address of IPv6 stands in brackets in a URL alone.
    this.host = hostname.replace(/^\[(.*)\]$/, '$1');
    this.port = port === '' ? 443 : Number(port);
    this.prefix = pathname.replace(/\/+$/, '');
    this.#config = config;
    this.#credentials = credentials;
  }

  async client(socket: TLSSocket, authorization: string | undefined): Promise<Client> {
    const shown: Partial<PeerCertificate> = socket.getPeerCertificate();
    const loaded = await this.#credentials.current();
    if (shown.raw === undefined) return { user: userOfToken(authorization), agent: this.#anonymous(loaded) };
    const { agent, certificate } = this.#withCertificate(loaded);
    const name = String(shown.subject?.CN ?? '').slice(0, USER_LENGTH_MAX);
    return { user: name, agent: certificate?.raw.equals(shown.raw) === true ? agent : null };
  }

  close(): void {
    this.#plain?.destroy();
    this.#certified?.agent.destroy();
  }

  #anonymous({ tls: { ca } }: Loaded): Agent {
    this.#plain ??= this.#agent(createSecureContext(ca === undefined ? {} : { ca }));
    return this.#plain;
  }

  #withCertificate({ generation, context, tls }: Loaded) {
    if (this.#certified?.generation !== generation) {
      this.#certified?.agent.destroy();
      const certificate = tls.cert === undefined ? undefined : new X509Certificate(String(tls.cert));
      this.#certified = { generation, agent: this.#agent(context), certificate };
    }
    return this.#certified;
  }

  #agent(secureContext: SecureContext): Agent {
    const { insecure, tlsServerName } = this.#config;
    const agent = new HttpsAgent({ keepAlive: true, timeout: IDLE_MS, scheduling: 'lifo' });
    const servername = tlsServerName ?? (/^[\d.]+$|:/.test(this.host) ? '' : this.host);
    // The option of an agent would be parsed again for each connection.
    agent.createConnection = () =>
      connect({ host: this.host, port: this.port, secureContext, servername, rejectUnauthorized: !insecure, ALPNProtocols: ['http/1.1'] });
    return agent;
  }
}

/** Of a service account, as its token says. Unchecked. */
function userOfToken(authorization: string | undefined): string {
  const [, payload] = /^Bearer [\w-]+\.([\w-]+)\./i.exec((authorization ?? '').slice(0, TOKEN_LENGTH_MAX)) ?? [];
  if (payload === undefined) return '';
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
    return isRecord(claims) && typeof claims.sub === 'string' ? claims.sub.slice(0, USER_LENGTH_MAX) : '';
  } catch {
    return '';
  }
}
