/** Users of a simulated cluster, what they may do on its nodes, and what the API server says when a node asks about them. */

import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { ApiFault } from '../kube/apiFault.ts';

export interface Account {
  name: string;
  groups: readonly string[];
  /** Subresources of the node that this one may use; null: all. */
  mayUse: readonly string[] | null;
}
export const OPERATOR: Account = { name: 'sim:operator', groups: ['sim:operators'], mayUse: null };
/** Has some rights, and most not. */
export const VIEWER: Account = { name: 'sim:viewer', groups: ['sim:viewers'], mayUse: ['metrics', 'healthz'] };
export const NOBODY: Account = { name: 'sim:nobody', groups: [], mayUse: [] };
const ACCOUNTS = [OPERATOR, VIEWER, NOBODY];

export function tokenOf(account: Account, secret: string): string {
  return `${secret}${account.name.slice('sim:'.length)}`;
}

/** Whether some of the rights, each of which would do, is there. */
export function isAllowed(name: string, subresources: readonly string[]): boolean {
  const account = ACCOUNTS.find((a) => a.name === name);
  return account !== undefined && (account.mayUse === null || subresources.some((s) => account.mayUse?.includes(s)));
}

export const REVIEWS = {
  token: '/apis/authentication.k8s.io/v1/tokenreviews',
  access: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
} as const;

/** Answer to a question about a token or a right; undefined for another path. */
export function review(path: string, body: unknown, secret: string): object | undefined {
  if (path !== REVIEWS.token && path !== REVIEWS.access) return undefined;
  if (!isRecord(body) || !isRecord(body.spec)) throw new ApiFault(400, 'BadRequest', 'the review has no spec');
  const { spec } = body;
  if (path === REVIEWS.token) {
    const account = ACCOUNTS.find((a) => tokenOf(a, secret) === spec.token);
    const status =
      account === undefined
        ? { authenticated: false, error: 'unknown token' }
        : { authenticated: true, user: { username: account.name, groups: account.groups } };
    return { ...body, status };
  }
  const asked = isRecord(spec.resourceAttributes) ? spec.resourceAttributes : {};
  const nodes = asked.resource === 'nodes' && typeof asked.subresource === 'string';
  return { ...body, status: { allowed: nodes && isAllowed(String(spec.user), [String(asked.subresource)]) } };
}
