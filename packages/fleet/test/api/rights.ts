/** What packaging/fleet/rbac.yaml does not allow of what a fleet asks. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeRequest } from '@actorlet/kubelet/machines/kube/request.ts';
import { parseAllDocuments } from 'yaml';
import { resourceOf } from '../../src/calls.ts';

const FILE = join(import.meta.dirname, '../../../../packaging/fleet/rbac.yaml');
const WRITES = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' } as const;

interface Rule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
}
interface Right {
  group: string;
  resource: string;
  verb: string;
}

/** `get pods/log`, and its API group; null: it is no resource. */
export function rightOf({ verb, path, query }: KubeRequest): Right | null {
  const [, api, group = '', ...rest] = path.split('/');
  if (api !== 'api' && api !== 'apis') return null;
  const parts = api === 'apis' ? rest.slice(1) : rest;
  const named = parts[0] === 'namespaces' && parts.length > 2 ? parts.length > 3 : parts.length > 1;
  const reads = query?.watch === 'true' ? 'watch' : named ? 'get' : 'list';
  const verbs = { ...WRITES, GET: reads, ...(named ? {} : { DELETE: 'deletecollection' }) };
  return { group: api === 'apis' ? group : '', resource: resourceOf(path), verb: verbs[verb] };
}

/** Each once, as `verb resource group`. */
export function refusedOf(requests: readonly KubeRequest[]): string[] {
  const rules = parseAllDocuments(readFileSync(FILE, 'utf8'))
    .map((doc) => doc.toJS() as { kind: string; rules?: Rule[] })
    .flatMap(({ kind, rules: own }) => (kind === 'ClusterRole' ? (own ?? []) : []));
  const isAllowed = ({ group, resource, verb }: Right): boolean =>
    rules.some((r) => r.apiGroups.includes(group) && r.resources.includes(resource) && r.verbs.includes(verb));
  const refused = requests.flatMap((of) => rightOf(of) ?? []).filter((right) => !isAllowed(right));
  return [...new Set(refused.map(({ group, resource, verb }) => `${verb} ${resource} ${group}`))].sort();
}
