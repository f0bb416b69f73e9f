/** The real {@link PodResourcesPort}: gRPC over a unix socket. */
import { join } from 'node:path';
import { loadProtoFile } from '@actorlet/process/src/protoFile.ts';
import { Server } from '@grpc/grpc-js';
import type { PodResourcesPort } from '../../../ports/sockets/podResources.ts';
import { protoRoot } from '../cri/protoPath.ts';
import { answering } from '../grpc/answering.ts';
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
      const admit = () => answers.admit();
      server.addService(proto.v1, {
        List: answering(admit, () => ({ podResources: answers.list('v1') })),
        GetAllocatableResources: answering(admit, () => answers.allocatable()),
        Get: answering(admit, ({ podName: name, podNamespace: namespace }: { podName: string; podNamespace: string }) => ({
          podResources: answers.get({ namespace, name }),
        })),
      });
      server.addService(proto.v1alpha1, { List: answering(admit, () => ({ podResources: answers.list('v1alpha1') })) });
      await listenUnix(server, socketPath);
      return { address: socketPath, close: async () => server.forceShutdown() };
    },
  };
}
