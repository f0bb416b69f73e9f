/** A small driver of dynamic resources: a gRPC server on a socket that registers itself, prepares claims, and can misbehave. */
import { mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Server, ServerCredentials, type ServerUnaryCall, type ServerWritableStream, type sendUnaryData } from '@grpc/grpc-js';
import { loadCsiProto } from '../../src/boot/dependencies/csi/grpcCsi.ts';
import { loadDraProto } from '../../src/boot/dependencies/dra/grpcDra.ts';
import type { DraService } from '../../src/machines/allocation/claims/messages.ts';

export interface WireClaim {
  namespace: string;
  name: string;
  uid: string;
}
export interface DraDriverOptions {
  name: string;
  socket: string;
  service?: DraService;
  /** What a claim gets, as the protocol has it. */
  prepare(claim: WireClaim): object[];
  unprepare?(claim: WireClaim): void;
  /** What is wrong with a claim that it does not prepare. */
  refuse?(claim: WireClaim): string | undefined;
  /** Before it prepares them. */
  before?(claims: readonly WireClaim[]): Promise<void>;
  /** Answered in place of the true answer. */
  answer?(method: string): object | 'silence' | undefined;
}
export interface TestDraDriver {
  readonly calls: { method: string; claims: WireClaim[] }[];
  /** What it was told of its registration: '' = registered. */
  readonly told: string[];
  readonly prepared: Set<string>;
  /** How its devices are. */
  health(devices: object[]): void;
  stop(): void;
}

export async function startDraDriver(o: DraDriverOptions): Promise<TestDraDriver> {
  const { name, socket, service = 'v1.DRAPlugin' } = o;
  const { plugin, health } = loadDraProto(service);
  const calls: TestDraDriver['calls'] = [];
  const told: string[] = [];
  const prepared = new Set<string>();
  const streams = new Set<ServerWritableStream<object, object>>();
  let devices: object[] = [];
  type Call = ServerUnaryCall<{ claims: WireClaim[] }, object>;
  const serve =
    (method: string, act: (claim: WireClaim) => object) =>
    ({ request: { claims } }: Call, done: sendUnaryData<object>): void => {
      calls.push({ method, claims });
      void (o.before?.(claims) ?? Promise.resolve()).then(() => {
        const answer = o.answer?.(method) ?? { claims: Object.fromEntries(claims.map((claim) => [claim.uid, act(claim)])) };
        if (answer !== 'silence') done(null, answer);
      });
    };
  const server = new Server();
  server.addService(loadCsiProto().registration, {
    GetInfo: (_: unknown, done: sendUnaryData<object>) =>
      done(null, { type: 'DRAPlugin', name, endpoint: socket, supportedVersions: [service, 'v1alpha1.DRAResourceHealth'] }),
    NotifyRegistrationStatus: ({ request: r }: ServerUnaryCall<Record<string, unknown>, object>, done: sendUnaryData<object>) => {
      told.push(r.pluginRegistered === true ? '' : String(r.error));
      done(null, {});
    },
  });
  server.addService(plugin, {
    NodePrepareResources: serve('NodePrepareResources', (claim) => {
      const error = o.refuse?.(claim);
      if (error !== undefined) return { error };
      prepared.add(claim.uid);
      return { devices: o.prepare(claim) };
    }),
    NodeUnprepareResources: serve('NodeUnprepareResources', (claim) => {
      if (prepared.delete(claim.uid)) o.unprepare?.(claim);
      return {};
    }),
  });
  server.addService(health, {
    NodeWatchResources(stream: ServerWritableStream<object, object>) {
      streams.add(stream);
      stream.on('cancelled', () => streams.delete(stream));
      stream.write({ devices });
    },
  });
  mkdirSync(dirname(socket), { recursive: true });
  rmSync(socket, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${socket}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error)));
  });
  return {
    ...{ calls, told, prepared },
    health(now) {
      devices = now;
      for (const stream of streams) stream.write({ devices });
    },
    stop() {
      server.forceShutdown();
      rmSync(socket, { force: true });
    },
  };
}
