/** What the embedded API server says of itself, so that kubectl knows its resources. */

import { GIT_VERSION } from '@actorlet/kubelet/boot/version.ts';
import type { KubeApi } from '@actorlet/kubelet/ports/kube.ts';
import { RESOURCES } from '@actorlet/world/src/kube/kubeRoutes.ts';

const VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const SHORT: Readonly<Record<string, readonly string[]>> = {
  nodes: ['no'],
  pods: ['po'],
  services: ['svc'],
  configmaps: ['cm'],
  events: ['ev'],
  serviceaccounts: ['sa'],
  persistentvolumes: ['pv'],
  persistentvolumeclaims: ['pvc'],
  certificatesigningrequests: ['csr'],
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
