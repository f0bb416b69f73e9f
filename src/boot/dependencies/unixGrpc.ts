/** What gRPC over unix sockets has in common, whoever is at the other end: a storage driver, a device plugin. */
import type { ChannelOptions } from '@grpc/grpc-js';

/** Of a connection to one local server; `messageBytesMax`: of what it may answer. */
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
