/** Loads our .proto files once per client, in the JSON shape that `machines/wire/cri.ts` describes. */
import { join } from 'node:path';
import { loadProtoFile, type Message, type Method } from '@actorlet/process/src/protoFile.ts';
import type { ServiceDefinition } from '@grpc/grpc-js';
import { protoRoot } from './protoPath.ts';

export type { Method } from '@actorlet/process/src/protoFile.ts';

export interface CriProto {
  runtime: ServiceDefinition;
  image: ServiceDefinition;
  method(service: 'runtime' | 'image', rpc: string): Method;
  message(name: string): Message;
}
export interface EventsProto {
  subscribe: Method;
  /** Decodes a payload by its short name (`TaskExit`); undefined for one we do not read. */
  decode(shortName: string, bytes: Buffer): object | undefined;
}

export interface TasksProto {
  kill: Method;
  wait: Method;
  delete: Method;
}
/** The namespace of containerd in which its CRI service keeps everything. */
export const CRI_NAMESPACE = 'k8s.io';

/** @throws Error where the service has no such rpc */
export function rpcOf(svc: ServiceDefinition, rpc: string): Method {
  const found = svc[rpc];
  if (found === undefined) throw new Error(`rpc ${rpc} is missing from the .proto files`);
  return found;
}

/** `runtime.v1`, both services. Serves clients and, in the embedded runtime, servers. */
export function loadCriProto(root: string = protoRoot()): CriProto {
  const file = loadProtoFile(join(root, 'runtime/v1/api.proto'));
  const runtime = file.service('runtime.v1.RuntimeService');
  const image = file.service('runtime.v1.ImageService');
  return {
    runtime,
    image,
    method: (which, rpc) => rpcOf(which === 'runtime' ? runtime : image, rpc),
    message: (name) => {
      const found = file.message(`runtime.v1.${name}`);
      if (found === undefined) throw new Error(`message ${name} is missing from the .proto files`);
      return found;
    },
  };
}

export function loadEventsProto(root: string = protoRoot()): EventsProto {
  const prefix = 'containerd.services.events.v1';
  const file = loadProtoFile(join(root, 'containerd/events.proto'));
  return {
    subscribe: rpcOf(file.service(`${prefix}.Events`), 'Subscribe'),
    decode: (shortName, bytes) => file.message(`${prefix}.${shortName}`)?.deserialize(bytes),
  };
}

export function loadTasksProto(root: string = protoRoot()): TasksProto {
  const tasks = loadProtoFile(join(root, 'containerd/tasks.proto')).service('containerd.services.tasks.v1.Tasks');
  return { kill: rpcOf(tasks, 'Kill'), wait: rpcOf(tasks, 'Wait'), delete: rpcOf(tasks, 'Delete') };
}
