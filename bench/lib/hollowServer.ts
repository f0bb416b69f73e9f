/** A hollow runtime as a process of its own, behind the CRI on a unix socket: `node hollowServer.ts SOCKET`. It costs its clients what a real one does. */
import { createHollowRuntime } from '@actorlet/runtimes/src/hollow/index.ts';
import { loadServices } from '@actorlet/runtimes/src/process/proto.ts';
import {
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceDefinition,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { createClock, createRng } from '../../src/boot/dependencies/clock.ts';
import type { CriMethod, CriRequest } from '../../src/machines/wire/criCalls.ts';
import { CRI_METHODS } from '../../src/machines/wire/criMethods.ts';
import { CriError } from '../../src/ports/ports.ts';

const EVENT_TYPE: Readonly<Record<string, string>> = {
  created: 'CONTAINER_CREATED_EVENT',
  started: 'CONTAINER_STARTED_EVENT',
  stopped: 'CONTAINER_STOPPED_EVENT',
  deleted: 'CONTAINER_DELETED_EVENT',
};
/** About what containerd takes on a machine that does nothing else. */
const LATENCY_MS: Partial<Record<CriMethod, number>> = { RunPodSandbox: 60, CreateContainer: 15, StartContainer: 25, StopPodSandbox: 30 };
const MESSAGE_BYTES_MAX = 16 << 20;

const socket = process.argv[2];
if (socket === undefined) throw new Error('node hollowServer.ts SOCKET');
const runtime = createHollowRuntime({ clock: createClock(), rng: createRng(), latencyMs: (method) => LATENCY_MS[method] ?? 0 });

/** Messages that are absent come as null from the wire. */
function present(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(present);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).flatMap(([k, v]) => (v === null ? [] : [[k, present(v)]])));
}

const unary =
  (method: CriMethod) =>
  (call: ServerUnaryCall<object, object>, reply: sendUnaryData<object>): void => {
    const abort = new AbortController();
    call.on('cancelled', () => abort.abort());
    runtime.call(method, present(call.request) as CriRequest<CriMethod>, { timeoutMs: null, signal: abort.signal }).then(
      (value) => reply(null, value),
      (error: unknown) =>
        reply(error instanceof CriError ? { code: error.code, details: error.details } : { code: status.UNKNOWN, details: String(error) }),
    );
  };

async function events(call: ServerWritableStream<object, object>): Promise<void> {
  const ended = new AbortController();
  call.on('cancelled', () => ended.abort());
  const { stream } = await runtime.hints(ended.signal);
  for await (const { kind, id, podUid } of stream) {
    const metadata = { name: '', namespace: '', uid: podUid ?? '', attempt: 0 };
    call.write({ containerId: id, containerEventType: EVENT_TYPE[kind] ?? 0, podSandboxStatus: { metadata } });
  }
}

const server = new Server({ 'grpc.max_receive_message_length': MESSAGE_BYTES_MAX, 'grpc.max_send_message_length': MESSAGE_BYTES_MAX });
const services = loadServices();
const stream = (call: ServerWritableStream<object, object>): void => void events(call);
const handlersOf = (service: ServiceDefinition) =>
  Object.fromEntries(
    Object.keys(service)
      .filter((name) => name === 'GetContainerEvents' || name in CRI_METHODS)
      .map((name) => [name, name === 'GetContainerEvents' ? stream : unary(name as CriMethod)]),
  );
server.addService(services.runtime, handlersOf(services.runtime));
server.addService(services.image, handlersOf(services.image));
server.bindAsync(`unix://${socket}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
  process.stdout.write('serving\n');
});
