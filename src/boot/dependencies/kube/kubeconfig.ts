/**
 * A kubeconfig file, reduced to what this node needs of it: the server and credentials of the current context.
 *
 * Read with `yaml`, not with @kubernetes/client-node's KubeConfig: importing the latter costs 84 MiB resident under
 * Node 24 (measured; `yaml` and `node:https` together 19), and the daemon has 125 MiB for everything.
 */

import { dirname, isAbsolute, resolve } from 'node:path';
import { readRegular } from '@actorlet/process/src/regularFile.ts';
import { parse } from 'yaml';
import { isRecord } from '../../../machines/shape/conform.ts';
import { recordOf } from '../../../machines/shape/lenient.ts';
import { messageOf } from '../../../machines/text/errors.ts';
import { proxyUrl } from '../net/proxy.ts';
import { type ExecConfig, parseExec } from './execConfig.ts';

/** Most bytes of a kubeconfig, a certificate, a key, a token or a bundle of CAs. */
export const CREDENTIAL_BYTES_MAX = 10 * 1024 * 1024;

/** Bytes given inline, or a file that is read again when it changes. */
export type Material = { data: Buffer } | { file: string };

export interface KubeConfigFile {
  /** The file it came from. */
  path: string;
  /** `https://host:port`, perhaps with a path below which the API is. */
  server: URL;
  /** Null = the certificate authorities of this machine. */
  ca: Material | null;
  /** Name the server's certificate must be for, in place of the host of `server`. */
  tlsServerName: string | null;
  /** The server need not prove who it is. */
  insecure: boolean;
  /** HTTP proxy on the way to it; null = what the environment says. */
  proxy: URL | null;
  /** Client certificate. */
  cert: Material | null;
  key: Material | null;
  token: Material | null;
  /** A program that gives what the three above do not. */
  exec: ExecConfig | null;
}

type Named = { name: string; value: Record<string, unknown> };

/** @throws Error that names the file, the field and what is wrong; never with a credential in it. */
export async function readKubeConfig(path: string): Promise<KubeConfigFile> {
  let text: string;
  try {
    text = (await readRegular(path, { bytesMax: CREDENTIAL_BYTES_MAX })).toString('utf8');
  } catch (error) {
    throw new Error(`kubeconfig ${path}: cannot be read: ${messageOf(error)}`);
  }
  return parseKubeConfig(text, path);
}

export function parseKubeConfig(text: string, path: string): KubeConfigFile {
  const fail = (what: string): never => {
    throw new Error(`kubeconfig ${path}: ${what}`);
  };
  let doc: unknown;
  try {
    doc = parse(text, { maxAliasCount: 0 });
  } catch {
    // The parser's own message quotes the document, and the document holds credentials.
    return fail('is not YAML');
  }
  if (!isRecord(doc)) return fail('holds no mapping');
  if (doc.kind !== undefined && doc.kind !== 'Config') return fail(`kind is ${JSON.stringify(doc.kind)}, expected Config`);
  const current = doc['current-context'];
  if (typeof current !== 'string' || current === '') return fail('current-context: required');
  const context = find(doc.contexts, current, 'context') ?? fail(`current-context: there is no context ${JSON.stringify(current)}`);
  const clusterName = context.value.cluster;
  const cluster =
    find(doc.clusters, clusterName, 'cluster') ??
    fail(`contexts[${current}].cluster: there is no cluster ${JSON.stringify(clusterName ?? '')}`);
  const userName = context.value.user;
  const user =
    userName === undefined || userName === ''
      ? { name: '', value: {} }
      : (find(doc.users, userName, 'user') ?? fail(`contexts[${current}].user: there is no user ${JSON.stringify(userName)}`));
  const at = (of: Named, list: string, field: string): string => `${list}[${of.name}].${list.slice(0, -1)}.${field}`;
  const base = dirname(path);
  const material = (of: Named, list: string, names: { data: string; file: string; encoding: 'base64' | 'utf8' }): Material | null => {
    const data = of.value[names.data];
    const file = of.value[names.file];
    if (data !== undefined && data !== '') {
      if (typeof data !== 'string') return fail(`${at(of, list, names.data)}: must be text`);
      const bytes = Buffer.from(data, names.encoding);
      if (bytes.length === 0) return fail(`${at(of, list, names.data)}: is not base64`);
      return { data: bytes };
    }
    if (file === undefined || file === '') return null;
    if (typeof file !== 'string') return fail(`${at(of, list, names.file)}: must be a path`);
    return { file: isAbsolute(file) ? file : resolve(base, file) };
  };

  const server = cluster.value.server;
  const url = typeof server === 'string' ? URL.parse(server.includes('://') ? server : `https://${server}`) : null;
  if (url === null) return fail(`${at(cluster, 'clusters', 'server')}: must be the URL of the API server`);
  if (url.protocol !== 'https:') return fail(`${at(cluster, 'clusters', 'server')}: must be an https URL: credentials go nowhere else`);
  for (const field of ['auth-provider', 'username', 'password', 'as', 'as-uid', 'as-groups', 'as-user-extra']) {
    const value = user.value[field];
    if (value === undefined || value === null || value === '') continue;
    return fail(`${at(user, 'users', field)}: not supported here; use client-certificate and client-key, token, tokenFile or exec`);
  }
  const cert = material(user, 'users', { data: 'client-certificate-data', file: 'client-certificate', encoding: 'base64' });
  const key = material(user, 'users', { data: 'client-key-data', file: 'client-key', encoding: 'base64' });
  if ((cert === null) !== (key === null))
    return fail(`${at(user, 'users', cert === null ? 'client-certificate' : 'client-key')}: required with the other of the pair`);
  const execAt = at(user, 'users', 'exec');
  const exec = user.value.exec === undefined || user.value.exec === null ? null : parseExec(user.value.exec, { path, at: execAt, fail });
  const tlsServerName = cluster.value['tls-server-name'];
  const ca = material(cluster, 'clusters', { data: 'certificate-authority-data', file: 'certificate-authority', encoding: 'base64' });
  const insecure = cluster.value['insecure-skip-tls-verify'] === true;
  if (insecure && ca !== null)
    return fail(`${at(cluster, 'clusters', 'insecure-skip-tls-verify')}: not allowed together with certificate-authority`);
  const given = cluster.value['proxy-url'] ?? '';
  const proxy = typeof given === 'string' ? proxyUrl(given) : null;
  if (given !== '' && proxy === null) return fail(`${at(cluster, 'clusters', 'proxy-url')}: must be the URL of an http or https proxy`);
  return {
    path,
    server: url,
    ca,
    insecure,
    proxy,
    tlsServerName: typeof tlsServerName === 'string' && tlsServerName !== '' ? tlsServerName : null,
    cert,
    key,
    // The file is newer than what was copied from it: where both are given the reference reads the file too.
    token: tokenOf(user, material),
    exec,
  };
}

function tokenOf(
  user: Named,
  material: (of: Named, list: string, names: { data: string; file: string; encoding: 'base64' | 'utf8' }) => Material | null,
): Material | null {
  const names = { data: 'token', file: 'tokenFile', encoding: 'utf8' } as const;
  if (!user.value.tokenFile) return material(user, 'users', names);
  const { token: _token, ...rest } = user.value;
  return material({ name: user.name, value: rest }, 'users', names);
}

function find(list: unknown, name: unknown, inner: string): Named | undefined {
  if (!Array.isArray(list) || typeof name !== 'string') return undefined;
  const entry: unknown = list.find((e: unknown) => isRecord(e) && e.name === name);
  if (!isRecord(entry)) return undefined;
  const value = entry[inner];
  return { name, value: recordOf(value) };
}
