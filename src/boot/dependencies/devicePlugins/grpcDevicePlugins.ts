/** The real {@link DevicePlugins} port: gRPC over unix sockets, both ways. */

import { join } from 'node:path';
import { loadProtoFile } from '@actorlet/process/src/protoFile.ts';
import { Client, credentials, Server, type ServerUnaryCall, type ServiceDefinition, type sendUnaryData, status } from '@grpc/grpc-js';
import type { ContainerResponse, PluginDevice, PluginOptions, RegisterRequest } from '../../../machines/allocation/devices/types.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import type { Clock } from '../../../ports/ports.ts';
import type { DevicePlugins, PluginCall, PluginConnection } from '../../../ports/sockets/devicePlugins.ts';
import { rpcOf } from '../cri/load.ts';
import { protoRoot } from '../cri/protoPath.ts';
import { callPlugin, followPlugin, pluginError } from '../grpc/pluginCall.ts';
import { listenUnix, unixChannel, unixTarget } from '../grpc/unixGrpc.ts';

/** As the kubelet: room for tens of thousands of devices. Four times as many took the thread 0.2 s to read. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
const CHANNEL = unixChannel(MESSAGE_BYTES_MAX);
/** What plugins that are well say. */
const HEALTHY = 'Healthy';

/** As the loader gives them (protoFile.ts, proto/deviceplugin). */
interface WireDevice {
  ID: string;
  health: string;
  topology: { nodes: { ID: string }[] } | null;
}
interface WireResponse extends Omit<ContainerResponse, 'cdiDevices'> {
  cdiDevices: { name: string }[];
}

export interface DevicePluginProto {
  registration: ServiceDefinition;
  plugin: ServiceDefinition;
}
/** Serves clients and servers, in tests both sides of each. */
export function loadDevicePluginProto(root: string = protoRoot()): DevicePluginProto {
  const loaded = loadProtoFile(join(root, 'deviceplugin/api.proto'));
  return { registration: loaded.service('v1beta1.Registration'), plugin: loaded.service('v1beta1.DevicePlugin') };
}

export function createGrpcDevicePlugins({ clock }: { clock: Clock }): DevicePlugins {
  let loaded: DevicePluginProto | undefined;
  const proto = (): DevicePluginProto => {
    loaded ??= loadDevicePluginProto();
    return loaded;
  };
  return {
    async serve(socketPath, register) {
      const server = new Server({ 'grpc.max_receive_message_length': MESSAGE_BYTES_MAX });
      server.addService(proto().registration, {
        Register: (call: ServerUnaryCall<RegisterRequest, object>, done: sendUnaryData<object>) => {
          register(call.request).then(
            () => done(null, {}),
            (error: unknown) => done({ code: status.UNKNOWN, details: messageOf(error) }),
          );
        },
      });
      await listenUnix(server, socketPath);
      return { close: () => server.forceShutdown() };
    },
    async connect(endpoint, { timeoutMs, signal }) {
      signal.throwIfAborted();
      const client = new Client(unixTarget(endpoint), credentials.createInsecure(), CHANNEL);
      const abort = () => client.close();
      signal.addEventListener('abort', abort, { once: true });
      try {
        await new Promise<void>((resolve, reject) => {
          client.waitForReady(clock.wallMs() + timeoutMs, (error) => {
            if (error === undefined) resolve();
            else reject(new Error(`failed to dial device plugin at ${endpoint}: nobody answered within ${timeoutMs / 1000} s`));
          });
        });
        signal.throwIfAborted();
        return connectionOf(client, proto().plugin, clock);
      } catch (error) {
        client.close();
        throw error;
      } finally {
        signal.removeEventListener('abort', abort);
      }
    },
  };
}

function connectionOf(client: Client, service: ServiceDefinition, clock: Clock): PluginConnection {
  const send = (rpc: string, request: object, call: PluginCall): Promise<object> =>
    callPlugin({ client, clock }, rpcOf(service, rpc), { request, ...call });
  // The loader's output is the response's shape by contract (protoFile.ts and proto/deviceplugin).
  return {
    options: async (call) => (await send('GetDevicePluginOptions', {}, call)) as PluginOptions,
    listAndWatch: (on) =>
      followPlugin<{ devices: WireDevice[] }>(client, rpcOf(service, 'ListAndWatch'), {
        data: ({ devices }) => on.devices(devices.map(deviceOf)),
        end: (error) => on.end(error === null ? 'it ended its list of devices' : pluginError('ListAndWatch', error).message),
      }),
    async preferred({ available, mustInclude, size }, call) {
      const request = { availableDeviceIDs: available, mustIncludeDeviceIDs: mustInclude, allocationSize: size };
      const answer = await send('GetPreferredAllocation', { containerRequests: [request] }, call);
      return (answer as { containerResponses: { deviceIDs: string[] }[] }).containerResponses[0]?.deviceIDs ?? [];
    },
    async allocate(ids, call) {
      const answer = (await send('Allocate', { containerRequests: [{ devicesIds: ids }] }, call)) as { containerResponses: WireResponse[] };
      const [response] = answer.containerResponses;
      if (response === undefined) throw new Error('no containers return in allocation response');
      return { ...response, cdiDevices: response.cdiDevices.map((d) => d.name) };
    },
    preStart: async (ids, call) => void (await send('PreStartContainer', { devicesIds: ids }, call)),
    close: () => client.close(),
  };
}

function deviceOf({ ID, health, topology }: WireDevice): PluginDevice {
  return { id: ID, healthy: health === HEALTHY, numaNodes: (topology?.nodes ?? []).map((n) => Number(n.ID)) };
}
