/** The real {@link Cri} port: gRPC over the runtime's unix socket. The CRI link actor decides when to dial again. */
import { type ChannelOptions, Client, type ClientUnaryCall, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { shownEndpoint } from '../../../machines/text/shownUrl.ts';
import type { CriMethod, CriRequest, CriResponse } from '../../../machines/wire/criCalls.ts';
import { CRI_METHODS } from '../../../machines/wire/criMethods.ts';
import { type Clock, type Cri, CriError, type Logger } from '../../../ports/ports.ts';
import { cancelCall } from '../grpc/cancelCall.ts';
import { toCriError } from './errors.ts';
import { openHints } from './hintStream.ts';
import { isLeftTask, LeftTasks } from './leftTask.ts';
import { type CriProto, type EventsProto, loadCriProto, loadEventsProto } from './load.ts';

/** The largest message either way; listings on a full node exceed gRPC's default of 4 MiB. */
const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

const CHANNEL: ChannelOptions = {
  // Some servers reject a socket path as authority.
  'grpc.default_authority': 'localhost',
  'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
  'grpc.max_send_message_length': MESSAGE_BYTES_MAX,
  // The link actor owns reconnecting; the channel must only not stand in its way.
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1000,
  // A fresh client means a fresh connection, not one from a pool shared in the process.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.service_config_disable_resolution': 1,
  // Never repeat a call behind our back: an unknown outcome is the caller's to resolve.
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  // No keepalive pings: Go servers answer pings more often than every 5 minutes with GOAWAY, and the link's Status
  // poll has a deadline of its own.
};

export interface GrpcCriOptions {
  /** `unix:///run/containerd/containerd.sock`, `unix:/path` or a bare absolute path. */
  endpoint: string;
  /** Where images are served; the runtime's endpoint by default. */
  imageEndpoint?: string;
  log: Logger;
  clock: Clock;
}

/** @throws when the endpoint is not a unix socket, naming it. */
function grpcTarget(endpoint: string): string {
  const path = endpoint.startsWith('unix://')
    ? endpoint.slice('unix://'.length)
    : endpoint.startsWith('unix:')
      ? endpoint.slice('unix:'.length)
      : endpoint;
  if (!path.startsWith('/')) {
    throw new Error(`container runtime endpoint "${shownEndpoint(endpoint)}" is not a unix socket: expected unix:///absolute/path.sock`);
  }
  return `unix://${path}`;
}

type CallOptions = Parameters<Cri['call']>[2];

interface Channel {
  target: string;
  client: Client | undefined;
}

class GrpcCri implements Cri {
  readonly #cri: CriProto = loadCriProto();
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #runtime: Channel;
  readonly #image: Channel;
  readonly #leftTasks: LeftTasks;
  #events: EventsProto | undefined;
  #closed = false;

  constructor(o: GrpcCriOptions) {
    this.#clock = o.clock;
    this.#log = o.log;
    this.#leftTasks = new LeftTasks(o.clock);
    this.#runtime = { target: grpcTarget(o.endpoint), client: undefined };
    const image = o.imageEndpoint === undefined || o.imageEndpoint === '' ? o.endpoint : o.imageEndpoint;
    this.#image = grpcTarget(image) === this.#runtime.target ? this.#runtime : { target: grpcTarget(image), client: undefined };
  }

  #client(channel: Channel, method: string): Client {
    if (this.#closed) {
      throw new CriError({ method, code: status.UNAVAILABLE, outcome: 'failed', details: 'this node is closing its runtime connection' });
    }
    channel.client ??= new Client(channel.target, credentials.createInsecure(), CHANNEL);
    return channel.client;
  }

  async call<M extends CriMethod>(method: M, req: CriRequest<M>, opts: CallOptions): Promise<CriResponse<M>> {
    try {
      return await this.#send(method, req, opts);
    } catch (error) {
      if (!isLeftTask(method, error)) throw error;
      const { containerId } = req as CriRequest<'RemoveContainer'>;
      try {
        await this.#leftTasks.end(this.#client(this.#runtime, method), containerId);
      } catch (left) {
        this.#log.warn({ err: String(left), containerId }, 'a task that the runtime forgot cannot be ended; its container stays for now');
        throw error;
      }
      this.#log.warn({ containerId }, 'a task that the runtime forgot in a broken-off start was ended');
      return this.#send(method, req, opts);
    }
  }

  #send<M extends CriMethod>(method: M, req: CriRequest<M>, opts: CallOptions): Promise<CriResponse<M>> {
    return new Promise((resolve, reject) => {
      if (opts.signal.aborted) {
        reject(new CriError({ method, code: status.CANCELLED, outcome: 'failed', details: 'given up before it was sent' }));
        return;
      }
      const service = CRI_METHODS[method].service;
      const client = this.#client(service === 'image' ? this.#image : this.#runtime, method);
      const definition = this.#cri.method(service, method);
      let headersSeen = false;
      const abort = () => cancelCall(call);
      // grpc-js compares deadlines with its own wall clock, so this one must be of the same clock.
      const metadata = new Metadata();
      if (opts.traceparent !== undefined) metadata.set('traceparent', opts.traceparent);
      const deadline = opts.timeoutMs === null ? {} : { deadline: this.#clock.wallMs() + opts.timeoutMs };
      const call: ClientUnaryCall = client.makeUnaryRequest(
        definition.path,
        definition.requestSerialize,
        definition.responseDeserialize,
        req,
        metadata,
        deadline,
        (error: ServiceError | null, value?: object) => {
          opts.signal.removeEventListener('abort', abort);
          if (error !== null) reject(toCriError(method, error, headersSeen));
          // The loader's output is the response's shape by contract (protoFile.ts and machines/wire/cri.ts).
          else resolve(value as CriResponse<M>);
        },
      );
      call.on('metadata', () => {
        headersSeen = true;
      });
      opts.signal.addEventListener('abort', abort, { once: true });
    });
  }

  hints(signal: AbortSignal): ReturnType<Cri['hints']> {
    this.#events ??= loadEventsProto();
    return openHints(this.#client(this.#runtime, 'hints'), { cri: this.#cri, events: this.#events }, { signal, clock: this.#clock });
  }

  reconnect(): void {
    for (const channel of new Set([this.#runtime, this.#image])) {
      if (channel.client === undefined) continue;
      this.#log.debug({ target: channel.target }, 'runtime channel dropped, the next call dials again');
      channel.client.close();
      channel.client = undefined;
    }
  }

  close(): void {
    this.reconnect();
    this.#closed = true;
  }
}

/**
 * Calls already under way when `reconnect()` or `close()` is called go on to their end; their deadlines hold.
 * @throws when an endpoint is not a unix socket.
 */
export function createGrpcCri(o: GrpcCriOptions): Cri {
  return new GrpcCri(o);
}
