/** Pull credentials from secrets, and which of them an image is pulled with (pod lifecycle 5.9). Nothing secret is put in errors. Pure. */

import { fromBase64 } from '../../data/base64.ts';
import { own } from '../../data/own.ts';
import { parseImageRef } from '../../kube/imageRef.ts';
import type { ApiSecret } from '../../kube/objects.ts';
import { isRecord } from '../../shape/conform.ts';
import { textOf } from '../../shape/lenient.ts';
import { trimEndOf } from '../../text/trim.ts';
import type { AuthConfig } from '../../wire/cri.ts';

export interface PullSecret {
  namespace: string;
  name: string;
  secret: ApiSecret;
}
/** The Secret or service account that credentials come from, by what the API knows it as. */
export interface PullOwner {
  /** `token`: only for pods with the same token; a pull with them shows nothing for others. */
  kind: 'secret' | 'serviceAccount' | 'token';
  uid: string;
  namespace: string;
  name: string;
}
/** Without an owner they are the node's own. */
export interface OwnedAuth {
  auth: AuthConfig;
  owner?: PullOwner;
}
/** Not `ok`: some secret cannot be read; nothing is pulled then. */
export type PullCredentials = { ok: true; auths: readonly OwnedAuth[] } | { ok: false; message: string };

/** Credentials of one registry, or of a part of it. */
export interface Credential {
  /** `host[:port][/path]`, parts of the host may be globs. */
  key: string;
  auth: AuthConfig;
  owner?: PullOwner;
}

const DEFAULT_REGISTRY = 'index.docker.io';

/**
 * Credentials that match the image, best first. None: it is pulled anonymously. One step for each secret: a pod may have hundreds of
 * them, each with tens of thousands of registries.
 */
export function* pullCredentials(secrets: readonly PullSecret[], image: string): Generator<void, PullCredentials> {
  const parsed = parseImageRef(image);
  const repository = parsed.ok ? `${parsed.ref.domain}/${parsed.ref.path}` : '';
  const entries: Credential[] = [];
  for (const { namespace, name, secret } of secrets) {
    const read = entriesOf(secret);
    if (typeof read === 'string') return { ok: false, message: `image pull secret "${name}": ${read}` };
    const owner: PullOwner = { kind: 'secret', uid: secret.uid ?? '', namespace, name };
    for (const entry of matchingAmong(read, repository)) entries.push({ ...entry, owner });
    yield;
  }
  return { ok: true, auths: credentialsAmong(entries, repository) };
}

/** Credentials that match `host[:port]/path`, the more exact ones first. */
export function credentialsAmong(entries: readonly Credential[], repository: string): OwnedAuth[] {
  const owned = ({ auth, owner }: Credential): OwnedAuth => (owner === undefined ? { auth } : { auth, owner });
  const byKey = Map.groupBy(matchingAmong(entries, repository), (e) => e.key);
  const keys = [...byKey.keys()].sort().reverse();
  const others = keys.filter((key) => key !== DEFAULT_REGISTRY || locationMatches(key, repository));
  return (others.length > 0 ? others : keys).flatMap((key) => (byKey.get(key) ?? []).map(owned));
}
/** Those of the default registry are for images of docker.io that no other matches. */
function matchingAmong(entries: readonly Credential[], repository: string): Credential[] {
  const given = split(repository);
  const isDefault = repository.startsWith('docker.io/');
  return entries.filter(({ key }) => (isDefault && key === DEFAULT_REGISTRY) || matches(key, given));
}

/** The two files of a Docker client that hold credentials, by the key that they have in a secret. */
export type DockerFile = '.dockerconfigjson' | '.dockercfg';
const KINDS: Readonly<Record<string, DockerFile>> = {
  'kubernetes.io/dockerconfigjson': '.dockerconfigjson',
  'kubernetes.io/dockercfg': '.dockercfg',
};

/** What the secret holds, or what is wrong with it. Other types of secrets hold no credentials. */
function entriesOf(secret: ApiSecret): Credential[] | string {
  const kind = own(KINDS, secret.type ?? '');
  const bytes = kind === undefined ? undefined : own(secret.data, kind);
  if (kind === undefined || bytes === undefined || bytes.length === 0) return [];
  const read = dockerCredentials(kind, bytes);
  return typeof read === 'string' ? `${kind} ${read}` : read;
}

/** Credentials in such a file, or what is wrong with it. */
export function dockerCredentials(kind: DockerFile, bytes: Uint8Array): Credential[] | string {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return 'is not JSON';
  }
  const auths = kind === '.dockerconfigjson' ? (isRecord(value) ? (value.auths ?? {}) : null) : value;
  if (!isRecord(auths)) return 'is not a map of registries';
  const entries: Credential[] = [];
  for (const [location, entry] of Object.entries(auths)) {
    if (!isRecord(entry)) return 'has an entry that is no object';
    const auth = authOf(entry);
    if (auth === null) return 'has an auth field that is not base64(username:password)';
    entries.push({ key: keyOf(location), auth });
  }
  return entries;
}

const UTF8 = new TextDecoder('utf-8', { ignoreBOM: true });
function authOf(entry: Record<string, unknown>): AuthConfig | null {
  if (textOf(entry.auth) === '') return { username: textOf(entry.username), password: textOf(entry.password) };
  const bytes = fromBase64(textOf(entry.auth));
  if (bytes === null) return null;
  const decoded = UTF8.decode(bytes);
  const colon = decoded.indexOf(':');
  // Some writers end the password with zero bytes.
  return colon < 0 ? null : { username: decoded.slice(0, colon), password: trimEndOf(decoded.slice(colon + 1), '\0') };
}

/** Scheme gone, and the version that the path of a registry's API begins with. */
export function keyOf(location: string): string {
  const bare = location.replace(/^https?:\/\/|[?#].*$/gs, '');
  const slash = bare.indexOf('/');
  if (slash < 0) return bare;
  const path = bare.slice(slash).replace(/^\/v[12](?=\/)/, '');
  return `${bare.slice(0, slash)}${path === '/' ? '' : path}`;
}

function split(location: string): { host: string; port: string; path: string } {
  const slash = location.indexOf('/');
  const authority = slash < 0 ? location : location.slice(0, slash);
  const port = /:(\d+)$/.exec(authority);
  const host = port === null ? authority : authority.slice(0, port.index);
  return { host, port: port?.[1] ?? '', path: slash < 0 ? '' : location.slice(slash) };
}

/** Same port, as many parts of the host, each matching its glob, and the beginning of the path. */
export function locationMatches(key: string, repository: string): boolean {
  return matches(key, split(repository));
}
function matches(key: string, given: ReturnType<typeof split>): boolean {
  const wanted = split(key);
  const globs = wanted.host.split('.');
  const parts = given.host.split('.');
  return (
    wanted.port === given.port &&
    globs.length === parts.length &&
    given.path.startsWith(wanted.path) &&
    globs.every((glob, i) => globMatches(glob, parts[i] ?? ''))
  );
}

/** A part of a host name has at most 63 characters; brackets that are not closed are each looked for to the end. */
const GLOB_CHARS_MAX = 128;

/** Shell globs: `*`, `?`, `[a-z]`, `[^a]`. Goes back to the last star only, so its time is bounded whatever the pattern. */
function globMatches(glob: string, text: string): boolean {
  if (glob.length > GLOB_CHARS_MAX) return false;
  const tokens = glob.match(/\[\^?[^\]]+\]|[\s\S]/g) ?? [];
  let t = 0;
  let i = 0;
  let star = -1;
  let from = 0;
  while (i < text.length) {
    const token = tokens[t];
    if (token === '*') {
      star = t++;
      from = i;
    } else if (token !== undefined && tokenMatches(token, text[i] ?? '')) {
      t++;
      i++;
    } else if (star >= 0) {
      t = star + 1;
      i = ++from;
    } else return false;
  }
  while (tokens[t] === '*') t++;
  return t === tokens.length;
}

function tokenMatches(token: string, c: string): boolean {
  if (token === '?') return true;
  if (token.length === 1) return token === c;
  const negated = token[1] === '^';
  const inside = token.slice(negated ? 2 : 1, -1);
  let found = false;
  for (let i = 0; i < inside.length; i++) {
    const low = inside[i] ?? '';
    const isRange = inside[i + 1] === '-' && i + 2 < inside.length;
    const high = isRange ? (inside[i + 2] ?? '') : low;
    if (low <= c && c <= high) found = true;
    if (isRange) i += 2;
  }
  return found !== negated;
}
