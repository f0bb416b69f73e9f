/** Speaks to a running daemon through its admin socket. */
import { request } from 'node:http';

/** Exit codes of actorctl, as `--help` lists them. */
export const EXIT = {
  ok: 0,
  /** The daemon answered, and the answer is no: pod not found, not healthy. */
  no: 1,
  usage: 2,
  /** Nobody listens on the socket. */
  noDaemon: 3,
  /** The socket is not ours to use. */
  noPermission: 4,
  /** The daemon cannot answer now (503), answered nonsense, or the connection broke. */
  failed: 5,
  /** Ended by Ctrl-C before there was an answer; as a shell reports it. */
  interrupted: 130,
} as const;

/** An error whose message is all that the user needs, with the exit code that goes with it. */
export class CtlError extends Error {
  readonly exitCode: number;
  /** HTTP status of the daemon's answer; 0: there was none. */
  readonly status: number;
  constructor(exitCode: number, message: string, status = 0) {
    super(message);
    this.name = 'CtlError';
    this.exitCode = exitCode;
    this.status = status;
  }
}

export interface AdminAnswer {
  status: number;
  body: string;
}
/** An observer that listens on TCP, and its token. */
export interface RemoteAddress {
  server: URL;
  token: string;
}
export interface AdminClient {
  /** Of a remote one, its address. */
  readonly socketPath: string;
  /** Any HTTP status is an answer. Rejects with {@link CtlError} when there was none. */
  get(path: string, query?: Readonly<Record<string, string>>): Promise<AdminAnswer>;
  /** POST of a JSON body; anything but 200 is a {@link CtlError} with the daemon's words. */
  post(path: string, body: unknown): Promise<unknown>;
  /** Any other method, with a body of that content type. Any HTTP status is an answer. */
  send(method: string, path: string, body?: { type: string; text: string }): Promise<AdminAnswer>;
  /** As `get`, and anything but 200 is a {@link CtlError} with the daemon's words. */
  json(path: string, query?: Readonly<Record<string, string>>): Promise<unknown>;
}

const TIMEOUT_MS = 10_000;
const BYTES_MAX = 256 * 1024 * 1024;

/**
 * Aborting the signal (Ctrl-C) ends a question that is on its way, with exit code 130. `node`: of the fleet that listens there; '': the
 * daemon itself.
 */
export function adminClient(at: string | RemoteAddress, signal: AbortSignal, node = ''): AdminClient {
  const socketPath = typeof at === 'string' ? at : at.server.origin;
  const where = typeof at === 'string' ? { socketPath } : { host: at.server.hostname.replace(/^\[|\]$/g, ''), port: at.server.port };
  const own = typeof at === 'string' ? { host: 'actorlet' } : { authorization: `Bearer ${at.token}` };
  const below = node === '' ? '' : `/nodes/${encodeURIComponent(node)}`;
  const send: AdminClient['send'] = (method, asked, body) => {
    const path = `${below}${asked}`;
    return new Promise((resolve, reject) => {
      const headers = { ...own, ...(body === undefined ? {} : { 'content-type': body.type }) };
      const req = request({ ...where, path, method, timeout: TIMEOUT_MS, headers, signal }, (res) => {
        const chunks: Buffer[] = [];
        let size = 0;
        res.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > BYTES_MAX) req.destroy(new Error(`the answer is larger than ${BYTES_MAX} bytes`));
          chunks.push(chunk);
        });
        res.on('end', () => resolve({ status: res.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }));
        res.on('error', reject);
      });
      req.on('timeout', () => req.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
      req.on('error', (error: NodeJS.ErrnoException) => reject(explain(socketPath, error)));
      req.end(body?.text);
    });
  };
  const get: AdminClient['get'] = (path, query = {}) => {
    const search = new URLSearchParams(query).toString();
    return send('GET', search === '' ? path : `${path}?${search}`);
  };
  const parsed = (path: string, answer: AdminAnswer): unknown => {
    if (answer.status !== 200) throw refusal(answer);
    try {
      return JSON.parse(answer.body) as unknown;
    } catch {
      throw new CtlError(EXIT.failed, `the daemon at ${socketPath} answered ${path} with something that is not JSON`);
    }
  };
  return {
    socketPath,
    get,
    send,
    post: async (path, body) => parsed(path, await send('POST', path, { type: 'application/json', text: JSON.stringify(body) })),
    json: async (path, query) => parsed(path, await get(path, query)),
  };
}

/** The daemon's words for a status that is not 200, without the number they begin with. */
export function refusal(answer: AdminAnswer): CtlError {
  const words = answer.body.trim().replace(/^\d{3}: /, '');
  const code =
    answer.status === 404 || answer.status === 400
      ? EXIT.no
      : answer.status === 403 || answer.status === 401
        ? EXIT.noPermission
        : EXIT.failed;
  return new CtlError(code, words === '' ? `the daemon answered with status ${answer.status}` : words, answer.status);
}

function explain(socketPath: string, error: NodeJS.ErrnoException): CtlError {
  switch (error.code) {
    case 'ABORT_ERR':
      return new CtlError(EXIT.interrupted, 'interrupted.');
    case 'ENOENT':
      return new CtlError(
        EXIT.noDaemon,
        `no daemon: ${socketPath} does not exist. Is actorlet running? ${socketPath.startsWith('/') ? '' : "'npm start' starts it here. "}--socket or ACTORLET_SOCKET tells where it listens.`,
      );
    case 'ECONNREFUSED':
      if (socketPath.startsWith('http:'))
        return new CtlError(EXIT.noDaemon, `nobody answers at ${socketPath}. Is its port forwarded, and does the observer have --listen?`);
      return new CtlError(
        EXIT.noDaemon,
        `no daemon: nobody answers on ${socketPath}. actorlet has ended; its pods keep running until it is started again.`,
      );
    case 'EACCES':
    case 'EPERM':
      return new CtlError(EXIT.noPermission, `no permission for ${socketPath}: only the user who runs actorlet (and root) may use it.`);
    case 'ENOTSOCK':
      return new CtlError(EXIT.usage, `${socketPath} is not a socket.`);
    default:
      return new CtlError(EXIT.failed, `the daemon at ${socketPath} did not answer: ${error.message}`);
  }
}
