/** Few requests to the API server that the kubeconfig of a fleet names. */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';

const TIMEOUT_MS = 60_000;
/** The server had closed the connection, which was idle: the request is sent on another one. */
const CLOSED = Symbol('closed');

interface KubeConfig {
  clusters: { cluster: { server: string } }[];
  users: { user: { token?: string; 'client-certificate-data'?: string; 'client-key-data'?: string } }[];
}

export class KubeClient {
  readonly #server: string;
  readonly #agent: Agent;
  readonly #headers: Record<string, string>;

  /** @param file As a fleet writes it: JSON with the credentials in it. @param atOnce Requests that are under way at the same time. */
  constructor(file: string, atOnce: number) {
    const { clusters, users } = JSON.parse(readFileSync(file, 'utf8')) as KubeConfig;
    const { token, 'client-certificate-data': cert, 'client-key-data': key } = users[0]?.user ?? {};
    const of = (data: string | undefined) => (data === undefined ? undefined : Buffer.from(data, 'base64'));
    this.#server = clusters[0]?.cluster.server ?? '';
    this.#agent = new Agent({ keepAlive: true, maxSockets: atOnce, rejectUnauthorized: false, cert: of(cert), key: of(key) });
    this.#headers = { 'content-type': 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
  }

  /** @throws Error where the answer is not of the 200s, or does not come within a minute. */
  async ask(method: string, path: string, body?: object): Promise<unknown> {
    for (;;) {
      const answer = await this.#asked(method, path, body);
      if (answer !== CLOSED) return answer;
    }
  }

  #asked(method: string, path: string, body?: object): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const on = { method, headers: this.#headers, agent: this.#agent, timeout: TIMEOUT_MS };
      const asked = request(`${this.#server}${path}`, on, (res) => {
        let text = '';
        res.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        res.once('error', reject);
        res.once('end', () => {
          if (Math.floor((res.statusCode ?? 0) / 100) === 2) resolve(JSON.parse(text));
          else reject(new Error(`${method} ${path} was answered with ${res.statusCode}: ${text}`));
        });
      });
      asked.once('timeout', () => asked.destroy(new Error(`${method} ${path}: no answer in time`)));
      asked.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNRESET' && asked.reusedSocket) resolve(CLOSED);
        else reject(error);
      });
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
