/** A small device plugin: a gRPC server on a socket, which registers itself, gives what it is told to, and can be ended as a process is. */
import { mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  Client,
  credentials,
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type ServiceError,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { loadDevicePluginProto } from '../../src/boot/dependencies/devicePlugins/grpcDevicePlugins.ts';

export interface WireDevice {
  ID: string;
  health: 'Healthy' | 'Unhealthy';
  topology?: { nodes: { ID: number }[] };
}
export interface PluginOptions {
  socket: string;
  devices: WireDevice[];
  preStart?: boolean;
  preferred?: string[];
  /** This method is never answered. */
  hangs?: string;
  /** What a container gets with these devices, as the protocol has it. */
  respond?(ids: string[]): object;
}
export interface TestPlugin {
  readonly calls: { method: string; request: Record<string, unknown> }[];
  /** It tells anew which devices there are. */
  list(devices: WireDevice[]): void;
  /** At the node's socket; rejects with what the node says. */
  register(nodeSocket: string, o: { resource: string; version?: string; endpoint?: string }): Promise<void>;
  /** As when its process ends: connections break, the socket stays until somebody removes it. */
  kill(): void;
}

const REGISTER_TIMEOUT_MS = 20_000;

export async function startPlugin(o: PluginOptions): Promise<TestPlugin> {
  const { registration, plugin } = loadDevicePluginProto();
  const calls: TestPlugin['calls'] = [];
  const streams = new Set<ServerWritableStream<object, object>>();
  let { devices } = o;
  const options = { preStartRequired: o.preStart === true, getPreferredAllocationAvailable: o.preferred !== undefined };
  const serve =
    (method: string, answer: (request: Record<string, unknown>) => object) =>
    (call: ServerUnaryCall<Record<string, unknown>, object>, done: sendUnaryData<object>): void => {
      calls.push({ method, request: call.request });
      if (method === o.hangs) return;
      try {
        done(null, answer(call.request));
      } catch (error) {
        done({ code: 13, details: error instanceof Error ? error.message : String(error) });
      }
    };
  const server = new Server();
  server.addService(plugin, {
    GetDevicePluginOptions: serve('GetDevicePluginOptions', () => options),
    ListAndWatch(stream: ServerWritableStream<object, object>) {
      streams.add(stream);
      stream.on('cancelled', () => streams.delete(stream));
      stream.write({ devices });
    },
    GetPreferredAllocation: serve('GetPreferredAllocation', () => ({ containerResponses: [{ deviceIDs: o.preferred ?? [] }] })),
    Allocate: serve('Allocate', (r) => {
      const requests = r.containerRequests as { devicesIds: string[] }[];
      return { containerResponses: requests.map(({ devicesIds }) => o.respond?.(devicesIds) ?? {}) };
    }),
    PreStartContainer: serve('PreStartContainer', () => ({})),
  });
  mkdirSync(dirname(o.socket), { recursive: true });
  rmSync(o.socket, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${o.socket}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error)));
  });
  return {
    calls,
    list(now) {
      devices = now;
      for (const stream of streams) stream.write({ devices });
    },
    async register(nodeSocket, { resource, version = 'v1beta1', endpoint = o.socket.slice(o.socket.lastIndexOf('/') + 1) }) {
      const method = registration.Register;
      if (method === undefined) throw new Error('rpc Register is missing from the .proto files');
      const client = new Client(`unix://${nodeSocket}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
      try {
        await new Promise<void>((resolve, reject) => {
          client.makeUnaryRequest(
            method.path,
            method.requestSerialize,
            method.responseDeserialize,
            { version, endpoint, resourceName: resource, options },
            new Metadata(),
            { deadline: Date.now() + REGISTER_TIMEOUT_MS },
            (error: ServiceError | null) => (error === null ? resolve() : reject(new Error(error.details))),
          );
        });
      } finally {
        client.close();
      }
    },
    kill: () => server.forceShutdown(),
  };
}
