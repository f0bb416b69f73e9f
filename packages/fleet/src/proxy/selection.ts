/** Which requests a fault, or an expectation about calls, is about. Pure. */
import { type ApiRequest, type ApiVerb, fullResource, programOf } from './request.ts';

/** A list that is absent selects everything. */
export interface ApiSelection {
  userAgents?: readonly string[];
  users?: readonly string[];
  verbs?: readonly ApiVerb[];
  resources?: readonly string[];
  namespaces?: readonly string[];
  names?: readonly string[];
}

type Fits = (text: string) => boolean;
export type Selects = (request: Omit<ApiRequest, 'path' | 'query'>) => boolean;

export function selects(o: ApiSelection): Selects {
  const agents = o.userAgents?.map(agentPattern);
  const texts = (patterns: readonly string[] | undefined): Fits[] | undefined => patterns?.map(wildcard);
  const [users, resources, namespaces, names] = [texts(o.users), texts(o.resources), texts(o.namespaces), texts(o.names)];
  const fits = (patterns: readonly Fits[] | undefined, ...values: readonly string[]): boolean =>
    patterns === undefined || patterns.some((fitsText) => values.some(fitsText));
  return (r) => {
    if (o.verbs !== undefined && !o.verbs.includes(r.verb)) return false;
    if (agents !== undefined && !agents.some((fitsAgent) => fitsAgent(r.userAgent))) return false;
    return fits(users, r.user) && fits(resources, r.resource, fullResource(r)) && fits(namespaces, r.namespace) && fits(names, r.name);
  };
}

/** Without `*` it is the name of the program, which a user agent begins with. */
function agentPattern(pattern: string): Fits {
  if (!pattern.includes('*')) return (userAgent) => userAgent === pattern || programOf(userAgent) === pattern;
  return wildcard(pattern);
}

/** `*` is any text. Clients choose the text, so it is looked through once, whatever the pattern. */
export function wildcard(pattern: string): Fits {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return (text) => text === first;
  return (text) => {
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    let at = first.length;
    for (const part of rest) {
      const found = text.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at <= text.length - last.length;
  };
}
