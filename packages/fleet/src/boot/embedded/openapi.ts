/**
 * As much of OpenAPI as `kubectl create -f` and `apply -f` ask for: that each kind takes the parameter `fieldValidation`, so kubectl
 * leaves it to the server to judge objects. There are no schemas.
 */
import { RESOURCES } from '@actorlet/world/src/kube/kubeRoutes.ts';

/** The document before version 3, with nothing in it: kubectl asks for it to check a `List`, and lets pass what has no schema there. */
export const NO_SCHEMAS = { path: '/openapi/v2', type: 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf' };
const ROOT = '/openapi/v3';
const FIELD_VALIDATION = { name: 'fieldValidation', in: 'query', schema: { type: 'string' } };

/** Undefined: it is no page of OpenAPI. */
export function openapi(path: string): object | undefined {
  if (path === ROOT) {
    const groups = [...new Set(RESOURCES.map((r) => r.group))];
    return { paths: Object.fromEntries(groups.map((group) => [group.slice(1), { serverRelativeURL: `${ROOT}${group}` }])) };
  }
  const own = path.startsWith(ROOT) ? RESOURCES.filter((r) => path === ROOT + r.group) : [];
  if (own.length === 0) return undefined;
  const paths = own.map(({ group: root, name, kind, namespaced, apiVersion }) => {
    const [version = '', group = ''] = apiVersion.split('/').reverse();
    const patch = {
      'x-kubernetes-group-version-kind': { group, version, kind },
      parameters: [FIELD_VALIDATION],
      requestBody: { content: { 'application/merge-patch+json': {} } },
      responses: { 200: { description: 'OK' } },
    };
    return [`${root}/${namespaced ? 'namespaces/{namespace}/' : ''}${name}/{name}`, { patch }];
  });
  return { openapi: '3.0.0', info: { title: 'actorlet', version: 'v1' }, paths: Object.fromEntries(paths) };
}
