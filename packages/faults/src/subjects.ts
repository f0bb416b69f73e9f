/** What a call or a file operation is about, so that selectors can be held against it. Pure. */
import { isKubeObject, type KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import type { ApiVerb, FsOp } from './types.ts';

/** Group of each operation of the host's file system port; `read` is one of an open file. */
export const FS_OPS = {
  openRead: 'read',
  read: 'read',
  readFile: 'read',
  readTail: 'read',
  readdir: 'read',
  stat: 'read',
  lstat: 'read',
  readlink: 'read',
  statfs: 'read',
  writeFile: 'write',
  rename: 'rename',
  fsyncDir: 'sync',
  mkdirp: 'mkdir',
  symlink: 'symlink',
  chmod: 'chmod',
  unlink: 'remove',
  rmdir: 'remove',
} as const satisfies Record<string, FsOp>;
export type FsCall = keyof typeof FS_OPS;

/** The pod and container of a CRI call; a part nobody can tell is absent. */
export interface CriSubject {
  namespace?: string;
  /** As the node knows it: a static pod's name ends in the node's name. */
  pod?: string;
  container?: string;
}
/** What is known of ids. */
export interface CriIds {
  sandbox(id: string): { namespace: string; pod: string } | undefined;
  container(id: string): CriSubject | undefined;
}

/** Reads the request: its own metadata where it has them, else the ids in it. */
export function criSubject(request: unknown, ids: CriIds): CriSubject {
  // The shape follows from the method; only fields that mean the same in every request are read.
  const req = request as {
    containerId?: string;
    podSandboxId?: string;
    config?: { metadata?: { name?: string; namespace?: string } };
    sandboxConfig?: { metadata?: { name?: string; namespace?: string } };
  };
  if (req.containerId !== undefined) return ids.container(req.containerId) ?? {};
  const pod = req.sandboxConfig?.metadata;
  if (pod?.name !== undefined) {
    // With a sandbox's configuration beside it, the other one is a container's.
    const container = req.config?.metadata?.name;
    return { ...named(pod), ...(container === undefined ? {} : { container }) };
  }
  if (req.podSandboxId !== undefined) return ids.sandbox(req.podSandboxId) ?? {};
  return named(req.config?.metadata);
}

function named(metadata: { name?: string; namespace?: string } | undefined): CriSubject {
  const { name, namespace } = metadata ?? {};
  return { ...(name === undefined ? {} : { pod: name }), ...(namespace === undefined ? {} : { namespace }) };
}

/** What a request to the API server is about. */
export interface ApiSubject {
  verb: ApiVerb;
  /** In plural, with its sub-resource: `pods`, `pods/status`. '' for paths that name none, such as `/version`. */
  resource: string;
  namespace?: string;
  /** Name of the pod, where the resource is one. */
  pod?: string;
}

const VERBS: Readonly<Record<Exclude<KubeRequest['verb'], 'GET'>, ApiVerb>> = {
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
};

/** `/api/v1/...` and `/apis/GROUP/VERSION/...`, then `namespaces/NS` where there is one, resource, name, sub-resource. */
export function apiSubject(request: Pick<KubeRequest, 'path' | 'body'> & { verb: KubeRequest['verb'] | 'watch' }): ApiSubject {
  const parts = request.path
    .split('/')
    .filter((p) => p !== '')
    .map(decodeURIComponent);
  const rest = parts[0] === 'api' ? parts.slice(2) : parts[0] === 'apis' ? parts.slice(3) : [];
  const scoped = rest[0] === 'namespaces' && rest.length > 2;
  const [kind = '', name, sub] = scoped ? rest.slice(2) : rest;
  const resource = sub === undefined ? kind : `${kind}/${sub}`;
  const verb = request.verb === 'watch' ? 'watch' : request.verb !== 'GET' ? VERBS[request.verb] : name === undefined ? 'list' : 'get';
  const subject: ApiSubject = { verb, resource };
  const namespace = scoped ? rest[1] : undefined;
  if (namespace !== undefined) subject.namespace = namespace;
  const pod = name ?? (isKubeObject(request.body) ? request.body.metadata.name : undefined);
  if (kind === 'pods' && pod !== undefined) subject.pod = pod;
  return subject;
}
