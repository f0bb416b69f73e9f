/** A receiver of OTLP traces: a gRPC server on loopback that keeps what it is sent. */
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { loadTraceService } from '../../src/boot/tracing/otlp.ts';

interface WireValue {
  stringValue?: string;
  boolValue?: boolean;
  intValue?: string;
  doubleValue?: number;
}
interface WireAttribute {
  key: string;
  value: WireValue;
}
interface WireSpan {
  traceId: Buffer;
  spanId: Buffer;
  parentSpanId: Buffer;
  name: string;
  kind: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: WireAttribute[];
  events: { timeUnixNano: string; name: string; attributes: WireAttribute[] }[];
  status: { code: string; message: string } | null;
  flags: number;
}
export interface WireRequest {
  resourceSpans: {
    resource: { attributes: WireAttribute[] };
    scopeSpans: { scope: { name: string; version: string } | null; spans: WireSpan[] }[];
  }[];
}
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  startNs: bigint;
  endNs: bigint;
  attributes: Record<string, unknown>;
  resource: Record<string, unknown>;
}

export const plain = (list: readonly WireAttribute[]): Record<string, unknown> =>
  Object.fromEntries(
    list.map(({ key, value: v }) => [key, v.stringValue ?? v.boolValue ?? (v.intValue === undefined ? v.doubleValue : Number(v.intValue))]),
  );

export interface Receiver extends AsyncDisposable {
  /** `127.0.0.1:PORT`. */
  endpoint: string;
  spans: ReceivedSpan[];
  requests: number;
  /** False: requests are taken and never answered. */
  answers: boolean;
}

export async function traceReceiver(): Promise<Receiver> {
  const server = new Server();
  const self: Receiver = {
    endpoint: '',
    spans: [],
    requests: 0,
    answers: true,
    [Symbol.asyncDispose]() {
      server.forceShutdown();
      return Promise.resolve();
    },
  };
  server.addService(loadTraceService(), {
    Export(call: ServerUnaryCall<WireRequest, object>, reply: sendUnaryData<object>) {
      self.requests += 1;
      for (const { resource, scopeSpans } of call.request.resourceSpans) {
        for (const s of scopeSpans.flatMap((scope) => scope.spans)) {
          self.spans.push({
            traceId: s.traceId.toString('hex'),
            spanId: s.spanId.toString('hex'),
            parentSpanId: s.parentSpanId.toString('hex'),
            name: s.name,
            startNs: BigInt(s.startTimeUnixNano),
            endNs: BigInt(s.endTimeUnixNano),
            attributes: plain(s.attributes),
            resource: plain(resource.attributes),
          });
        }
      }
      if (self.answers) reply(null, {});
    },
  });
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  );
  self.endpoint = `127.0.0.1:${port}`;
  return self;
}
