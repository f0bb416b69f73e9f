/** Loads our .proto files once per client, in the JSON shape that `machines/cri.ts` describes. */
import { join } from 'node:path';
import {
  loadSync,
  type MessageTypeDefinition,
  type MethodDefinition,
  type PackageDefinition,
  type ServiceDefinition,
} from '@grpc/proto-loader';
import { protoRoot } from './protoPath.ts';

/** The shape contract of `machines/cri.ts`: change both together. */
export const LOAD_OPTIONS = {
  keepCase: false,
  longs: String,
  enums: String,
  defaults: true,
  arrays: true,
  objects: true,
} as const;

export type Method = MethodDefinition<object, object>;

export interface CriProto {
  runtime: ServiceDefinition;
  image: ServiceDefinition;
  method(service: 'runtime' | 'image', rpc: string): Method;
  message(name: string): MessageTypeDefinition<object, object>;
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

/** @throws Error where the .proto files have no such service */
export function serviceOf(pkg: PackageDefinition, name: string): ServiceDefinition {
  const found = pkg[name];
  if (found === undefined || 'format' in found) throw new Error(`service ${name} is missing from the .proto files`);
  return found as ServiceDefinition;
}
/** @throws Error where the service has no such rpc */
export function rpcOf(svc: ServiceDefinition, rpc: string): Method {
  const found = svc[rpc];
  if (found === undefined) throw new Error(`rpc ${rpc} is missing from the .proto files`);
  return found;
}
function messageOf(pkg: PackageDefinition, name: string): MessageTypeDefinition<object, object> | undefined {
  const found = pkg[name];
  if (found === undefined || !('format' in found) || !('deserialize' in found)) return undefined;
  return found as MessageTypeDefinition<object, object>;
}

/** `runtime.v1`, both services. Serves clients and, in the embedded runtime, servers. */
export function loadCriProto(root: string = protoRoot()): CriProto {
  const pkg = loadSync(join(root, 'runtime/v1/api.proto'), LOAD_OPTIONS);
  const runtime = serviceOf(pkg, 'runtime.v1.RuntimeService');
  const image = serviceOf(pkg, 'runtime.v1.ImageService');
  return {
    runtime,
    image,
    method: (which, rpc) => rpcOf(which === 'runtime' ? runtime : image, rpc),
    message: (name) => {
      const found = messageOf(pkg, `runtime.v1.${name}`);
      if (found === undefined) throw new Error(`message ${name} is missing from the .proto files`);
      return found;
    },
  };
}

export function loadEventsProto(root: string = protoRoot()): EventsProto {
  const prefix = 'containerd.services.events.v1';
  const pkg = loadSync(join(root, 'containerd/events.proto'), LOAD_OPTIONS);
  return {
    subscribe: rpcOf(serviceOf(pkg, `${prefix}.Events`), 'Subscribe'),
    decode: (shortName, bytes) => messageOf(pkg, `${prefix}.${shortName}`)?.deserialize(bytes),
  };
}

export function loadTasksProto(root: string = protoRoot()): TasksProto {
  const tasks = serviceOf(loadSync(join(root, 'containerd/tasks.proto'), LOAD_OPTIONS), 'containerd.services.tasks.v1.Tasks');
  return { kill: rpcOf(tasks, 'Kill'), wait: rpcOf(tasks, 'Wait'), delete: rpcOf(tasks, 'Delete') };
}
