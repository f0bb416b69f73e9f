/**
 * Objects that this node writes into the API, by the types of the official client, so that a field that the API does not
 * have does not compile. Types alone: nothing of that package is loaded (resident memory: docs/architecture/api-server.md).
 */
import type {
  AuthenticationV1TokenRequest,
  CoreV1Event,
  V1CertificateSigningRequest,
  V1CSINode,
  V1Lease,
  V1Node,
  V1OwnerReference,
  V1PodStatus,
  V1SubjectAccessReview,
  V1TokenReview,
} from '@kubernetes/client-node';

/** As JSON: the client has dates where the wire has texts, and Go writes a list that is nil as null. */
type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer U)[]
    ? readonly Wire<U>[]
    : T extends object
      ? { readonly [K in keyof T]: Wire<T[K]> | (object extends Pick<T, K> ? null : never) }
      : T;

export type WireCsiNode = Wire<V1CSINode>;
export type WireEvent = Wire<CoreV1Event>;
export type WireLease = Wire<V1Lease>;
export type WireNode = Wire<V1Node>;
export type WireOwner = Wire<V1OwnerReference>;
export type WirePodStatus = Wire<V1PodStatus>;
export type WireSigningRequest = Wire<Omit<V1CertificateSigningRequest, 'status'>>;
export type WireSubjectAccessReview = Wire<Omit<V1SubjectAccessReview, 'status'>>;
export type WireTokenRequest = Wire<Omit<AuthenticationV1TokenRequest, 'status'>>;
export type WireTokenReview = Wire<Omit<V1TokenReview, 'status'>>;
