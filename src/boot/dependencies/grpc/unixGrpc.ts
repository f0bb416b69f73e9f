/** What gRPC over unix sockets has in common, with a storage driver, a device plugin or a monitoring agent at the other end. */
import { type ChannelOptions, type Server, ServerCredentials } from '@grpc/grpc-js';

/** Options of a connection to one server, without a resolver, a proxy or retries. `messageBytesMax`: its longest answer. */
export function unixChannel(messageBytesMax: number): ChannelOptions {
  return {
    'grpc.default_authority': 'localhost',
    'grpc.max_receive_message_length': messageBytesMax,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.service_config_disable_resolution': 1,
    'grpc.enable_retries': 0,
    'grpc.enable_channelz': 0,
    'grpc.enable_http_proxy': 0,
  };
}

/** Endpoints are named as a path or as a unix URL. */
export function unixTarget(endpoint: string): string {
  const path = endpoint.replace(/^unix:(\/\/)?/, '');
  if (!path.startsWith('/')) throw new Error(`endpoint "${endpoint}" is not a unix socket`);
  return `unix://${path}`;
}

/** The kernel's limit, without the final zero. */
const PATH_BYTES_MAX = 107;

/** Listens at this path, where nothing may be. Rejects with the error of binding. */
export async function listenUnix(server: Server, socketPath: string): Promise<void> {
  const length = Buffer.byteLength(socketPath);
  if (length > PATH_BYTES_MAX) throw new Error(`bind ${socketPath}: the path is of ${length} bytes, a socket's may have ${PATH_BYTES_MAX}`);
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${socketPath}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error)));
  });
}
