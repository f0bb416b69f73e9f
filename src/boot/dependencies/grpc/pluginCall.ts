/** One call of a plugin beside this node: its deadline, the signal that gives it up, its error in plain words. */
import { type Client, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { Clock } from '../../../ports/ports.ts';
import { CsiError } from '../../../ports/sockets/csi.ts';
import type { Method } from '../cri/load.ts';
import { cancelCall } from './cancelCall.ts';

interface PluginCall {
  request: object;
  /** Null: it may take as long as it likes. */
  timeoutMs: number | null;
  signal: AbortSignal;
}

/** Resolves with the answer as the loader gives it (protoFile.ts). Rejects with {@link CsiError}. */
export function callPlugin(at: { client: Client; clock: Clock }, definition: Method, o: PluginCall): Promise<object> {
  const method = definition.path.slice(definition.path.lastIndexOf('/') + 1);
  return new Promise((resolve, reject) => {
    if (o.signal.aborted) return reject(new CsiError({ method, code: status.CANCELLED, details: 'given up before it was sent' }));
    const abort = () => cancelCall(call);
    const call = at.client.makeUnaryRequest(
      definition.path,
      definition.requestSerialize,
      definition.responseDeserialize,
      o.request,
      new Metadata(),
      o.timeoutMs === null ? {} : { deadline: at.clock.wallMs() + o.timeoutMs },
      (error: ServiceError | null, value?: object) => {
        o.signal.removeEventListener('abort', abort);
        if (error === null) resolve(value ?? {});
        else reject(pluginError(method, error));
      },
    );
    o.signal.addEventListener('abort', abort, { once: true });
  });
}

/** Reads a stream of a plugin until it ends, or until the function that this gives is called. `end`: null = without an error. */
export function followPlugin<T>(
  client: Client,
  { path, requestSerialize, responseDeserialize }: Method,
  on: { data(message: T): void; end(error: ServiceError | null): void },
): () => void {
  let over = false;
  const end = (error: ServiceError | null): void => {
    if (over) return;
    over = true;
    on.end(error);
  };
  const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, {});
  stream.on('data', (message: T) => {
    if (!over) on.data(message);
  });
  stream.on('error', end);
  stream.on('end', () => end(null));
  return () => {
    over = true;
    cancelCall(stream);
  };
}

export function pluginError(method: string, { code, details, message }: ServiceError): CsiError {
  return new CsiError({ method, code: code ?? status.UNKNOWN, details: plain(details || message) });
}

/** What grpc-js adds for its own debugging is left out; the plugin's words stay as they are. */
function plain(details: string): string {
  return details
    .replace(/^No connection established\. Last error: (?:Error: )?/, 'connection error: ')
    .replace(/\. ?Resolution note:.*$/, '')
    .replace(/^Deadline exceeded after ([\d.]+)s,.*$/, 'context deadline exceeded: no answer within $1 s');
}
