/** A small CSI driver: a gRPC server on a socket that registers itself, stages and publishes with what it is given, and can misbehave. */
import { existsSync, mkdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { loadCsiProto } from '../../src/boot/dependencies/csi/grpcCsi.ts';
import type { CsiMethod, CsiRequest, PublishRequest } from '../../src/machines/wire/csi.ts';

type ExpandRequest = CsiRequest<'NodeExpandVolume'>;
export interface DriverOptions {
  name: string;
  socket: string;
  nodeId?: string;
  /** That a node can take; default 11. */
  volumesMax?: number;
  versions?: string[];
  capabilities?: string[];
  /** Makes the content of a volume stand at a path that the driver has just made; default: nothing, an empty directory. */
  publish?(request: PublishRequest): void;
  unpublish?(path: string): void;
  /** Makes a volume larger. */
  expand?(request: ExpandRequest): void;
  /** Answer of NodeGetVolumeStats. */
  stats?(): object;
  /** Answered instead of acting. */
  fault?(method: string): { code: number; details: string } | 'silence' | undefined;
}
export interface TestDriver {
  readonly calls: { method: CsiMethod | 'GetInfo' | 'NotifyRegistrationStatus'; request: Record<string, unknown> }[];
  /** What it was told of its registration: '' = registered. */
  readonly told: string[];
  /** Targets at which something is published. */
  readonly published: Set<string>;
  readonly staged: Set<string>;
  stop(): Promise<void>;
}

export async function startDriver(o: DriverOptions): Promise<TestDriver> {
  const { registration, node } = loadCsiProto();
  const calls: TestDriver['calls'] = [];
  const told: string[] = [];
  const published = new Set<string>();
  const staged = new Set<string>();
  // The reference names a path for block devices also where nothing is staged.
  const stages = o.capabilities?.includes('STAGE_UNSTAGE_VOLUME') === true;
  type Call = ServerUnaryCall<Record<string, unknown>, object>;
  const serve =
    (method: TestDriver['calls'][number]['method'], act: (request: Record<string, unknown>) => object) =>
    (call: Call, done: sendUnaryData<object>): void => {
      calls.push({ method, request: call.request });
      const fault = o.fault?.(method);
      if (fault === 'silence') return;
      if (fault !== undefined) {
        done(fault);
        return;
      }
      try {
        done(null, act(call.request));
      } catch (error) {
        done({ code: 13, details: error instanceof Error ? error.message : String(error) });
      }
    };
  const server = new Server();
  server.addService(registration, {
    GetInfo: serve('GetInfo', () => ({ type: 'CSIPlugin', name: o.name, endpoint: o.socket, supportedVersions: o.versions ?? ['1.0.0'] })),
    NotifyRegistrationStatus: serve('NotifyRegistrationStatus', (r) => {
      told.push(r.pluginRegistered === true ? '' : String(r.error));
      return {};
    }),
  });
  server.addService(node, {
    NodeGetInfo: serve('NodeGetInfo', () => ({
      nodeId: o.nodeId ?? 'test-node',
      maxVolumesPerNode: String(o.volumesMax ?? 11),
      accessibleTopology: { segments: { 'topology.example.com/rack': 'r1' } },
    })),
    NodeGetCapabilities: serve('NodeGetCapabilities', () => ({ capabilities: (o.capabilities ?? []).map((type) => ({ rpc: { type } })) })),
    NodeGetVolumeStats: serve('NodeGetVolumeStats', () => o.stats?.() ?? {}),
    NodeExpandVolume: serve('NodeExpandVolume', (r) => {
      const request = r as unknown as ExpandRequest;
      if (!published.has(request.volumePath)) throw new Error(`nothing is published at ${request.volumePath}`);
      o.expand?.(request);
      return { capacityBytes: request.capacityRange.requiredBytes };
    }),
    NodeStageVolume: serve('NodeStageVolume', (r) => {
      staged.add(String(r.stagingTargetPath));
      return {};
    }),
    NodeUnstageVolume: serve('NodeUnstageVolume', (r) => {
      staged.delete(String(r.stagingTargetPath));
      return {};
    }),
    NodePublishVolume: serve('NodePublishVolume', (r) => {
      const request = r as unknown as PublishRequest;
      if (published.has(request.targetPath)) return {};
      if (stages && request.stagingTargetPath !== '' && !staged.has(request.stagingTargetPath)) throw new Error('the volume is not staged');
      // Fails where somebody else made it: that is the driver's to do.
      if (request.volumeCapability.block === undefined || request.volumeCapability.block === null) mkdirSync(request.targetPath);
      o.publish?.(request);
      published.add(request.targetPath);
      return {};
    }),
    NodeUnpublishVolume: serve('NodeUnpublishVolume', (r) => {
      const path = String(r.targetPath);
      if (!published.delete(path)) return {};
      o.unpublish?.(path);
      if (existsSync(path)) rmdirSync(path);
      return {};
    }),
  });
  mkdirSync(dirname(o.socket), { recursive: true });
  rmSync(o.socket, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix://${o.socket}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error)));
  });
  return {
    calls,
    told,
    published,
    staged,
    async stop() {
      server.forceShutdown();
      rmSync(o.socket, { force: true });
    },
  };
}
