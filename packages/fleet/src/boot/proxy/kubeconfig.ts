/** The kubeconfig of a proxy: that of the API server, with another server in it. */
import { dirname, isAbsolute, resolve } from 'node:path';
import { isRecord } from '@actorlet/kubelet/machines/shape/conform.ts';
import { recordOf } from '@actorlet/kubelet/machines/shape/lenient.ts';
import { parse } from 'yaml';

/** Fields of a user that are paths. */
const PATHS = ['client-certificate', 'client-key', 'tokenFile'];

/** `text`: of a kubeconfig that was read without complaint. Its current context alone, in JSON, which is YAML. */
export function proxyKubeconfig({ text, path }: { text: string; path: string }, proxy: { server: string; ca: string }): string {
  const config = recordOf(parse(text, { maxAliasCount: 0 }));
  const current = String(config['current-context']);
  const context = named(config.contexts, current, 'context');
  const { user: userName = '', namespace } = context;
  const user = named(config.users, userName, 'user');
  const cluster = { server: proxy.server, 'certificate-authority-data': Buffer.from(proxy.ca).toString('base64') };
  const written = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'proxy' },
    clusters: [{ name: 'proxy', cluster }],
    users: [{ name: 'proxy', user: located(user, dirname(path)) }],
    contexts: [{ name: 'proxy', context: { cluster: 'proxy', user: 'proxy', ...(namespace === undefined ? {} : { namespace }) } }],
  };
  return `${JSON.stringify(written, null, 2)}\n`;
}

function named(list: unknown, name: unknown, inner: string): Record<string, unknown> {
  const entry: unknown = Array.isArray(list) ? list.find((e: unknown) => isRecord(e) && e.name === name) : undefined;
  return recordOf(isRecord(entry) ? entry[inner] : undefined);
}

/** Paths in a kubeconfig are relative to its folder. */
function located(user: Record<string, unknown>, base: string): Record<string, unknown> {
  const absolute = (path: string): string => (isAbsolute(path) ? path : resolve(base, path));
  const made: Record<string, unknown> = { ...user };
  for (const field of PATHS) {
    if (typeof user[field] === 'string' && user[field] !== '') made[field] = absolute(user[field]);
  }
  const { exec } = user;
  if (isRecord(exec) && typeof exec.command === 'string' && exec.command.includes('/'))
    made.exec = { ...exec, command: absolute(exec.command) };
  return made;
}
