/** The real {@link Dra} port: gRPC over unix sockets, one connection for each driver. */
import { join } from 'node:path';
import { loadProtoFile } from '@actorlet/process/src/protoFile.ts';
import { Client, connectivityState, credentials, type ServiceDefinition, status } from '@grpc/grpc-js';
import type { DraService } from '../../../machines/allocation/claims/messages.ts';
import type { DeviceHealth, Health } from '../../../machines/allocation/claims/types.ts';
import { headBytes } from '../../../machines/pod/runtime/terminationMessage.ts';
import type { Clock } from '../../../ports/ports.ts';
import type { Dra, DraCall, DraClaim, DraConnection, Prepared, Unprepared } from '../../../ports/sockets/dra.ts';
import { type Method, rpcOf } from '../cri/load.ts';
import { protoRoot } from '../cri/protoPath.ts';
import { callPlugin, followPlugin } from '../grpc/pluginCall.ts';
import { unixChannel, unixTarget } from '../grpc/unixGrpc.ts';

/** gRPC's own default, which the reference leaves: a driver that answers with more fails there too. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
const CHANNEL = {
  ...unixChannel(MESSAGE_BYTES_MAX),
  // A driver that starts again is met soon; the reference's client begins with a second, too.
  'grpc.initial_reconnect_backoff_ms': 1_000,
  'grpc.max_reconnect_backoff_ms': 5_000,
};
/** Default where a driver names none, from the reference. */
const HEALTH_TIMEOUT_MS = 30_000;
/** The API server counts bytes, and refuses the status of a pod with a longer one. */
const HEALTH_MESSAGE_BYTES_MAX = 1024;
const HEALTH: Readonly<Record<string, Health>> = { HEALTHY: 'Healthy', UNHEALTHY: 'Unhealthy' };

interface DraProto {
  plugin: ServiceDefinition;
  health: ServiceDefinition;
}
/** Serves clients and, in tests, servers. Both versions of the interface have the same messages. */
export function loadDraProto(service: DraService = 'v1.DRAPlugin', root: string = protoRoot()): DraProto {
  const v1 = loadProtoFile(join(root, 'dra/v1.proto')).service('k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin');
  const at = `/k8s.io.kubelet.pkg.apis.dra.${service}/`;
  const plugin = Object.fromEntries(
    Object.entries(v1).map(([name, method]) => [name, { ...method, path: method.path.replace(/^.*\//, at) }]),
  );
  return { plugin, health: loadProtoFile(join(root, 'dra/health.proto')).service('v1alpha1.DRAResourceHealth') };
}

/** As the loader gives them (protoFile.ts, proto/dra). */
interface WireDevice {
  requestNames: string[];
  poolName: string;
  deviceName: string;
  cdiDeviceIds: string[];
  shareId?: string;
}
interface WireHealth {
  device: { poolName: string; deviceName: string } | null;
  health: string;
  healthCheckTimeoutSeconds: string;
  message: string;
}

export function createGrpcDra({ clock }: { clock: Clock }): Dra {
  return {
    connect(endpoint, { service, changed }) {
      const client = new Client(unixTarget(endpoint), credentials.createInsecure(), CHANNEL);
      const unfollow = follow(client, changed);
      const proto = loadDraProto(service);
      const send = (rpc: string, claims: readonly DraClaim[], call: DraCall) =>
        callPlugin({ client, clock }, rpcOf(proto.plugin, rpc), {
          request: { claims: claims.map(({ namespace, uid, name }) => ({ namespace, uid, name })) },
          ...call,
        });
      return {
        async prepare(claims, call) {
          const { claims: answers } = (await send('NodePrepareResources', claims, call)) as {
            claims: Record<string, { devices: WireDevice[]; error: string }>;
          };
          const read = ([uid, { devices, error }]: (typeof entries)[number]) => [uid, { devices: devices.map(deviceOf), error }] as const;
          const entries = Object.entries(answers);
          return Object.fromEntries(entries.map(read)) satisfies Prepared;
        },
        async unprepare(claims, call) {
          return ((await send('NodeUnprepareResources', claims, call)) as { claims: Unprepared }).claims;
        },
        watchHealth: (on) => watchHealth(client, rpcOf(proto.health, 'NodeWatchResources'), on),
        close() {
          unfollow();
          client.close();
        },
      };
    },
  };
}

/** Tells whether the connection is up, until the function it gives is called. An idle one is dialled again. */
function follow(client: Client, changed: (connected: boolean) => void): () => void {
  let over = false;
  const channel = client.getChannel();
  const look = (): void => {
    if (over) return;
    const state = channel.getConnectivityState(true);
    changed(state === connectivityState.READY);
    channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, look);
  };
  look();
  return () => {
    over = true;
  };
}

function watchHealth(client: Client, method: Method, on: Parameters<DraConnection['watchHealth']>[0]): () => void {
  return followPlugin<{ devices: WireHealth[] }>(client, method, {
    data: ({ devices }) => on.devices(devices.map(healthOf)),
    end: (error) =>
      error === null ? on.end('the driver ended it', false) : on.end(error.details || error.message, error.code === status.UNIMPLEMENTED),
  });
}

function deviceOf({ requestNames, poolName, deviceName, cdiDeviceIds, shareId }: WireDevice) {
  return { pool: poolName, device: deviceName, shareId: shareId ?? null, requests: requestNames, cdiIds: cdiDeviceIds };
}
function healthOf({ device, health, healthCheckTimeoutSeconds, message }: WireHealth): DeviceHealth {
  const seconds = Number(healthCheckTimeoutSeconds);
  return {
    ...{ pool: device?.poolName ?? '', device: device?.deviceName ?? '' },
    health: HEALTH[health] ?? 'Unknown',
    message: headBytes(message, HEALTH_MESSAGE_BYTES_MAX) === message ? message : `${headBytes(message, HEALTH_MESSAGE_BYTES_MAX - 3)}...`,
    timeoutMs: seconds > 0 ? seconds * 1000 : HEALTH_TIMEOUT_MS,
  };
}
