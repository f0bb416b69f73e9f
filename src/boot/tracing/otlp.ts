/**
 * Sends spans by OTLP over gRPC without TLS, as the reference kubelet does. With the gRPC client and the proto loader of the
 * CRI: the official exporter would bundle as much code again as the daemon has (metrics and logs included) for one call.
 */
import { join } from 'node:path';
import type { Attributes, Span } from '@actorlet/inspect/src/tracing/model.ts';
import type { Sent, SpanSender } from '@actorlet/inspect/src/tracing/queue.ts';
import { loadProtoFile } from '@actorlet/process/src/protoFile.ts';
import { Client, type ClientUnaryCall, credentials, Metadata, type ServiceDefinition, type ServiceError, status } from '@grpc/grpc-js';
import type { Clock } from '../../ports/ports.ts';
import { rpcOf } from '../dependencies/cri/load.ts';
import { protoRoot } from '../dependencies/cri/protoPath.ts';
import { cancelCall } from '../dependencies/grpc/cancelCall.ts';

/** Where a collector listens on its own host. */
export const DEFAULT_ENDPOINT = 'localhost:4317';
/** OTLP's own default for one export. */
const EXPORT_TIMEOUT_MS = 10_000;
/** What OTLP says may be sent again. */
const TRANSIENT: ReadonlySet<number> = new Set([
  status.CANCELLED,
  status.DEADLINE_EXCEEDED,
  status.RESOURCE_EXHAUSTED,
  status.ABORTED,
  status.OUT_OF_RANGE,
  status.UNAVAILABLE,
  status.DATA_LOSS,
]);

/** Serves clients and, in tests, servers. */
export function loadTraceService(root: string = protoRoot()): ServiceDefinition {
  return loadProtoFile(join(root, 'opentelemetry/trace.proto')).service('opentelemetry.proto.collector.trace.v1.TraceService');
}

export interface OtlpOptions {
  /** `host:port`, `dns:///host:port` or `unix:///path`. */
  endpoint: string;
  /** Attributes of the node: `service.name` and the like. */
  resource: Attributes;
  version: string;
  clock: Clock;
}

export function createOtlpSender(o: OtlpOptions): SpanSender & Disposable {
  const definition = rpcOf(loadTraceService(), 'Export');
  // The connection is made with the first spans.
  const client = new Client(o.endpoint, credentials.createInsecure(), { 'grpc.enable_retries': 0, 'grpc.enable_channelz': 0 });
  return {
    send(spans, signal) {
      return new Promise<Sent>((resolve) => {
        const abort = () => cancelCall(call);
        const call: ClientUnaryCall = client.makeUnaryRequest(
          definition.path,
          definition.requestSerialize,
          definition.responseDeserialize,
          exportRequest(spans, o),
          new Metadata(),
          { deadline: o.clock.wallMs() + EXPORT_TIMEOUT_MS },
          (error: ServiceError | null, answer?: object) => {
            signal.removeEventListener('abort', abort);
            if (error === null) resolve({ ok: true, rejected: rejectedOf(answer, spans.length) });
            else resolve({ ok: false, again: TRANSIENT.has(error.code), why: `${o.endpoint}: ${error.details || error.message}` });
          },
        );
        if (signal.aborted) abort();
        else signal.addEventListener('abort', abort, { once: true });
      });
    },
    [Symbol.dispose]: () => client.close(),
  };
}

/** What the receiver says it left out, never more than was sent. */
function rejectedOf(answer: object | undefined, sent: number): number {
  const { partialSuccess } = (answer ?? {}) as { partialSuccess?: { rejectedSpans?: string } | null };
  const rejected = Number(partialSuccess?.rejectedSpans ?? 0);
  return Number.isFinite(rejected) ? Math.min(Math.max(0, rejected), sent) : 0;
}

/** ExportTraceServiceRequest in the loader's shape. */
export function exportRequest(spans: readonly Span[], o: Pick<OtlpOptions, 'resource' | 'version'>): object {
  const scope = { name: 'actorlet', version: o.version };
  return {
    resourceSpans: [{ resource: { attributes: keyValues(o.resource) }, scopeSpans: [{ scope, spans: spans.map(wireSpan) }] }],
  };
}

/** W3C's `sampled`; above it OTLP's own bit: known whether the parent is in another process, and it is not. */
const FLAGS = 0x101;

function wireSpan(s: Span): object {
  return {
    traceId: Buffer.from(s.traceId, 'hex'),
    spanId: Buffer.from(s.spanId, 'hex'),
    ...(s.parentSpanId === '' ? {} : { parentSpanId: Buffer.from(s.parentSpanId, 'hex') }),
    name: s.name,
    kind: s.kind === 'client' ? 'SPAN_KIND_CLIENT' : 'SPAN_KIND_INTERNAL',
    startTimeUnixNano: nanos(s.startMs),
    endTimeUnixNano: nanos(s.endMs),
    attributes: keyValues(s.attributes),
    events: s.events.map((e) => ({ timeUnixNano: nanos(e.atMs), name: e.name, attributes: keyValues(e.attributes) })),
    ...(s.error === '' ? {} : { status: { code: 'STATUS_CODE_ERROR', message: s.error } }),
    flags: FLAGS,
  };
}

function nanos(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n);
}

function keyValues(attributes: Attributes): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}
function anyValue(value: Attributes[string]): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
