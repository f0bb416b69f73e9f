/**
 * Programs that know credentials for registries (CredentialProviderConfig): which of them an image is asked of, what they
 * are told, what their answer means and for which images it holds. Nothing of an answer is put in errors. Pure.
 */

import { parseImageRef } from '../../kube/imageRef.ts';
import { isRecord } from '../../shape/conform.ts';
import { jsonOf, recordOf, textOf } from '../../shape/lenient.ts';
import { type Credential, credentialsAmong, keyOf, locationMatches, type OwnedAuth } from './keyring.ts';

const GROUP = 'credentialprovider.kubelet.k8s.io';
const CONFIG_GROUP = 'kubelet.config.k8s.io';
const VERSIONS = ['v1', 'v1beta1', 'v1alpha1'];
const CONFIG_KIND = 'CredentialProviderConfig';

export interface CredentialProvider {
  /** Also that of its program in the folder of programs. */
  name: string;
  /** `host[:port][/path]`, parts of the host may be globs. */
  matchImages: readonly string[];
  /** For answers that do not say how long they hold. */
  defaultCacheMs: number;
  /** Spoken with the program. */
  apiVersion: string;
  args: readonly string[];
  env: readonly { name: string; value: string }[];
  /** Absent: it is told nothing of the pod. */
  tokenAttributes?: TokenAttributes;
}
/** It is given a token of the pod's service account. */
export interface TokenAttributes {
  audience: string;
  /** Pods that share an answer: those of one service account, or only those with the very token. */
  cacheType: 'ServiceAccount' | 'Token';
  /** Not asked for pods without a service account, such as static ones; else asked without a token. */
  requireServiceAccount: boolean;
  /** Annotations of the service account. A provider is not asked where one of them is missing. */
  requiredAnnotations: readonly string[];
  optionalAnnotations: readonly string[];
}
export interface ConfigProblem {
  /** `providers[0].name`. */
  path: string;
  what: string;
}

export interface ReadOptions {
  /** Ms; undefined for text that is none. */
  parseDuration: (text: string) => number | undefined;
  /** Gate KubeletServiceAccountTokenForCredentialProviders. */
  tokens: boolean;
}

/** Reads a decoded configuration. Everything that is wrong is listed; there are no providers then. */
export function readProviders(
  value: unknown,
  { parseDuration, tokens }: ReadOptions,
): { providers: CredentialProvider[]; problems: ConfigProblem[] } {
  const problems: ConfigProblem[] = [];
  const bad = (path: string, what: string): void => void problems.push({ path, what });
  if (!isRecord(value)) return { providers: [], problems: [{ path: '', what: `must be a ${CONFIG_KIND}` }] };
  const versions = VERSIONS.map((v) => `${CONFIG_GROUP}/${v}`);
  if (!versions.includes(String(value.apiVersion ?? ''))) bad('apiVersion', `must be one of ${versions.join(', ')}`);
  if (value.kind !== CONFIG_KIND) bad('kind', `must be ${CONFIG_KIND}`);
  unknown(value, ['apiVersion', 'kind', 'providers'], '', bad);
  const list = Array.isArray(value.providers) ? (value.providers as unknown[]) : [];
  if (list.length === 0) bad('providers', 'at least one is required');
  const names = new Set<string>();
  const providers = list.map((entry, i) => {
    const provider = readProvider(entry, `providers[${i}]`, { bad, parseDuration, tokens });
    if (provider.name !== '' && names.has(provider.name)) bad(`providers[${i}].name`, `${JSON.stringify(provider.name)} is there already`);
    names.add(provider.name);
    return provider;
  });
  return { providers: problems.length === 0 ? providers : [], problems };
}

type Bad = (path: string, what: string) => void;

function unknown(value: Record<string, unknown>, known: readonly string[], at: string, bad: Bad): void {
  for (const key of Object.keys(value)) if (!known.includes(key)) bad(at === '' ? key : `${at}.${key}`, 'unknown field');
}

const FIELDS = ['name', 'matchImages', 'defaultCacheDuration', 'apiVersion', 'args', 'env', 'tokenAttributes'];

function readProvider(entry: unknown, at: string, { bad, parseDuration, tokens }: ReadOptions & { bad: Bad }): CredentialProvider {
  const value = recordOf(entry);
  if (!isRecord(entry)) bad(at, 'must be a mapping');
  unknown(value, FIELDS, at, bad);
  const name = textOf(value.name);
  if (name === '') bad(`${at}.name`, 'required');
  else if (/[/\s]/.test(name) || name === '.' || name === '..') bad(`${at}.name`, 'must be the name of a file, without slashes and blanks');
  const matchImages = texts(value.matchImages, `${at}.matchImages`, bad);
  if (matchImages.length === 0) bad(`${at}.matchImages`, 'at least one is required');
  matchImages.forEach((match, i) => {
    if (!/^[^\s/:]+(:[^\s/:]+)?(\/\S*)?$/.test(match))
      bad(`${at}.matchImages[${i}]`, `${JSON.stringify(match)} is not host[:port][/path] without a scheme`);
  });
  const duration = value.defaultCacheDuration;
  const defaultCacheMs = typeof duration === 'string' ? parseDuration(duration) : undefined;
  if (duration === undefined || duration === null) bad(`${at}.defaultCacheDuration`, 'required');
  else if (defaultCacheMs === undefined || defaultCacheMs < 0)
    bad(`${at}.defaultCacheDuration`, 'must be a duration such as 10m, not negative');
  const versions = VERSIONS.map((v) => `${GROUP}/${v}`);
  const apiVersion = textOf(value.apiVersion);
  if (!versions.includes(apiVersion)) bad(`${at}.apiVersion`, `must be one of ${versions.join(', ')}`);
  const asks = value.tokenAttributes !== undefined && value.tokenAttributes !== null;
  if (asks && !tokens) bad(`${at}.tokenAttributes`, 'needs feature gate KubeletServiceAccountTokenForCredentialProviders');
  if (asks && apiVersion !== `${GROUP}/v1`) bad(`${at}.tokenAttributes`, `needs apiVersion ${GROUP}/v1`);
  const tokenAttributes = asks ? readTokenAttributes(value.tokenAttributes, `${at}.tokenAttributes`, bad) : undefined;
  const env = (Array.isArray(value.env) ? (value.env as unknown[]) : []).map((e, i) => {
    if (isRecord(e) && typeof e.name === 'string' && e.name !== '' && !/[=\0]/.test(e.name) && typeof e.value === 'string')
      return { name: e.name, value: e.value };
    bad(`${at}.env[${i}]`, 'must have a name, without =, and a value');
    return { name: '', value: '' };
  });
  if (value.env !== undefined && value.env !== null && !Array.isArray(value.env)) bad(`${at}.env`, 'must be a list');
  const args = texts(value.args, `${at}.args`, bad);
  const own = { name, matchImages, defaultCacheMs: defaultCacheMs ?? 0, apiVersion, args, env };
  return tokenAttributes === undefined ? own : { ...own, tokenAttributes };
}

const TOKEN_FIELDS = [
  'serviceAccountTokenAudience',
  'cacheType',
  'requireServiceAccount',
  'requiredServiceAccountAnnotationKeys',
  'optionalServiceAccountAnnotationKeys',
];
/** Name of an annotation: a word of at most 63 characters, perhaps behind `prefix/`, a DNS name. */
const ANNOTATION_KEY = /^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/;

function readTokenAttributes(entry: unknown, at: string, bad: Bad): TokenAttributes {
  const value = recordOf(entry);
  if (!isRecord(entry)) bad(at, 'must be a mapping');
  unknown(value, TOKEN_FIELDS, at, bad);
  const audience = textOf(value.serviceAccountTokenAudience);
  if (audience === '') bad(`${at}.serviceAccountTokenAudience`, 'required');
  const cacheType = (['ServiceAccount', 'Token'] as const).find((t) => t === value.cacheType);
  if (cacheType === undefined) bad(`${at}.cacheType`, 'must be ServiceAccount or Token');
  const requireServiceAccount = value.requireServiceAccount;
  if (typeof requireServiceAccount !== 'boolean') bad(`${at}.requireServiceAccount`, 'required: true or false');
  const keys = (field: string): string[] => {
    const found = texts(value[field], `${at}.${field}`, bad);
    found.forEach((key, i) => {
      if (!ANNOTATION_KEY.test(key)) bad(`${at}.${field}[${i}]`, `${JSON.stringify(key)} is not the name of an annotation`);
      if (found.indexOf(key) !== i) bad(`${at}.${field}[${i}]`, `${JSON.stringify(key)} is there already`);
    });
    return found;
  };
  const requiredAnnotations = keys('requiredServiceAccountAnnotationKeys');
  const optionalAnnotations = keys('optionalServiceAccountAnnotationKeys');
  const both = optionalAnnotations.filter((key) => requiredAnnotations.includes(key));
  if (both.length > 0) bad(at, `annotations cannot be both required and optional: ${both.join(', ')}`);
  if (requireServiceAccount !== true && requiredAnnotations.length > 0)
    bad(`${at}.requireServiceAccount`, 'must be true where requiredServiceAccountAnnotationKeys are set');
  return {
    ...{ audience, cacheType: cacheType ?? 'Token', requireServiceAccount: requireServiceAccount !== false },
    ...{ requiredAnnotations, optionalAnnotations },
  };
}

function texts(value: unknown, at: string, bad: Bad): string[] {
  if (value === undefined || value === null) return [];
  const list: unknown[] = Array.isArray(value) ? value : [];
  if (!Array.isArray(value) || list.some((v) => typeof v !== 'string')) bad(at, 'must be a list of texts');
  return list.filter((v) => typeof v === 'string');
}

/** `host[:port]/path` of an image, by which credentials are looked for; null for what is no reference. */
export function repositoryOf(image: string): { domain: string; repository: string } | null {
  const parsed = parseImageRef(image);
  if (!parsed.ok) return null;
  const { domain, path } = parsed.ref;
  return { domain, repository: `${domain}/${path}` };
}

export function isAsked(provider: CredentialProvider, image: string): boolean {
  const at = repositoryOf(image);
  return at !== null && provider.matchImages.some((match) => locationMatches(match, at.repository));
}

/** The service account of a pod, as far as a provider is told of it. */
export interface ProviderAccount {
  uid: string;
  namespace: string;
  name: string;
  /** Annotations that the provider asked for. */
  annotations: Readonly<Record<string, string>>;
  /** Secret. */
  token: string;
}

/** Annotations of an account that the provider is told; null where one that it needs is missing. */
export function askedAnnotations(t: TokenAttributes, all: Readonly<Record<string, string>>): Record<string, string> | null {
  if (t.requiredAnnotations.some((key) => all[key] === undefined)) return null;
  const keys = [...t.requiredAnnotations, ...t.optionalAnnotations].sort();
  return Object.fromEntries(keys.flatMap((key) => (all[key] === undefined ? [] : [[key, all[key]]])));
}

/** For whom besides this pod an answer holds: '' where it says nothing of a pod. `hash`: a token is kept nowhere in the clear. */
export function sharedBy(provider: CredentialProvider, account: ProviderAccount | null, hash: (text: string) => string): string {
  if (account === null) return '';
  const { namespace, name, uid, annotations, token } = account;
  const own = provider.tokenAttributes?.cacheType === 'ServiceAccount' ? '' : hash(token);
  return JSON.stringify([namespace, name, uid, annotations, own]);
}

/** What the program reads. `image`: its repository, as the kubelet tells. Secret where an account is given. */
export function providerRequest(provider: CredentialProvider, image: string, account: ProviderAccount | null = null): string {
  const { token: serviceAccountToken, annotations: serviceAccountAnnotations } = account ?? {};
  const ofPod = account === null ? {} : { serviceAccountToken, serviceAccountAnnotations };
  return JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion: provider.apiVersion, image, ...ofPod });
}

export interface ProviderAnswer {
  /** For which images it holds. */
  keyType: 'Image' | 'Registry' | 'Global';
  /** Null: the provider's own. */
  cacheMs: number | null;
  credentials: readonly Credential[];
}

/** @throws Error that says what is wrong, with nothing of the answer in it. */
export function readAnswer(
  provider: CredentialProvider,
  text: string,
  parseDuration: (text: string) => number | undefined,
): ProviderAnswer {
  const value = jsonOf(text);
  if (value === undefined) throw new Error('printed what is not JSON');
  if (!isRecord(value) || value.kind !== 'CredentialProviderResponse') throw new Error('printed no CredentialProviderResponse');
  if (value.apiVersion !== provider.apiVersion) throw new Error(`printed a response of another version than ${provider.apiVersion}`);
  const keyType = (['Image', 'Registry', 'Global'] as const).find((t) => t === value.cacheKeyType);
  if (keyType === undefined) throw new Error('printed a cacheKeyType that is not one of Image, Registry, Global');
  const duration = value.cacheDuration ?? null;
  const cacheMs = duration === null ? null : typeof duration === 'string' ? parseDuration(duration) : undefined;
  if (cacheMs === undefined) throw new Error('printed a cacheDuration that is no duration');
  const auth = value.auth ?? {};
  if (!isRecord(auth)) throw new Error('printed an auth that is no mapping');
  const credentials = Object.entries(auth).map(([key, entry]): Credential => {
    const { username, password } = recordOf(entry);
    if (typeof username !== 'string' || typeof password !== 'string') throw new Error('printed an auth without a username and a password');
    return { key: keyOf(key), auth: { username, password } };
  });
  return { keyType, cacheMs, credentials };
}

/** The program gave the token back. That is its pod's own, and must not be shared with pods of the account. */
export function echoes({ credentials }: ProviderAnswer, provider: CredentialProvider, account: ProviderAccount | null): boolean {
  if (account === null || provider.tokenAttributes?.cacheType !== 'ServiceAccount') return false;
  return credentials.some(({ auth }) => auth.password === account.token);
}

/** Under which key an answer for this image is kept, narrowest first. */
export function cacheKeys(image: string): Record<ProviderAnswer['keyType'], string> {
  return { Image: `image ${image}`, Registry: `registry ${repositoryOf(image)?.domain ?? ''}`, Global: 'global' };
}

/** Credentials of an answer that the image is pulled with, best first. */
export function authsFor({ credentials }: ProviderAnswer, image: string): readonly OwnedAuth[] {
  const at = repositoryOf(image);
  return at === null ? [] : credentialsAmong(credentials, at.repository);
}
