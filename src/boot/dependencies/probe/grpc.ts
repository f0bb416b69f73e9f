/**
 * grpc.health.v1.Health/Check. The two messages of the protocol have one field each, so they are written and read here
 * rather than through a .proto file: a request holds a string in field 1, an answer an enumeration in field 1.
 */
import { type ChannelOptions, Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import type { Prober } from '../../../ports/prober.ts';
import { cancelCall } from '../grpc/cancelCall.ts';
import { unixChannel } from '../grpc/unixGrpc.ts';
import type { TunnelOf } from './tunnel.ts';

type At = Parameters<Prober['grpcHealth']>[0];

const PATH = '/grpc.health.v1.Health/Check';
/** Far more than the one number that is expected. */
const ANSWER_BYTES_MAX = 64 * 1024;
const STRING_FIELD_1 = 0x0a;
const VARINT_FIELD_1 = 0x08;

function varint(value: number): number[] {
  const out: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    out.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  return [...out, rest];
}

function encodeRequest(service: string): Buffer {
  if (service === '') return Buffer.alloc(0);
  const text = Buffer.from(service);
  return Buffer.concat([Buffer.from([STRING_FIELD_1, ...varint(text.length)]), text]);
}

/** An answer without the field says its default, 0: UNKNOWN. Fields that are not expected end the reading. */
function decodeStatus(bytes: Buffer): { status: number } {
  if (bytes[0] !== VARINT_FIELD_1) return { status: 0 };
  let value = 0;
  for (let i = 1; i < Math.min(bytes.length, 6); i++) {
    const byte = bytes[i] ?? 0;
    value |= (byte & 0x7f) << (7 * (i - 1));
    if (byte < 0x80) break;
  }
  return { status: value };
}

function target(host: string, port: number): string {
  // Written as an address, not as a name to be looked up, so that no resolver stands between.
  return host.includes(':') ? `ipv6:[${host}]:${port}` : /^[\d.]+$/.test(host) ? `ipv4:${host}:${port}` : `dns:${host}:${port}`;
}

export const grpcHealth = (
  { host, port }: At,
  o: Parameters<Prober['grpcHealth']>[1],
  tunnel: TunnelOf,
): ReturnType<Prober['grpcHealth']> =>
  new Promise((resolve) => {
    const socketPath = tunnel(host);
    const channel: ChannelOptions = {
      ...unixChannel(ANSWER_BYTES_MAX),
      'grpc.primary_user_agent': o.userAgent,
      'grpc.default_authority': host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
      // The socket answers CONNECT.
      ...(socketPath === null ? {} : { 'grpc.http_connect_target': `${host}:${port}` }),
    };
    const client = new Client(socketPath === null ? target(host, port) : `unix:${socketPath}`, credentials.createInsecure(), channel);
    const abort = () => cancelCall(call);
    const call = client.makeUnaryRequest(
      PATH,
      encodeRequest,
      decodeStatus,
      o.service,
      new Metadata(),
      (error: ServiceError | null, value?: { status: number }) => {
        o.signal.removeEventListener('abort', abort);
        client.close();
        if (error === null) resolve({ ok: true, status: value?.status ?? 0 });
        else resolve({ ok: false, code: error.code ?? status.UNKNOWN, details: error.details || error.message });
      },
    );
    o.signal.addEventListener('abort', abort, { once: true });
    if (o.signal.aborted) abort();
  });
