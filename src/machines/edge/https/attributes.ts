/** What a request to the kubelet's API asks for, in the terms of an access review (boot-and-node 7.4). Pure. */

export interface UserInfo {
  name: string;
  uid: string;
  groups: readonly string[];
  extra: Readonly<Record<string, readonly string[]>>;
}

export interface AccessAttributes {
  /** '' for methods that have none (HEAD, OPTIONS, ...). */
  verb: string;
  subresource: string;
}

const VERBS: Readonly<Record<string, string>> = { POST: 'create', GET: 'get', PUT: 'update', PATCH: 'patch', DELETE: 'delete' };
/** Paths with a subresource of their own, at any time. */
const OWN: readonly (readonly [prefix: string, subresource: string])[] = [
  ['/stats', 'stats'],
  ['/metrics', 'metrics'],
  ['/logs', 'log'],
  ['/checkpoint', 'checkpoint'],
  ['/statusz', 'statusz'],
  ['/flagz', 'configz'],
];
/** Paths whose subresource may be granted alone, or with `proxy`, which grants everything (gate KubeletFineGrainedAuthz). */
const FINE: readonly (readonly [prefix: string, subresource: string])[] = [
  ['/pods', 'pods'],
  ['/runningpods', 'pods'],
  ['/healthz', 'healthz'],
  ['/configz', 'configz'],
];

/** Equal to the prefix, or below it: `/statsx` is not below `/stats`. */
export function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** What to ask, in this order, until one is allowed. */
export function accessAttributes(method: string, path: string, o: { fineGrained: boolean }): AccessAttributes[] {
  const verb = (Object.hasOwn(VERBS, method) ? VERBS[method] : undefined) ?? '';
  const own = OWN.find(([prefix]) => isBelow(path, prefix));
  if (own !== undefined) return [{ verb, subresource: own[1] }];
  const fine = o.fineGrained ? FINE.find(([prefix]) => isBelow(path, prefix)) : undefined;
  const proxy = { verb, subresource: 'proxy' };
  return fine === undefined ? [proxy] : [{ verb, subresource: fine[1] }, proxy];
}

/** Spec of a SubjectAccessReview (authorization.k8s.io/v1). */
export interface AccessReviewSpec {
  user: string;
  uid?: string;
  groups: readonly string[];
  extra?: Readonly<Record<string, readonly string[]>>;
  resourceAttributes: { verb: string; version: 'v1'; resource: 'nodes'; subresource: string; name: string };
}

export function accessReviewSpec(user: UserInfo, attributes: AccessAttributes, nodeName: string): AccessReviewSpec {
  return {
    user: user.name,
    ...(user.uid === '' ? {} : { uid: user.uid }),
    groups: user.groups,
    ...(Object.keys(user.extra).length === 0 ? {} : { extra: user.extra }),
    resourceAttributes: {
      verb: attributes.verb,
      version: 'v1',
      resource: 'nodes',
      subresource: attributes.subresource,
      name: nodeName,
    },
  };
}

/** What a refused client is told. */
export function forbiddenText(user: UserInfo, asked: readonly AccessAttributes[]): string {
  const verb = asked[0]?.verb ?? '';
  return `Forbidden (user=${user.name}, verb=${verb}, resource=nodes, subresource(s)=[${asked.map((a) => a.subresource).join(' ')}])`;
}
