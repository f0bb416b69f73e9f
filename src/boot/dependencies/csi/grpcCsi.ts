/** The real {@link Csi} port: gRPC over unix sockets, a connection for each call. */
import { join } from 'node:path';
import { Client, credentials, Metadata, type ServiceDefinition, type ServiceError, status } from '@grpc/grpc-js';
import type { CsiMethod, CsiResponse, PluginInfo } from '../../../machines/wire/csi.ts';
import type { Clock } from '../../../ports/ports.ts';
import { type Csi, type CsiCall, CsiError } from '../../../ports/sockets/csi.ts';
import { loadProtoFile } from '../../../process/protoFile.ts';
import { type Method, rpcOf } from '../cri/load.ts';
import { protoRoot } from '../cri/protoPath.ts';
import { cancelCall } from '../grpc/cancelCall.ts';
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

/** What grpc-js adds for its own debugging is left out; the driver's words stay as they are. */
function plain(details: string): string {
  return details
    .replace(/^No connection established\. Last error: (?:Error: )?/, 'connection error: ')
    .replace(/\. ?Resolution note:.*$/, '')
    .replace(/^Deadline exceeded after ([\d.]+)s,.*$/, 'context deadline exceeded: no answer within $1 s');
}

export function createGrpcCsi({ clock }: { clock: Clock }): Csi {
  let loaded: CsiProto | undefined;
  const proto = (): CsiProto => {
    loaded ??= loadCsiProto();
    return loaded;
  };
  const send = (endpoint: string, definition: Method, request: object, o: CsiCall): Promise<object> =>
    new Promise((resolve, reject) => {
      const method = definition.path.slice(definition.path.lastIndexOf('/') + 1);
      if (o.signal.aborted) return reject(new CsiError({ method, code: status.CANCELLED, details: 'given up before it was sent' }));
      const client = new Client(unixTarget(endpoint), credentials.createInsecure(), CHANNEL);
      const abort = () => cancelCall(call);
      const call = client.makeUnaryRequest(
        definition.path,
        definition.requestSerialize,
        definition.responseDeserialize,
        request,
        new Metadata(),
        { deadline: clock.wallMs() + o.timeoutMs },
        (error: ServiceError | null, value?: object) => {
          o.signal.removeEventListener('abort', abort);
          client.close();
          if (error === null) resolve(value ?? {});
          else reject(new CsiError({ method, code: error.code ?? status.UNKNOWN, details: plain(error.details || error.message) }));
        },
      );
      o.signal.addEventListener('abort', abort, { once: true });
    });
  // The loader's output is the response's shape by contract (protoFile.ts and machines/wire/csi.ts).
  return {
    getInfo: async (socket, call) => (await send(socket, rpcOf(proto().registration, 'GetInfo'), {}, call)) as PluginInfo,
    notify: async (socket, result, call) =>
      void (await send(socket, rpcOf(proto().registration, 'NotifyRegistrationStatus'), result, call)),
    call: async <M extends CsiMethod>(endpoint: string, method: M, request: object, call: CsiCall) =>
      (await send(endpoint, rpcOf(proto().node, method), request, call)) as CsiResponse<M>,
  };
}
