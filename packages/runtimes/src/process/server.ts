/** The CRI services over gRPC on a unix socket of mode 0600. Calls without a handler answer UNIMPLEMENTED by themselves. */

import { chmodSync, rmSync } from 'node:fs';
import { messageOf } from '@actorlet/kubelet/machines/text/errors.ts';
import { Server, ServerCredentials, type ServerUnaryCall, type ServerWritableStream, type sendUnaryData } from '@grpc/grpc-js';
import { CODE, containerStatus, nanos, RuntimeRefusal, sandboxStatus } from '../shared/model.ts';
import { loadServices } from './proto.ts';
import type { ProcessHandlers, ProcessRuntime, RuntimeEvent, Served } from './types.ts';

const MESSAGE_BYTES_MAX = 16 * 1024 * 1024;

/** Events waiting for a slow reader before its stream is cut: it must list again. */
const EVENTS_WAITING_MAX = 4096;

const IMAGE_METHODS: ReadonlySet<string> = new Set<Served>(['ListImages', 'ImageStatus', 'PullImage', 'RemoveImage', 'ImageFsInfo']);
const EVENT_TYPE: Readonly<Record<RuntimeEvent['kind'], string>> = {
  created: 'CONTAINER_CREATED_EVENT',
  started: 'CONTAINER_STARTED_EVENT',
  stopped: 'CONTAINER_STOPPED_EVENT',
  deleted: 'CONTAINER_DELETED_EVENT',
};

type AnyHandler = (req: unknown, signal: AbortSignal) => unknown;

function unary(handler: AnyHandler, warn: (message: string) => void) {
  return (call: ServerUnaryCall<unknown, unknown>, reply: sendUnaryData<unknown>): void => {
    const abort = new AbortController();
    call.on('cancelled', () => abort.abort());
    // Inside a promise, so that a synchronous throw and a rejection end the same way.
    new Promise((resolve) => resolve(handler(call.request, abort.signal))).then(
      (value) => reply(null, value),
      (error: unknown) => {
        const refusal = error instanceof RuntimeRefusal ? error : undefined;
        const details = messageOf(error);
        if (refusal === undefined) warn(`${call.getPath()}: ${error instanceof Error ? error.stack : details}`);
        reply({ code: refusal?.code ?? CODE.unknown, details });
      },
    );
  };
}

function events(runtime: ProcessRuntime) {
  return (call: ServerWritableStream<unknown, unknown>): void => {
    const off = runtime.onEvent((e) => {
      if (call.writableLength > EVENTS_WAITING_MAX) {
        off();
        call.destroy(Object.assign(new Error(`reader is ${EVENTS_WAITING_MAX} events behind`), { code: CODE.resourceExhausted }));
        return;
      }
      call.write({
        containerId: e.id,
        containerEventType: EVENT_TYPE[e.kind],
        createdAt: nanos(performance.timeOrigin + performance.now()),
        podSandboxStatus: e.sandbox === undefined ? null : sandboxStatus(e.sandbox),
        containersStatuses: e.containers.map(containerStatus),
      });
    });
    call.on('cancelled', off);
    call.on('close', off);
    call.on('error', off);
  };
}

export interface CriServer {
  close(): void;
}

/** Only the holder of the lock calls this: an old socket file is then nobody's, and is replaced. */
export async function serveCri(o: { socketPath: string; runtime: ProcessRuntime; warn(message: string): void }): Promise<CriServer> {
  const { runtime, image } = loadServices();
  const server = new Server({
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.max_send_message_length': MESSAGE_BYTES_MAX,
    'grpc.enable_channelz': 0,
  });
  const runtimeImpl: Record<string, ReturnType<typeof unary> | ReturnType<typeof events>> = { GetContainerEvents: events(o.runtime) };
  const imageImpl: Record<string, ReturnType<typeof unary>> = {};
  for (const name of Object.keys(o.runtime.handlers) as (keyof ProcessHandlers)[]) {
    const handler = unary(o.runtime.handlers[name] as AnyHandler, o.warn);
    if (IMAGE_METHODS.has(name)) imageImpl[name] = handler;
    else runtimeImpl[name] = handler;
  }
  server.addService(runtime, runtimeImpl);
  server.addService(image, imageImpl);
  rmSync(o.socketPath, { force: true });
  // The folder is 0700, so nobody else can reach the socket before its mode is set.
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${o.socketPath}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve()));
  });
  chmodSync(o.socketPath, 0o600);
  return { close: () => server.forceShutdown() };
}
