/** The real {@link Csi} port: gRPC over unix sockets, a connection for each call. */
import { join } from 'node:path';
import { loadProtoFile } from '@actorlet/process/src/protoFile.ts';
import { Client, credentials, type ServiceDefinition } from '@grpc/grpc-js';
import type { CsiMethod, CsiResponse, PluginInfo } from '../../../machines/wire/csi.ts';
import type { Clock } from '../../../ports/ports.ts';
import type { Csi, CsiCall } from '../../../ports/sockets/csi.ts';
import { type Method, rpcOf } from '../cri/load.ts';
import { protoRoot } from '../cri/protoPath.ts';
import { callPlugin } from '../grpc/pluginCall.ts';
import { unixChannel, unixTarget } from '../grpc/unixGrpc.ts';

/** gRPC's own default: no answer of a driver comes near it. */
const MESSAGE_BYTES_MAX = 4 * 1024 * 1024;
const CHANNEL = unixChannel(MESSAGE_BYTES_MAX);

export interface CsiProto {
  registration: ServiceDefinition;
  node: ServiceDefinition;
}
/** Serves clients and, in tests, servers. */
export function loadCsiProto(root: string = protoRoot()): CsiProto {
  return {
    registration: loadProtoFile(join(root, 'pluginregistration/api.proto')).service('pluginregistration.Registration'),
    node: loadProtoFile(join(root, 'csi/csi.proto')).service('csi.v1.Node'),
  };
}

export function createGrpcCsi({ clock }: { clock: Clock }): Csi {
  let loaded: CsiProto | undefined;
  const proto = (): CsiProto => {
    loaded ??= loadCsiProto();
    return loaded;
  };
  const send = async (endpoint: string, definition: Method, request: object, call: CsiCall): Promise<object> => {
    const client = new Client(unixTarget(endpoint), credentials.createInsecure(), CHANNEL);
    try {
      return await callPlugin({ client, clock }, definition, { request, ...call });
    } finally {
      client.close();
    }
  };
  // The loader's output is the response's shape by contract (protoFile.ts and machines/wire/csi.ts).
  return {
    getInfo: async (socket, call) => (await send(socket, rpcOf(proto().registration, 'GetInfo'), {}, call)) as PluginInfo,
    notify: async (socket, result, call) =>
      void (await send(socket, rpcOf(proto().registration, 'NotifyRegistrationStatus'), result, call)),
    call: async <M extends CsiMethod>(endpoint: string, method: M, request: object, call: CsiCall) =>
      (await send(endpoint, rpcOf(proto().node, method), request, call)) as CsiResponse<M>,
  };
}
