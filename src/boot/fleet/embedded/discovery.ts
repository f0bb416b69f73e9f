/** What the embedded API server says of itself, so that kubectl knows its resources; and tables of nodes and pods. */
import type { KubeObject } from '../../../machines/kube/request.ts';
import { isRecord } from '../../../machines/shape/conform.ts';
import type { KubeApi } from '../../../ports/kube.ts';
import { RESOURCES } from '../../../sim/world/kube/kubeRoutes.ts';
import { GIT_VERSION } from '../../version.ts';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const SHORT: Readonly<Record<string, readonly string[]>> = {
  nodes: ['no'],
  pods: ['po'],
  services: ['svc'],
  configmaps: ['cm'],
  events: ['ev'],
};

/** Undefined: it is no page of discovery. */
export function discovery(path: string): object | undefined {
  if (path === '/version') return { major: '1', minor: '36', gitVersion: GIT_VERSION };
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups() };
  const own = RESOURCES.filter((r) => r.group === path);
  if (own.length === 0) return undefined;
  const resources = own.map(({ name, kind, namespaced }) => ({
    ...{ name, kind, namespaced, singularName: kind.toLowerCase(), verbs: VERBS },
    shortNames: SHORT[name] ?? [],
  }));
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: own[0]?.apiVersion, resources };
}

/** The same API server, which answers pages of discovery too. */
export function withDiscovery(kube: KubeApi): KubeApi {
  return {
    server: kube.server,
    request: (request, opts) => {
      const body = request.verb === 'GET' ? discovery(request.path) : undefined;
      return body === undefined ? kube.request(request, opts) : Promise.resolve({ ok: true, code: 200, body });
    },
    watch: (request, opts) => kube.watch(request, opts),
    closeConnections: (of) => kube.closeConnections(of),
    close: () => kube.close(),
  };
}

function groups(): object[] {
  const versions = [...new Set(RESOURCES.map((r) => r.apiVersion))].filter((v) => v.includes('/'));
  return [...new Set(versions.map((v) => v.split('/')[0] ?? ''))].map((name) => {
    const own = versions.filter((v) => v.startsWith(`${name}/`)).map((v) => ({ groupVersion: v, version: v.slice(name.length + 1) }));
    return { name, versions: own, preferredVersion: own[0] };
  });
}

/** As kubectl asks for what it prints; undefined: of this kind there is none. */
export function tableOf(body: unknown, nowMs: number): object | undefined {
  if (!isRecord(body)) return undefined;
  const isList = Array.isArray(body.items);
  const objects = (isList ? body.items : [body]) as KubeObject[];
  const kind = String(body.kind).replace(/List$/, '');
  const columns = COLUMNS[kind];
  if (columns === undefined) return undefined;
  const columnDefinitions = ['Name', ...Object.keys(columns), 'Age'].map((name) => ({
    name,
    type: 'string',
    format: '',
    description: '',
    priority: 0,
  }));
  const rows = objects.map((object) => {
    const { name, namespace, uid, creationTimestamp, labels } = object.metadata;
    const age = `${Math.max(0, Math.round((nowMs - Date.parse(String(creationTimestamp ?? ''))) / 1_000))}s`;
    const metadata = { name, namespace, uid, resourceVersion: object.metadata.resourceVersion, creationTimestamp, labels };
    const cells = [name, ...Object.values(columns).map((of) => of(object)), age];
    return { cells, object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata } };
  });
  return { kind: 'Table', apiVersion: 'meta.k8s.io/v1', metadata: isList ? (body.metadata ?? {}) : {}, columnDefinitions, rows };
}

type Status = {
  phase?: string;
  conditions?: { type: string; status: string }[];
  containerStatuses?: { ready: boolean; restartCount: number }[];
};
const statusOf = (object: KubeObject): Status => (object.status ?? {}) as Status;
const COLUMNS: Readonly<Record<string, Readonly<Record<string, (object: KubeObject) => string>>>> = {
  Node: { Status: (o) => (statusOf(o).conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true ? 'Ready' : 'NotReady') },
  Pod: {
    Ready: (o) =>
      `${statusOf(o).containerStatuses?.filter((c) => c.ready).length ?? 0}/${((o.spec ?? {}) as { containers?: unknown[] }).containers?.length ?? 0}`,
    Status: (o) => (o.metadata.deletionTimestamp === undefined ? (statusOf(o).phase ?? 'Pending') : 'Terminating'),
    Restarts: (o) => String(statusOf(o).containerStatuses?.reduce((sum, c) => sum + c.restartCount, 0) ?? 0),
    Node: (o) => ((o.spec ?? {}) as { nodeName?: string }).nodeName ?? '<none>',
  },
};
