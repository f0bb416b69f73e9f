/** What volumes need of the API. The holder of an API client gives it; a standalone node has none. */

import type { Pod } from './types.ts';

export interface ApiSecret {
  /** UID of the object; absent where nobody asked. */
  uid?: string;
  /** `kubernetes.io/dockerconfigjson`, say; absent where nobody asked. */
  type?: string;
  /** Decoded. */
  data: Readonly<Record<string, Uint8Array>>;
}
export interface ApiConfigMap {
  data: Readonly<Record<string, string>>;
  binaryData: Readonly<Record<string, Uint8Array>>;
}
export type ApiObject = ApiSecret | ApiConfigMap;
export interface TokenRequest {
  namespace: string;
  serviceAccount: string;
  audiences: readonly string[];
  expirationSeconds: number;
  /** The token is bound to this pod and dies with it. */
  pod: { name: string; uid: string };
}
/** What a projected volume names of the cluster's trust anchors. */
export interface TrustQuery {
  /** Null: by signer and labels. */
  name: string | null;
  signerName: string;
  /** As the pod has it; null matches nothing. */
  labelSelector: Record<string, unknown> | null;
}
/** A certificate that a projected volume wants, of a key that is made for it. */
export interface PodCertificate {
  pod: { name: string; namespace: string; uid: string };
  serviceAccount: string;
  volume: string;
  /** Index of the source in its volume. */
  index: number;
  signerName: string;
  keyType: string;
  /** Null: the signer decides. */
  maxExpirationSeconds: number | null;
  userAnnotations: Readonly<Record<string, string>>;
}
/** PEM. The key is secret. */
export interface CredentialBundle {
  key: string;
  chain: string;
}
/**
 * `absent`: there is no such object; `message` where the API server itself said so. `failed`: it could not be asked, or
 * refused; `message` says why.
 */
export type ObjectResult<T> = { kind: 'found'; value: T } | { kind: 'absent'; message?: string } | { kind: 'failed'; message: string };

/** Never rejects. Caches, watches and the refresh of tokens are its own matter: it is asked at each sync of a volume. */
export interface ObjectSource {
  /** Asks for a Secret of the pod's namespace. */
  secret(pod: Pod, name: string, signal: AbortSignal): Promise<ObjectResult<ApiSecret>>;
  configMap(pod: Pod, name: string, signal: AbortSignal): Promise<ObjectResult<ApiConfigMap>>;
  token(request: TokenRequest, signal: AbortSignal): Promise<ObjectResult<{ token: string }>>;
  /** PEM. `absent`: nothing matches. */
  trustAnchors(query: TrustQuery, signal: AbortSignal): Promise<ObjectResult<string>>;
  /** `failed` until it is issued: the volumes of the pod are told when it is. */
  podCertificate(certificate: PodCertificate, signal: AbortSignal): Promise<ObjectResult<CredentialBundle>>;
  /** The volumes of that pod are gone: what was kept for it may be forgotten. */
  forget(uid: string): void;
}

/** One question to the API, and its answer under the same key. */
export type ObjectQuery =
  | { kind: 'secret' | 'configMap'; name: string }
  | { kind: 'token'; audience: string; expirationSeconds: number }
  | ({ kind: 'trustAnchors' } & TrustQuery)
  | ({ kind: 'podCertificate' } & Omit<PodCertificate, 'pod' | 'serviceAccount' | 'volume'>);
export type ObjectAnswer =
  | { kind: 'secret'; result: ObjectResult<ApiSecret> }
  | { kind: 'configMap'; result: ObjectResult<ApiConfigMap> }
  | { kind: 'token'; result: ObjectResult<{ token: string }> }
  | { kind: 'trustAnchors'; result: ObjectResult<string> }
  | { kind: 'podCertificate'; result: ObjectResult<CredentialBundle> };
export type Objects = ReadonlyMap<string, ObjectAnswer>;

/** One of the questions of one volume. */
export function queryKey(query: ObjectQuery): string {
  switch (query.kind) {
    case 'token':
      return `token ${query.expirationSeconds} ${query.audience}`;
    case 'trustAnchors':
      return `trustAnchors ${JSON.stringify([query.name, query.signerName, query.labelSelector])}`;
    case 'podCertificate':
      return `podCertificate ${query.index}`;
    default:
      return `${query.kind} ${query.name}`;
  }
}

export function isConfigMap(object: ApiObject): object is ApiConfigMap {
  return 'binaryData' in object;
}

/** A service that has an address of its own. */
export interface ServiceEntry {
  namespace: string;
  name: string;
  clusterIP: string;
  ports: readonly { name: string; protocol: string; port: number }[];
}
