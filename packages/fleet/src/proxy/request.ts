/** What a request to the API server is about, as far as a fault selects by it. Pure. */

export interface ApiRequest {
  verb: ApiVerb;
  /** As in a path: `deployments`, `pods/status`; '' where it is none. */
  resource: string;
  group: string;
  namespace: string;
  name: string;
  path: string;
  query: URLSearchParams;
  userAgent: string;
  /** Of the client certificate, or what a token of a service account says; '': it is not known. Nothing is allowed by it. */
  user: string;
}

export const API_VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'] as const;
export type ApiVerb = (typeof API_VERBS)[number] | 'other';

const BY_METHOD: Readonly<Record<string, ApiVerb>> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };
const PATH = /^\/(?:api\/[^/]+|apis\/([^/]+)\/[^/]+)\/(.+)$/;

export function apiRequest(o: { method: string; url: string; userAgent: string; user: string }): ApiRequest {
  const at = o.url.indexOf('?');
  const path = at === -1 ? o.url : o.url.slice(0, at);
  const query = new URLSearchParams(at === -1 ? '' : o.url.slice(at + 1));
  const [, group = '', rest = ''] = PATH.exec(path) ?? [];
  const parts = rest.split('/').filter((part) => part !== '');
  const inNamespace = parts[0] === 'namespaces' && parts.length > 2;
  const [kind = '', name = '', sub] = inNamespace ? parts.slice(2) : parts;
  const resource = sub === undefined ? kind : `${kind}/${sub}`;
  const verb = verbOf(o.method, { resource, name, query });
  const decoded = (part: string): string => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  const namespace = inNamespace ? decoded(parts[1] ?? '') : '';
  return { verb, resource, group, namespace, name: decoded(name), path, query, userAgent: o.userAgent, user: o.user };
}

function verbOf(method: string, o: { resource: string; name: string; query: URLSearchParams }): ApiVerb {
  if (o.resource === '') return 'other';
  if (method !== 'GET') return BY_METHOD[method] ?? 'other';
  if (isTrue(o.query.get('watch'))) return 'watch';
  return o.name === '' ? 'list' : 'get';
}

/** As an API server reads a parameter: only these say no. */
function isTrue(parameter: string | null): boolean {
  return parameter !== null && !['0', 'false'].includes(parameter.toLowerCase());
}

/** `deployments.apps/status`. */
export function fullResource({ resource, group }: Pick<ApiRequest, 'resource' | 'group'>): string {
  const [kind = '', ...sub] = resource.split('/');
  return [group === '' ? kind : `${kind}.${group}`, ...sub].join('/');
}

/** `deployments.apps "web"`, as an API server names an object in a message, also where its status is asked for. */
export function quotedObject({ resource, group, name }: Pick<ApiRequest, 'resource' | 'group' | 'name'>): string {
  const [kind = ''] = fullResource({ resource, group }).split('/');
  return `${kind} "${name}"`;
}

/** `update deployments.apps default/web`, for people. */
export function shownRequest({ verb, resource, group, namespace, name, path }: ApiRequest): string {
  if (verb === 'other') return path;
  const object = [namespace, name].filter((part) => part !== '').join('/');
  return [verb, fullResource({ resource, group }), object].filter((part) => part !== '').join(' ');
}

/** `website/v1.2 (linux/amd64)`: what is before the first slash or space. */
export function programOf(userAgent: string): string {
  return /^[^/\s]*/.exec(userAgent)?.[0] ?? '';
}
