/** Asks the pod resources API over its real socket, as a monitoring agent does. */
import { Client, credentials } from '@grpc/grpc-js';
import { loadPodResourcesProto } from '../../src/boot/dependencies/podResources/grpcPodResources.ts';

export async function askPodResources(socket: string, rpc: string, request: object = {}, api: 'v1' | 'v1alpha1' = 'v1'): Promise<object> {
  const method = loadPodResourcesProto()[api][rpc];
  if (method === undefined) throw new Error(`no rpc ${rpc} in ${api}`);
  const client = new Client(`unix://${socket}`, credentials.createInsecure());
  try {
    return await new Promise((resolve, reject) => {
      const { path, requestSerialize, responseDeserialize } = method;
      client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, { deadline: Date.now() + 10_000 }, (error, value) =>
        error === null ? resolve(value ?? {}) : reject(error),
      );
    });
  } finally {
    client.close();
  }
}
