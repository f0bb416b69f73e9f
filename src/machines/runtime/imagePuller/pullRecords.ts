/**
 * Which pods may use an image that is on the node already (resources and volumes 4.4): what is recorded of each pull, in the
 * files of the reference, and whether credentials have been seen to open the image before. Nothing in a record is secret:
 * credentials stand in it as hashes. Pure.
 */

import type { VERIFICATION_POLICIES } from '../../config/words.ts';
import { own, put } from '../../data/own.ts';
import { parseImageRef } from '../../kube/imageRef.ts';
import { goString } from '../../pod/goJson.ts';
import { isRecord } from '../../shape/conform.ts';
import { jsonOf, listOf, recordOf, textOf } from '../../shape/lenient.ts';
import type { AuthConfig } from '../../wire/cri.ts';
import type { OwnedAuth, PullOwner } from './keyring.ts';
import { fullNameOf } from './messages.ts';

export type VerificationPolicy = (typeof VERIFICATION_POLICIES)[number];
/** What holds while the configuration says nothing. */
export const DEFAULT_VERIFICATION: VerificationPolicy = 'NeverVerifyPreloadedImages';

interface Coordinates {
  uid: string;
  namespace: string;
  name: string;
}
interface SecretUsed extends Coordinates {
  /** SHA-256 of the credentials; '' where it is not known, which matches none. */
  credentialHash: string;
}
/** What opened an image; either every pod of the node may use it, or those that come with one of these. */
export interface AccessGranted {
  nodePodsAccessible?: true;
  kubernetesSecrets?: readonly SecretUsed[];
  kubernetesServiceAccounts?: readonly Coordinates[];
}
export interface PulledRecord {
  /** Wall time, ms. */
  updatedMs: number;
  /** The runtime's id of the image. */
  imageRef: string;
  /** By name of the image, without tag and digest; with one of them where it was there before. */
  access: Readonly<Record<string, AccessGranted>>;
}

const GROUP = 'kubelet.config.k8s.io';
const VERSIONS = ['v1alpha1', 'v1beta1', 'v1'].map((v) => `${GROUP}/${v}`);
/** What Kubernetes 1.36 writes. Releases before 1.35 read v1alpha1 only. */
const VERSION = `${GROUP}/v1beta1`;
/** Identities that are learned for one image; what is beyond asks the registry each time. As in the reference. */
export const IDENTITIES_MAX = 100;
/** Most bytes of a file: far more than identities up to the bound take. */
export const RECORD_BYTES_MAX = 1_048_576;

/** `docker.io/library/busybox` of `busybox:1.36`; null for what is no name. */
export function nameOf(image: string): string | null {
  const parsed = parseImageRef(image);
  return parsed.ok ? `${parsed.ref.domain}/${parsed.ref.path}` : null;
}

/**
 * Whether this node pulled the image by this name. The record of an image is kept by its content, which may have been there
 * before by another name: that one stays preloaded. It must be a name that the runtime lists, so an id or another repository
 * with the same digest does not pass for one. A record that names nothing is of a pull whose name nobody knows.
 */
export function isPulledByName({ access }: PulledRecord, o: { image: string; listed: readonly string[] }): boolean {
  const name = nameOf(o.image);
  const wanted = namesIn(o.image).at(-1);
  if (name === null || wanted === undefined || Object.keys(access).length === 0) return true;
  return (own(access, name) !== undefined && own(access, wanted) === undefined) || !o.listed.some((other) => fullNameOf(other) === wanted);
}
/** In full, as the runtime may list it: with its tag, then with its digest. */
export function namesIn(image: string): string[] {
  const parsed = parseImageRef(image);
  if (!parsed.ok) return [];
  const { domain, path, tag, digest } = parsed.ref;
  return [...(tag === undefined ? [] : [`${domain}/${path}:${tag}`]), ...(digest === undefined ? [] : [`${domain}/${path}@${digest}`])];
}
/**
 * Names of a repository that were there before its first pull: a record keeps them beside the repository, with their tag or digest.
 * `before`: what the runtime listed then, as far as that is known; `listed`: now. `pulls`: each may have brought its tag and its
 * digest; null: it can be any.
 */
export function preloadedNames(
  name: string,
  o: { before: readonly string[]; listed: readonly string[]; pulls: readonly (string | null)[] },
): string[] {
  if (o.pulls.includes(null)) return [];
  const pulled = o.pulls.flatMap((image) => namesIn(image ?? ''));
  const others = (names: readonly string[]) => names.map(fullNameOf).filter((n) => nameOf(n) === name && !pulled.includes(n));
  const now = others(o.listed);
  return [...others(o.before), ...(now.some((n) => !n.includes('@')) ? now : [])];
}

/** Whether a pod has to show that it may use an image that is there. `pulledHere`: this node pulled it at some time. */
export function mustVerify(
  o: { policy: VerificationPolicy; allowlist: readonly string[] },
  image: { image: string; pulledHere: boolean },
): boolean {
  switch (o.policy) {
    case 'NeverVerify':
      return false;
    case 'NeverVerifyPreloadedImages':
      return image.pulledHere;
    case 'AlwaysVerify':
      return true;
    case 'NeverVerifyAllowlistedImages': {
      const name = nameOf(image.image);
      // A prefix may be meant as people write names (`team/*`), or in full (`docker.io/team/*`).
      const begins = (prefix: string): boolean => image.image.startsWith(prefix) || name?.startsWith(prefix) === true;
      return name === null || !o.allowlist.some((e) => (e.endsWith('/*') ? begins(e.slice(0, -1)) : name === nameOf(e)));
    }
  }
}

/** What the hash of credentials is taken of: as the reference writes them, so that records can be taken over. */
export function credentialText(auth: AuthConfig): string {
  const { username, password, auth: both, serverAddress, identityToken, registryToken } = auth;
  const fields = { username, password, auth: both, serverAddress, identityToken, registryToken };
  const written = Object.entries(fields).flatMap(([key, value]) => (value ? [`"${key}":${goString(value)}`] : []));
  return `{${written.join(',')}}`;
}

const at = ({ uid, namespace, name }: Coordinates): Coordinates => ({ uid, namespace, name });
const samePlace = (a: Coordinates, b: Coordinates): boolean => a.uid === b.uid && a.namespace === b.namespace && a.name === b.name;

/** What a pull with these credentials proves. Without any, and with those of the node itself, everybody may use the image. */
export function grantedBy(auth: OwnedAuth | null, hash: (auth: AuthConfig) => string): AccessGranted {
  const owner: PullOwner | undefined = auth?.owner;
  if (auth === null || owner === undefined) return { nodePodsAccessible: true };
  if (owner.kind === 'token') return {};
  if (owner.kind === 'serviceAccount') return { kubernetesServiceAccounts: [at(owner)] };
  return { kubernetesSecrets: [{ ...at(owner), credentialHash: hash(auth.auth) }] };
}

/** With what was just proved. A secret counts once, with its newest credentials. */
export function withAccess(known: AccessGranted | undefined, more: AccessGranted): AccessGranted {
  if (known?.nodePodsAccessible === true || more.nodePodsAccessible === true) return { nodePodsAccessible: true };
  const secrets = more.kubernetesSecrets ?? [];
  const accounts = more.kubernetesServiceAccounts ?? [];
  const kept = (known?.kubernetesSecrets ?? []).filter((k) => !secrets.some((s) => samePlace(k, s)));
  const keptAccounts = (known?.kubernetesServiceAccounts ?? []).filter((k) => !accounts.some((a) => samePlace(k, a)));
  const all = [...kept, ...secrets];
  const allAccounts = [...keptAccounts, ...accounts];
  return {
    ...(all.length === 0 ? {} : { kubernetesSecrets: all }),
    ...(allAccounts.length === 0 ? {} : { kubernetesServiceAccounts: allAccounts }),
  };
}

/** Only those may use the image whose credentials opened it: theirs have to be compared. */
export function namesOwners(access: AccessGranted | undefined): boolean {
  if (access === undefined || access.nodePodsAccessible === true) return false;
  return (access.kubernetesSecrets ?? []).length + (access.kubernetesServiceAccounts ?? []).length > 0;
}

/** `learn`: what to add to the record, since the same credentials came from elsewhere, or the same secret has others now. */
export type Access = { granted: false } | { granted: true; learn: AccessGranted | null };

/** Whether one of these credentials has opened the image before. */
export function accessOf(access: AccessGranted | undefined, auths: readonly OwnedAuth[], hash: (auth: AuthConfig) => string): Access {
  if (access === undefined) return { granted: false };
  if (access.nodePodsAccessible === true) return { granted: true, learn: null };
  const secrets = access.kubernetesSecrets ?? [];
  for (const owned of auths) {
    const { owner } = owned;
    if (owner === undefined || owner.kind === 'token') continue;
    if (owner.kind === 'serviceAccount') {
      if ((access.kubernetesServiceAccounts ?? []).some((a) => samePlace(a, owner))) return { granted: true, learn: null };
      continue;
    }
    const credentialHash = hash(owned.auth);
    for (const known of secrets) {
      const sameHash = known.credentialHash !== '' && known.credentialHash === credentialHash;
      const same = samePlace(known, owner);
      if (!sameHash && !same) continue;
      const learn = !(sameHash && same) && secrets.length < IDENTITIES_MAX;
      return { granted: true, learn: learn ? { kubernetesSecrets: [{ ...at(owner), credentialHash }] } : null };
    }
  }
  return { granted: false };
}

// ---- files -------------------------------------------------------------------------------------------------------

function coordinates(value: unknown): Coordinates {
  const { uid, namespace, name } = recordOf(value);
  return { uid: textOf(uid), namespace: textOf(namespace), name: textOf(name) };
}

/** A record's document. Null: the text is not a document of that kind. */
function documentOf(text: string, kind: string): Record<string, unknown> | null {
  const value = recordOf(jsonOf(text));
  return value.kind === kind && VERSIONS.includes(textOf(value.apiVersion)) ? value : null;
}

export function intentText(image: string): string {
  return `${JSON.stringify({ kind: 'ImagePullIntent', apiVersion: VERSION, image })}\n`;
}
/** The image of an intent; null for what is none. */
export function readIntent(text: string): string | null {
  const image = documentOf(text, 'ImagePullIntent')?.image;
  return typeof image === 'string' && image !== '' ? image : null;
}

export function recordText(record: PulledRecord): string {
  const lastUpdatedTime = `${new Date(record.updatedMs).toISOString().slice(0, 19)}Z`;
  const document = { kind: 'ImagePulledRecord', apiVersion: VERSION, lastUpdatedTime, imageRef: record.imageRef };
  return `${JSON.stringify({ ...document, credentialMapping: record.access })}\n`;
}
/** Null for what is none. */
export function readRecord(text: string): PulledRecord | null {
  const value = documentOf(text, 'ImagePulledRecord');
  if (value === null || textOf(value.imageRef) === '') return null;
  const access: Record<string, AccessGranted> = {};
  for (const [name, entry] of Object.entries(recordOf(value.credentialMapping))) {
    if (!isRecord(entry)) continue;
    const secrets = listOf(entry.kubernetesSecrets)
      .filter(isRecord)
      .map((s) => ({ ...coordinates(s), credentialHash: textOf(s.credentialHash) }));
    const accounts = listOf(entry.kubernetesServiceAccounts).filter(isRecord).map(coordinates);
    const everybody: AccessGranted = entry.nodePodsAccessible === true ? { nodePodsAccessible: true } : {};
    // The reference names a repository as pods do: `busybox`.
    const full = fullNameOf(name);
    const granted = withAccess(everybody, { kubernetesSecrets: secrets, kubernetesServiceAccounts: accounts });
    put(access, full, withAccess(own(access, full), granted));
  }
  const updatedMs = Date.parse(textOf(value.lastUpdatedTime));
  return { updatedMs: Number.isNaN(updatedMs) ? 0 : updatedMs, imageRef: textOf(value.imageRef), access };
}
