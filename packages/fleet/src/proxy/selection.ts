/** Which requests a fault, or an expectation about calls, is about. Pure. */
import { type ApiRequest, type ApiVerb, programOf } from './request.ts';

/** A list that is absent selects everything. */
export interface ApiSelection {
  userAgents?: readonly string[];
  users?: readonly string[];
  verbs?: readonly ApiVerb[];
  resources?: readonly string[];
  namespaces?: readonly string[];
  names?: readonly string[];
}

export type Selects = (request: Omit<ApiRequest, 'path' | 'query'>) => boolean;

export function selects(o: ApiSelection): Selects {
  const agents = o.userAgents?.map(agentPattern);
  const texts = (patterns: readonly string[] | undefined): RegExp[] | undefined => patterns?.map(wildcard);
  const [users, resources, namespaces, names] = [texts(o.users), texts(o.resources), texts(o.namespaces), texts(o.names)];
  const fits = (patterns: readonly RegExp[] | undefined, ...values: readonly string[]): boolean =>
    patterns === undefined || patterns.some((p) => values.some((value) => p.test(value)));
  return (r) => {
    if (o.verbs !== undefined && !o.verbs.includes(r.verb)) return false;
    if (agents !== undefined && !agents.some((fitsAgent) => fitsAgent(r.userAgent))) return false;
    const [kind = '', sub] = r.resource.split('/');
    const withGroup = `${r.group === '' ? kind : `${kind}.${r.group}`}${sub === undefined ? '' : `/${sub}`}`;
    return fits(users, r.user) && fits(resources, r.resource, withGroup) && fits(namespaces, r.namespace) && fits(names, r.name);
  };
}

/** Without `*` it is the name of the program, which a user agent begins with. */
function agentPattern(pattern: string): (userAgent: string) => boolean {
  if (!pattern.includes('*')) return (userAgent) => userAgent === pattern || programOf(userAgent) === pattern;
  const regExp = wildcard(pattern);
  return (userAgent) => regExp.test(userAgent);
}

/** `*` is any text. Stars in a row are one: each costs a pass over the text. */
function wildcard(pattern: string): RegExp {
  const escaped = pattern.replace(/\*+/g, '*').replace(/[.+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${escaped.replaceAll('*', '.*')}$`, 's');
}
