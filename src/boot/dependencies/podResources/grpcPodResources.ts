/** The real {@link PodResourcesPort}: gRPC over a unix socket. */
import { join } from 'node:path';
import { Server, type ServerUnaryCall, type sendUnaryData, status, type UntypedServiceImplementation } from '@grpc/grpc-js';
import { messageOf } from '../../../machines/text/errors.ts';
import type { PodResourcesAnswers, PodResourcesPort } from '../../../ports/sockets/podResources.ts';
import { loadProtoFile } from '../../../process/protoFile.ts';
import { protoRoot } from '../cri/protoPath.ts';
import { listenUnix } from '../grpc/unixGrpc.ts';

/** A request has two short names at most. */
const REQUEST_BYTES_MAX = 64 * 1024;

/** Serves clients in tests too. */
export function loadPodResourcesProto(root: string = protoRoot()) {
  const service = (file: string, api: string) => loadProtoFile(join(root, 'podresources', file)).service(`${api}.PodResourcesLister`);
  return { v1: service('api.proto', 'v1'), v1alpha1: service('v1alpha1.proto', 'v1alpha1') };
}

export function createGrpcPodResources(): PodResourcesPort {
  return {
    async serve(socketPath, answers) {
      const server = new Server({ 'grpc.max_receive_message_length': REQUEST_BYTES_MAX });
      const proto = loadPodResourcesProto();
      server.addService(proto.v1, {
        List: unary(answers, () => ({ podResources: answers.list('v1') })),
        GetAllocatableResources: unary(answers, () => answers.allocatable()),
        Get: unary(answers, ({ podName: name, podNamespace: namespace }: { podName: string; podNamespace: string }) => ({
          podResources: answers.get({ namespace, name }),
        })),
      });
      server.addService(proto.v1alpha1, { List: unary(answers, () => ({ podResources: answers.list('v1alpha1') })) });
      await listenUnix(server, socketPath);
      return { address: socketPath, close: async () => server.forceShutdown() };
    },
  };
}

function unary<Request>(answers: PodResourcesAnswers, answer: (request: Request) => object): UntypedServiceImplementation[string] {
  return (call: ServerUnaryCall<Request, object>, done: sendUnaryData<object>) => {
    if (!answers.admit()) {
      done({ code: status.RESOURCE_EXHAUSTED, details: 'rejected by rate limit' });
      return;
    }
    let value: object;
    try {
      value = answer(call.request);
    } catch (error) {
      done({ code: status.UNKNOWN, details: messageOf(error) });
      return;
    }
    done(null, value);
  };
}
